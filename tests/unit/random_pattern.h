/* Random patterns of many shapes for property tests, and the numbers they are drawn from. The same
 * seed gives the same pattern on every machine. */
#ifndef CARPOOL_TESTS_RANDOM_PATTERN_H
#define CARPOOL_TESTS_RANDOM_PATTERN_H

#include "planner/pattern.h"

#include <stdint.h>

#define RANDOM_PATTERN_MOST_RANKS 200

/* The next number in 0 .. n-1 of splitmix64 (n >= 1); *random is its state, any value to start. */
uint64_t random_draw(uint64_t *random, uint64_t n);

/* The same as a rank or a count. */
int32_t random_below(uint64_t *random, int32_t n);

/* A pattern of 1 .. max_ranks ranks: nothing at all, all to all, a hub, random sparse, a band, a
 * power law, or blocks; with silent ranks, duplicate and self edges, volumes of zero and beyond 32
 * bits; without payload classes, with one class a rank (as an allgather has), with both shared and
 * own payloads, or with items, of which several ranks get the same. The last two have parts. Fails
 * the test when it cannot be built. The caller frees it. */
struct cpl_pattern random_pattern(uint64_t seed, int32_t max_ranks);

/* The same without parts: one message for each source and destination, classes as they are drawn.
 */
struct cpl_pattern random_pattern_undivided(uint64_t seed, int32_t max_ranks);

/* The same where every message has a payload of its own, of less than 100,000 units. */
struct cpl_pattern random_pattern_of_own(uint64_t seed, int32_t max_ranks);

#endif
