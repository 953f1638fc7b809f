/* Computed routes, by arithmetic. Where a message is after each wave follows from its source, its
 * destination and what the router was made from, not from other messages. So every rank can tell
 * the way of every message, and ranks can plan together without one that knows all messages
 * (local_plan.h).
 *
 * Order of calls: a strategy's router function makes it; use; cpl_router_free. Thread rule: only
 * read once made. */
#ifndef CARPOOL_ROUTER_H
#define CARPOOL_ROUTER_H

#include "planner/arena.h"
#include "planner/pattern.h"
#include "planner/routes.h"
#include "planner/status.h"

#include <stdint.h>

struct cpl_router {
    int32_t n_waves; /* >= 1 */
    /* Sets stops[0 .. n_waves - 1]: where a message from src for dst is after each wave, as in
     * routes.h. */
    void (*go)(const struct cpl_router *router, int32_t src, int32_t dst, int32_t *stops);
    const void *grid;       /* what go looks at: the function's own */
    struct cpl_arena arena; /* owns it */
};

/* The routes of all messages of a pattern. Returns CPL_OK, CPL_ERR_NOMEM. The caller frees *routes.
 * O(messages x waves). */
enum cpl_status cpl_router_routes(const struct cpl_router *router,
                                  const struct cpl_pattern *pattern, struct cpl_routes *routes,
                                  struct cpl_error *error);

/* The path of one message without rests and loops: path[0] is src, the last entry dst; wave[k] is
 * the wave in which path[k] is reached, wave[0] is 0. path, wave and stops have n_waves + 1
 * entries; stops is overwritten. Returns the number of ranks on the path. */
int32_t cpl_router_path(const struct cpl_router *router, int32_t src, int32_t dst, int32_t *stops,
                        int32_t *path, int32_t *wave);

/* The way of one message without rests and loops, as stops: where it is after each of n_waves
 * waves, of which the router has no more. stops has n_waves entries; path and wave as above. */
void cpl_router_straight(const struct cpl_router *router, int32_t src, int32_t dst, int32_t n_waves,
                         int32_t *stops, int32_t *path, int32_t *wave);

void cpl_router_free(struct cpl_router *router);

#endif
