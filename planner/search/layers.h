/* Edges in layers: a changing set of combined messages (wave, from, to), with lists of each rank's
 * out-edges and in-edges in each wave. Searches for plans work on this graph (cover.h, improve.h).
 *
 * Waves count from 0 here. Edges are numbered from 1; numbers of removed edges are used again. Cost
 * of each call O(1). Thread rule: one thread at a time. */
#ifndef CARPOOL_LAYERS_H
#define CARPOOL_LAYERS_H

#include "planner/arena.h"
#include "planner/base/pair_map.h"
#include "planner/status.h"

#include <stdbool.h>
#include <stdint.h>

#define CPL_MAX_LAYERS 8

/* An end of an edge, in the list of the rank at the other end. */
struct cpl_layer_link {
    int32_t edge;
    int32_t peer;
};

struct cpl_layer_links {
    int32_t n;
    int32_t capacity;
    struct cpl_layer_link *link;
};

struct cpl_layer_edge {
    int32_t from; /* -1: not in use */
    int32_t to;   /* not in use: the next free number */
    int32_t wave;
    int32_t out_at; /* its position in the list of `from` */
    int32_t in_at;  /* its position in the list of `to` */
};

struct cpl_layers {
    int32_t n_ranks;
    int32_t n_waves;
    struct cpl_layer_edge *edge;                 /* entry 0 is not used */
    int32_t n_numbers;                           /* largest number given out */
    int32_t max_numbers;                         /* room for edges 1 .. max_numbers */
    int32_t first_free;                          /* 0: none */
    struct cpl_layer_links *out[CPL_MAX_LAYERS]; /* n_ranks lists each */
    struct cpl_layer_links *in[CPL_MAX_LAYERS];
    struct cpl_pair_map number[CPL_MAX_LAYERS]; /* (from, to) -> edge */
    struct cpl_arena *arena;                    /* not owned */
};

/* Layers without edges. Memory from the arena. Returns CPL_OK or CPL_ERR_NOMEM. */
enum cpl_status cpl_layers_init(struct cpl_layers *layers, int32_t n_ranks, int32_t n_waves,
                                struct cpl_arena *arena);

/* Adds an edge that is not there. Returns its number, or 0 when memory ran out (nothing is changed
 * then). */
int32_t cpl_layers_add(struct cpl_layers *layers, int32_t wave, int32_t from, int32_t to);

void cpl_layers_remove(struct cpl_layers *layers, int32_t edge);

/* The number of an edge, 0 when it is not there. */
static inline int32_t cpl_layers_find(const struct cpl_layers *layers, int32_t wave, int32_t from,
                                      int32_t to)
{
    const uint64_t *edge = cpl_pair_map_find(&layers->number[wave], from, to);
    return edge ? (int32_t)*edge : 0;
}

#endif
