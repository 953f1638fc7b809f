/* A map from ordered pairs of ranks to 64-bit values: open addressing with linear probing, at most
 * half full.
 *
 * Cost: O(1) expected for each call. Pairs can be looked up but not listed, so no result depends on
 * the order inside. Growing abandons the old table in the arena; all old tables together are
 * smaller than the final one. */
#ifndef CARPOOL_PAIR_MAP_H
#define CARPOOL_PAIR_MAP_H

#include "planner/arena.h"
#include "planner/status.h"

#include <stddef.h>
#include <stdint.h>

struct cpl_pair_slot {
    uint64_t key; /* 0: empty */
    uint64_t value;
};

struct cpl_pair_map {
    struct cpl_arena *arena; /* not owned */
    size_t n_pairs;
    size_t n_slots; /* a power of two */
    struct cpl_pair_slot *slots;
};

/* An empty map that takes its memory from the arena. Returns CPL_OK or CPL_ERR_NOMEM. */
enum cpl_status cpl_pair_map_init(struct cpl_pair_map *map, struct cpl_arena *arena);

/* Makes room for n more pairs. Values found before may have moved. Returns CPL_OK or
 * CPL_ERR_NOMEM. */
enum cpl_status cpl_pair_map_reserve(struct cpl_pair_map *map, size_t n);

/* The value of (a, b), ranks >= 0; NULL when the map does not have the pair. The pointer is valid
 * until the next cpl_pair_map_reserve or cpl_pair_map_remove. */
uint64_t *cpl_pair_map_find(const struct cpl_pair_map *map, int32_t a, int32_t b);

/* The value of (a, b), which is added with the value 0 when it is not there. Room must have been
 * reserved. */
uint64_t *cpl_pair_map_at(struct cpl_pair_map *map, int32_t a, int32_t b);

/* Removes a pair; nothing happens when it is not there. Values found before may have moved. */
void cpl_pair_map_remove(struct cpl_pair_map *map, int32_t a, int32_t b);

#endif
