/* direct: every message travels alone, in one wave. The plan that all others are measured against.
 */
#include "strategy.h"

enum cpl_status cpl_direct_route(const struct cpl_strategy_input *input, int32_t parameter,
                                 struct cpl_routes *routes, struct cpl_error *error)
{
    (void)parameter;
    return cpl_routes_init(input->pattern, 1, routes, error);
}
