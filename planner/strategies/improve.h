/* Improving routes under the full cost model: messages of loaded ranks look for cheaper ways over
 * present combined messages and at most one new one, alone or all of a combined message together,
 * and move when the modelled time falls (or, early on, rises little). Our own; strategy
 * `balance`. */
#ifndef CARPOOL_IMPROVE_H
#define CARPOOL_IMPROVE_H

#include "planner/routes.h"
#include "planner/status.h"
#include "planner/strategy.h"

#include <stdint.h>

/* How the search cools down: sharpness of the objective, per share of the plan's present time per
 * wave, at begin and end, and how much of a combined message's price a move may lose at first. */
struct cpl_improve_schedule {
    double first_sharpness;
    double last_sharpness;
    double temperature;
    int64_t work; /* steps to spend, those to begin (cpl_improve_begin_work) among them */
    uint64_t seed;
};

/* Steps that an improvement takes at least: to begin, and to price what it has found. */
int64_t cpl_improve_begin_work(const struct cpl_routes *routes);

/* Improves routes of at most CPL_MAX_LAYERS waves in place; messages of one payload class share a
 * segment where they ride together. Now and then the plan is made and priced by the chain model
 * (plan.h); the best routes seen then are kept: never worse than before, also after an error.
 * Returns CPL_OK, CPL_ERR_UNFIT (more waves), CPL_ERR_NOMEM. Deterministic. */
enum cpl_status cpl_improve_routes(const struct cpl_strategy_input *input,
                                   const struct cpl_improve_schedule *schedule,
                                   struct cpl_routes *routes, struct cpl_error *error);

#endif
