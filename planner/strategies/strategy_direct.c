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

const struct cpl_strategy cpl_strategy_direct = {
    .name = "direct",
    .doc = "every message travels alone, as MPI would send it",
    .parse = cpl_strategy_parse_none,
    .format = cpl_strategy_format_none,
    .candidates = cpl_strategy_candidate_none,
    .route = route};
