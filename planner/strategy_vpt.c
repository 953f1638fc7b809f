/* vpt:n: store-and-forward on an n-dimensional virtual process topology (thesis 3.3, after
 * Selvitopi and Aykanat 2019).
 *
 * Ranks are points of an n-dimensional grid; in step d a message goes to the rank with its
 * destination's coordinate in dimension d. A rank sends at most the sum of (size - 1) messages,
 * whatever the pattern. Any number of ranks: where the sizes do not multiply to it, holes are stood
 * in for (grid.h). O(messages x n). */
#include "grid.h"
#include "strategy.h"

enum cpl_status cpl_vpt_route(const struct cpl_strategy_input *input, int32_t parameter,
                              struct cpl_routes *routes, struct cpl_error *error)
{
    const struct cpl_pattern *p = input->pattern;
    int32_t size[CPL_MAX_DIMENSIONS];
    struct cpl_grid grid;
    enum cpl_status status = cpl_grid_even_sizes(p->n_ranks, parameter, size, error);
    if (!status)
        status = cpl_grid_init(&grid, p->n_ranks, parameter, size, error);
    if (!status)
        status = cpl_routes_init(p, parameter, routes, error);
    if (status)
        return status;
    for (int32_t i = 0; i < p->n_ranks; i++)
        for (int64_t m = p->first[i]; m < p->first[i + 1]; m++) {
            int32_t *stops = cpl_routes_of(routes, m);
            int32_t at = i;
            for (int32_t d = 0; d < parameter; d++)
                stops[d] = at = cpl_grid_step(&grid, at, p->dst[m], d);
        }
    return CPL_OK;
}
