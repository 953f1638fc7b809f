/* Maps of ranks to points of a grid: the choice between them (map.h). */
#include "planner/grid/map.h"

static const char *const names[CPL_N_MAPS] = {[CPL_MAP_NONE] = "",
                                              [CPL_MAP_KLF] = "klf",
                                              [CPL_MAP_KLR] = "klr",
                                              [CPL_MAP_NEAR] = "near",
                                              [CPL_MAP_DOUBLING] = "doubling"};

const char *cpl_map_name(enum cpl_map map)
{
    return names[map];
}

int32_t cpl_map_hops(const struct cpl_grid *grid, int32_t a, int32_t b)
{
    int32_t hops = 0;
    for (int32_t d = 0; d < grid->n_dims; d++)
        hops += a / grid->stride[d] % grid->size[d] != b / grid->stride[d] % grid->size[d];
    return hops;
}

double cpl_map_forwarded(const struct cpl_pattern *pattern, const struct cpl_grid *grid,
                         const int32_t *position)
{
    double sum = 0;
    for (int32_t i = 0; i < pattern->n_ranks; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++) {
            int32_t dest = pattern->dst[m];
            sum += (double)pattern->volume[m] *
                   cpl_map_hops(grid, position ? position[i] : i, position ? position[dest] : dest);
        }
    return sum;
}

enum cpl_status cpl_map_fits(enum cpl_map map, const struct cpl_grid *grid, struct cpl_error *error)
{
    int64_t sum = 0;
    for (int32_t d = 0; d < grid->n_dims; d++)
        sum += grid->size[d];
    if (map == CPL_MAP_KLF && grid->n_ranks > CPL_MAP_KLF_RANKS)
        return cpl_fail(error, CPL_ERR_UNFIT, "klf is for at most %d ranks, not %d; try klr",
                        CPL_MAP_KLF_RANKS, (int)grid->n_ranks);
    if (map == CPL_MAP_KLR && grid->n_ranks > CPL_MAP_CELLS / sum)
        return cpl_fail(error, CPL_ERR_UNFIT,
                        "klr on %d ranks is for grids whose sizes sum up to %d at most, not %lld",
                        (int)grid->n_ranks, CPL_MAP_CELLS / (int)grid->n_ranks, (long long)sum);
    return CPL_OK;
}

enum cpl_status cpl_map_make(enum cpl_map map, const struct cpl_pattern *pattern,
                             const struct cpl_machine *machine, const struct cpl_grid *grid,
                             int32_t *position, struct cpl_error *error)
{
    enum cpl_status status = cpl_map_fits(map, grid, error);
    if (status)
        return status;
    for (int32_t i = 0; i < grid->n_ranks; i++)
        position[i] = i;
    if (map == CPL_MAP_KLF || map == CPL_MAP_KLR)
        status = cpl_map_by_swaps(map, pattern, grid, position);
    else if (map != CPL_MAP_NONE)
        status = map == CPL_MAP_NEAR ? cpl_map_near(machine, position)
                                     : cpl_map_doubling(machine, position);
    return status ? cpl_fail_memory(error, "mapping the ranks") : CPL_OK;
}
