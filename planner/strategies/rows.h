/* The rows of the table of strategies, as strategies.def lists them, and what they share. */
#ifndef CARPOOL_STRATEGY_ROWS_H
#define CARPOOL_STRATEGY_ROWS_H

#include "planner/strategy.h"

#define ROUTES(name)   extern const struct cpl_strategy cpl_strategy_##name;
#define SEARCHES(name) extern const struct cpl_strategy cpl_strategy_##name;
#include "planner/strategies/strategies.def"
#undef ROUTES
#undef SEARCHES

/* cpl_strategy_time that may give up: *us is INFINITY then, and the time is above limit_us. */
enum cpl_status cpl_strategy_time_below(const struct cpl_strategy_input *input,
                                        const struct cpl_routes *routes, double limit_us,
                                        double *us, struct cpl_error *error);

#endif
