/* The rows of the table of strategies, as strategies.def lists them. */
#ifndef CARPOOL_STRATEGY_ROWS_H
#define CARPOOL_STRATEGY_ROWS_H

#include "planner/strategy.h"

#define ROUTES(name)   extern const struct cpl_strategy cpl_strategy_##name;
#define SEARCHES(name) extern const struct cpl_strategy cpl_strategy_##name;
#include "planner/strategies/strategies.def"
#undef ROUTES
#undef SEARCHES

#endif
