/* direct: every message travels alone, in one wave. The plan that all others are measured against.
 */
#include "planner/strategy.h"

static enum cpl_status route(const struct cpl_strategy_input *input,
                             const struct cpl_strategy_numbers *numbers, struct cpl_routes *routes,
                             struct cpl_error *error)
{
    (void)numbers;
    return cpl_routes_init(input->pattern, 1, routes, error);
}

static int32_t most_hops(const struct cpl_strategy_input *input,
                         const struct cpl_strategy_numbers *numbers)
{
    (void)input;
    (void)numbers;
    return 1;
}

const struct cpl_strategy cpl_strategy_direct = {
    .name = "direct",
    .doc = "every message travels alone, as MPI would send it",
    .most_hops = most_hops,
    .candidates = cpl_strategy_add_itself,
    .route = route};
