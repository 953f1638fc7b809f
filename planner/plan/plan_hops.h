/* Hops of bundles, collected wave by wave, from which plan.c makes a plan's edges.
 *
 * Order of calls: cpl_hops_init, cpl_hops_add for each hop, the bundles of a wave in ascending
 * order within each pair of ranks, cpl_hops_make_edges once, cpl_hops_free. Cost: 12 bytes a hop
 * (twice that while it grows) and 20 bytes a hop of the largest wave; O(hops + ranks x waves).
 * Thread rule: one thread at a time. */
#ifndef CARPOOL_PLAN_HOPS_H
#define CARPOOL_PLAN_HOPS_H

#include "planner/plan.h"

/* A bundle goes from one rank to another. */
struct cpl_hop {
    int32_t from, to, bundle;
};

struct cpl_wave_hops {
    int64_t n;
    int64_t max;
    struct cpl_hop *hop;
};

struct cpl_hops {
    int32_t n_waves;
    struct cpl_wave_hops *wave; /* wave w at w - 1 */
    struct cpl_arena arena;
};

/* No hops in n_waves waves. Returns CPL_OK or CPL_ERR_NOMEM. */
enum cpl_status cpl_hops_init(struct cpl_hops *hops, int32_t n_waves);

/* Makes room for one more hop in the wave. Returns CPL_OK or CPL_ERR_NOMEM. */
enum cpl_status cpl_hops_grow(struct cpl_wave_hops *wave);

/* Adds a hop in wave 1 .. n_waves. Returns CPL_OK or CPL_ERR_NOMEM. */
static inline enum cpl_status cpl_hops_add(struct cpl_hops *hops, int32_t wave, int32_t from,
                                           int32_t to, int32_t bundle)
{
    struct cpl_wave_hops *w = &hops->wave[wave - 1];
    if (w->n == w->max && cpl_hops_grow(w))
        return CPL_ERR_NOMEM;
    w->hop[w->n++] = (struct cpl_hop){from, to, bundle};
    return CPL_OK;
}

/* Sets the plan's waves, edges and segments, in memory of its arena, in canonical order; waves
 * without hops are dropped. The plan's ranks and bundles are there already. The hops are used up.
 * Returns CPL_OK or CPL_ERR_NOMEM. */
enum cpl_status cpl_hops_make_edges(struct cpl_hops *hops, struct cpl_plan *plan,
                                    struct cpl_error *error);

void cpl_hops_free(struct cpl_hops *hops);

#endif
