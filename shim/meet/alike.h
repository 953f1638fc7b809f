/* What must be alike on all ranks, compared. Much of the shim decides on each rank by itself and
 * relies on all having come to the same: counters of collectives, phases, plans, what is managed.
 * Each part adds its words by its hook; every meeting compares a hash of them (meeting.c). */
#ifndef CARPOOL_ALIKE_H
#define CARPOOL_ALIKE_H

#include "planner/base/hash.h"

#include <stdint.h>

struct cpl_alike {
    uint64_t hash;
};

static inline void cpl_alike_add(struct cpl_alike *alike, int64_t word)
{
    alike->hash = cpl_hash_word(alike->hash, (uint64_t)word);
}

#endif
