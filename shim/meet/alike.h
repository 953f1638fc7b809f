/* What must be alike on all ranks, compared. Much of the shim decides on each rank by itself and
 * relies on all having come to the same: counters of collectives, phases, plans, what is managed.
 * In builds with --enable-developer every meeting compares a hash of it, and the first rank logs an
 * error where it differs; in others nothing is done. Simulations leave it out, since it takes time.
 *
 * Each part adds its words by its hook. */
#ifndef CARPOOL_ALIKE_H
#define CARPOOL_ALIKE_H

#include "planner/base/hash.h"

#include <stdint.h>

struct cpl_comm_state;

struct cpl_alike {
    uint64_t hash;
};

static inline void cpl_alike_add(struct cpl_alike *alike, int64_t word)
{
    alike->hash = cpl_hash_word(alike->hash, (uint64_t)word);
}

/* Compares over the ranks of the communicator what all parts know of it, and what is managed,
 * hosted and served. Collective in developer builds. */
void cpl_alike_check(const struct cpl_comm_state *state);

#endif
