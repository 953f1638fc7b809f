/* Random machines for property tests. The same seed gives the same machine everywhere. */
#ifndef CARPOOL_TESTS_RANDOM_MACHINE_H
#define CARPOOL_TESTS_RANDOM_MACHINE_H

#include "planner/machine.h"

#include <stdint.h>

/* A machine with ranks dealt at random to nodes of different sizes, one to three sockets each;
 * costs are the default ones times random factors, some of them 0. No cores are shared. Fails the
 * test when it cannot be made. The caller frees it. */
struct cpl_machine random_machine(uint64_t *random, int32_t n_ranks);

#endif
