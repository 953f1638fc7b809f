/* Detours: messages whose ways are others than a walk's (walk.h). A search finds them for some
 * messages of a plan that ranks make together (strategies/part_search.h); with them the walk stays
 * one that every rank on a message's way can follow, if it knows that message's detour.
 *
 * Order of calls: cpl_detours_walk; use; cpl_walk_free. Thread rule: only read once made. */
#ifndef CARPOOL_DETOURS_H
#define CARPOOL_DETOURS_H

#include "planner/plan/local_plan.h"
#include "planner/plan/walk.h"
#include "planner/status.h"

#include <stdint.h>

/* The most waves of a walk that has detours. */
#define CPL_DETOUR_WAVES 5

struct cpl_detour {
    struct cpl_passing message;
    int32_t stops[CPL_DETOUR_WAVES]; /* as in routes.h, of the walk with detours */
};

/* By source, then destination: negative, 0, positive. */
int cpl_detour_compare(const struct cpl_detour *a, const struct cpl_detour *b);

/* A walk of n_waves waves, no fewer than `base` has and no more than CPL_DETOUR_WAVES: by `base`,
 * which rests at the end where it has fewer, but for the messages of n detours, each of another.
 * The detours are copied; base must stay until the walk is freed. Returns CPL_OK, CPL_ERR_NOMEM. */
enum cpl_status cpl_detours_walk(const struct cpl_walk *base, int32_t n_waves,
                                 const struct cpl_detour *detours, int64_t n, struct cpl_walk *walk,
                                 struct cpl_error *error);

#endif
