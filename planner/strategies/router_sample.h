/* What a plan of routers (router.h) takes at least, from some of its messages: so that candidates
 * that cannot be the best need no plan. Of patterns whose messages share payloads nothing is said.
 */
#ifndef CARPOOL_ROUTER_SAMPLE_H
#define CARPOOL_ROUTER_SAMPLE_H

#include "planner/arena.h"
#include "planner/plan/router.h"
#include "planner/strategy.h"

#include <stdbool.h>

struct cpl_router_sample {
    const struct cpl_strategy_input *input;
    int32_t n;        /* sources */
    int32_t *source;  /* some that send most, and some at equal distances */
    int32_t *reached; /* rank -> the last source from which a first hop went there, + 1 */
    int32_t *stops;   /* room for a route */
    int32_t *path;
    int32_t *wave;
    bool *is_sampled; /* rank -> it is one of the sources */
};

/* Chooses the messages; memory from the arena. Returns CPL_OK or CPL_ERR_NOMEM. */
enum cpl_status cpl_router_sample_init(struct cpl_router_sample *sample,
                                       const struct cpl_strategy_input *input,
                                       struct cpl_arena *arena);

/* A time that the plan of the router takes at least by the chain model, in microseconds: a message
 * takes what its hops take one after another, and the last of a rank's first sends has all others
 * before it. */
double cpl_router_sample_bound(const struct cpl_router_sample *sample,
                               const struct cpl_router *router);

/* The same by routes, which need not be a router's: what the busiest of the sampled ranks works.
 * Returns CPL_OK, CPL_ERR_NOMEM. O(messages x waves). */
enum cpl_status cpl_router_sample_busy(const struct cpl_router_sample *sample,
                                       const struct cpl_routes *routes, double *us);

#endif
