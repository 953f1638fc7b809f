/* A map from pairs of ranks to values (pair_map.h). */
#include "planner/base/pair_map.h"

#include "planner/base/hash.h"

#define FIRST_SLOTS 256

/* Never 0, which marks an empty slot. */
static uint64_t key_of(int32_t a, int32_t b)
{
    return ((uint64_t)(uint32_t)a << 32 | (uint32_t)b) + 1;
}

/* The slot that holds key, or the empty one where it belongs. */
static struct cpl_pair_slot *slot_of(const struct cpl_pair_map *map, uint64_t key)
{
    size_t mask = map->n_slots - 1;
    size_t slot = (size_t)cpl_hash_mix(key) & mask;
    while (map->slots[slot].key && map->slots[slot].key != key)
        slot = (slot + 1) & mask;
    return &map->slots[slot];
}

enum cpl_status cpl_pair_map_init(struct cpl_pair_map *map, struct cpl_arena *arena)
{
    struct cpl_pair_slot *slots = CPL_ARENA_ARRAY(arena, struct cpl_pair_slot, FIRST_SLOTS);
    if (!slots)
        return CPL_ERR_NOMEM;
    *map = (struct cpl_pair_map){.arena = arena, .n_slots = FIRST_SLOTS, .slots = slots};
    return CPL_OK;
}

enum cpl_status cpl_pair_map_reserve(struct cpl_pair_map *map, size_t n)
{
    struct cpl_pair_map larger = *map;
    while (n > larger.n_slots / 2 - map->n_pairs) {
        if (larger.n_slots > SIZE_MAX / 2)
            return CPL_ERR_NOMEM;
        larger.n_slots *= 2;
    }
    if (larger.n_slots == map->n_slots)
        return CPL_OK;
    larger.slots = CPL_ARENA_ARRAY(map->arena, struct cpl_pair_slot, larger.n_slots);
    if (!larger.slots)
        return CPL_ERR_NOMEM;
    for (size_t i = 0; i < map->n_slots; i++) {
        if (map->slots[i].key)
            *slot_of(&larger, map->slots[i].key) = map->slots[i];
    }
    *map = larger;
    return CPL_OK;
}

uint64_t *cpl_pair_map_find(const struct cpl_pair_map *map, int32_t a, int32_t b)
{
    struct cpl_pair_slot *slot = slot_of(map, key_of(a, b));
    return slot->key ? &slot->value : NULL;
}

uint64_t *cpl_pair_map_at(struct cpl_pair_map *map, int32_t a, int32_t b)
{
    uint64_t key = key_of(a, b);
    struct cpl_pair_slot *slot = slot_of(map, key);
    if (!slot->key) {
        slot->key = key;
        map->n_pairs++;
    }
    return &slot->value;
}

void cpl_pair_map_remove(struct cpl_pair_map *map, int32_t a, int32_t b)
{
    size_t mask = map->n_slots - 1;
    struct cpl_pair_slot *hole = slot_of(map, key_of(a, b));
    if (!hole->key)
        return;
    /* Pairs after the hole that belong at or before it move up, so that no search stops early. */
    for (size_t k = (size_t)(hole - map->slots + 1) & mask; map->slots[k].key; k = (k + 1) & mask) {
        size_t home = (size_t)cpl_hash_mix(map->slots[k].key) & mask;
        size_t at = (size_t)(hole - map->slots);
        if (((k - home) & mask) >= ((k - at) & mask)) {
            *hole = map->slots[k];
            hole = &map->slots[k];
        }
    }
    *hole = (struct cpl_pair_slot){0, 0};
    map->n_pairs--;
}
