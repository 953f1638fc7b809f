/* About what plans of routers (router.h) take, from some of the pattern's messages and without
 * making the plans: in what order candidates are priced where there is no time for all. */
#ifndef CARPOOL_ROUTER_COST_H
#define CARPOOL_ROUTER_COST_H

#include "planner/arena.h"
#include "planner/plan/router.h"
#include "planner/strategy.h"

/* The messages that are looked at. */
struct cpl_router_looks {
    const struct cpl_strategy_input *input;
    int32_t every;   /* one message of so many */
    int64_t n;       /* messages */
    int32_t *source; /* of each */
    int32_t *dst;
    double *bytes;
};

/* Chooses one message in `every` (>= 1; 1: all); memory from the arena. Returns CPL_OK or
 * CPL_ERR_NOMEM. O(messages). */
enum cpl_status cpl_router_looks_init(struct cpl_router_looks *looks,
                                      const struct cpl_strategy_input *input, int32_t every,
                                      struct cpl_arena *arena);

/* About the time of the router's plan, in microseconds. What messages of one payload share is not
 * seen, nor that ranks share cores. Returns CPL_OK or CPL_ERR_NOMEM. O(looks x waves + nodes x
 * waves + ranks). */
enum cpl_status cpl_router_look(const struct cpl_router_looks *looks,
                                const struct cpl_router *router, double *us);

#endif
