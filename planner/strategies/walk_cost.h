/* About what plans of walks (walk.h) take, from some of the pattern's messages and without making
 * the plans: in what order candidates are priced where there is no time for all. */
#ifndef CARPOOL_WALK_COST_H
#define CARPOOL_WALK_COST_H

#include "planner/arena.h"
#include "planner/plan/walk.h"
#include "planner/strategy.h"

/* The messages that are looked at. */
struct cpl_walk_looks {
    const struct cpl_strategy_input *input;
    int32_t every;   /* one message of so many */
    int64_t n;       /* messages */
    int32_t *source; /* of each */
    int32_t *dst;
    double *bytes;
};

/* Chooses one message in `every` (>= 1; 1: all); memory from the arena. Returns CPL_OK or
 * CPL_ERR_NOMEM. O(messages). */
enum cpl_status cpl_walk_looks_init(struct cpl_walk_looks *looks,
                                    const struct cpl_strategy_input *input, int32_t every,
                                    struct cpl_arena *arena);

/* About the time of the walk's plan, in microseconds. What messages of one payload share is not
 * seen, nor that ranks share cores. Returns CPL_OK or CPL_ERR_NOMEM. O(looks x waves + nodes x
 * waves + ranks). */
enum cpl_status cpl_walk_look(const struct cpl_walk_looks *looks, const struct cpl_walk *walk,
                              double *us);

#endif
