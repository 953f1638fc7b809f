/* vpt:n: store-and-forward on an n-dimensional virtual process topology (thesis 3.3, after
 * Selvitopi and Aykanat 2019).
 *
 * Ranks are points of an n-dimensional grid; in step d a message goes to the rank with its
 * destination's coordinate in dimension d. A rank sends at most the sum of (size - 1) messages,
 * whatever the pattern. Any number of ranks: where the sizes do not multiply to it, holes are stood
 * in for (grid.h). vpt:n+MAP: with another assignment of ranks to points (map.h) where that is
 * modelled faster. O(messages x n), and what the map takes. */
#include "planner/grid/grid.h"
#include "planner/strategies/grid_mapped.h"
#include "planner/strategies/rows.h"

#include <stdio.h>

#define MAPPED_DIMENSIONS 4 /* candidates with a map have so many dimensions at most */

/* Meaning of the numbers. */
enum { AT_DIMENSIONS, AT_MAP, N_NUMBERS };

static enum cpl_status make_grid(int32_t n_ranks, int32_t n_dims, struct cpl_grid *grid,
                                 struct cpl_error *error)
{
    int32_t size[CPL_MAX_DIMENSIONS];
    enum cpl_status status = cpl_grid_even_sizes(n_ranks, n_dims, size, error);
    return status ? status : cpl_grid_init(grid, n_ranks, n_dims, size, error);
}

static enum cpl_status route(const struct cpl_strategy_input *input,
                             const struct cpl_strategy_numbers *numbers, struct cpl_routes *routes,
                             struct cpl_error *error)
{
    enum cpl_map map = (enum cpl_map)numbers->at[AT_MAP];
    struct cpl_grid grid;
    enum cpl_status status =
        make_grid(input->pattern->n_ranks, numbers->at[AT_DIMENSIONS], &grid, error);
    return status ? status
                  : cpl_grid_mapped_route(input, &grid, CPL_GRID_NEAR_FIRST, map, routes, error);
}

static enum cpl_status router(const struct cpl_strategy_input *input,
                              const struct cpl_strategy_numbers *numbers, struct cpl_router *router,
                              struct cpl_error *error)
{
    struct cpl_grid grid;
    if (numbers->at[AT_MAP] != CPL_MAP_NONE)
        return cpl_fail_map_router(error);
    enum cpl_status status =
        make_grid(input->pattern->n_ranks, numbers->at[AT_DIMENSIONS], &grid, error);
    return status ? status : cpl_grid_router(&grid, CPL_GRID_NEAR_FIRST, router, error);
}

static int32_t most_hops(const struct cpl_strategy_input *input,
                         const struct cpl_strategy_numbers *numbers)
{
    (void)input;
    return numbers->at[AT_DIMENSIONS];
}

static enum cpl_status parse(const struct cpl_strategy *strategy, const char *text,
                             struct cpl_strategy_numbers *numbers, struct cpl_error *error)
{
    struct cpl_strategy_numbers parsed = {.n = N_NUMBERS};
    char dimensions[CPL_STRATEGY_TEXT];
    enum cpl_map map;
    if (!text)
        return cpl_fail(error, CPL_ERR_ARG, "strategy vpt needs its dimensions, as in vpt:2");
    if (cpl_grid_mapped_parse(strategy, text, dimensions, &map, error) ||
        cpl_strategy_parse_number(strategy, dimensions, 1, CPL_MAX_DIMENSIONS,
                                  &parsed.at[AT_DIMENSIONS], error))
        return CPL_ERR_ARG;
    parsed.at[AT_MAP] = (int32_t)map;
    *numbers = parsed;
    return CPL_OK;
}

static void format(const struct cpl_strategy_numbers *numbers, char text[CPL_STRATEGY_TEXT])
{
    snprintf(text, CPL_STRATEGY_TEXT, "%d", (int)numbers->at[AT_DIMENSIONS]);
    cpl_grid_mapped_format((enum cpl_map)numbers->at[AT_MAP], text);
}

/* Dimensions from 2 (one is direct) to log2 of the ranks; the first few also with the map that is
 * made quickly. */
static void candidates(const struct cpl_strategy *strategy, const struct cpl_strategy_input *input,
                       struct cpl_strategy_list *list)
{
    int32_t n_ranks = input->pattern->n_ranks, most = cpl_grid_most_dimensions(n_ranks);
    struct cpl_grid grid;
    for (int32_t n = 2; n <= most; n++)
        cpl_strategy_add(list, strategy,
                         &(struct cpl_strategy_numbers){N_NUMBERS, {n, CPL_MAP_NONE}});
    for (int32_t n = 2; n <= most && n <= MAPPED_DIMENSIONS; n++)
        if (!make_grid(n_ranks, n, &grid, NULL) && !cpl_map_fits(CPL_MAP_KLR, &grid, NULL))
            cpl_strategy_add(list, strategy,
                             &(struct cpl_strategy_numbers){N_NUMBERS, {n, CPL_MAP_KLR}});
}

const struct cpl_strategy cpl_strategy_vpt = {
    .name = "vpt",
    .parameter = ":DIMENSIONS[+klf|klr|near|doubling]",
    .doc = "store-and-forward on a virtual process topology of 1 to log2(ranks) dimensions, ranks "
           "in their order or mapped to it by volume (klf, klr) or by the machine; Selvitopi and "
           "Aykanat 2019",
    .examples = "vpt:2, vpt:3",
    .most_hops = most_hops,
    .parse = parse,
    .format = format,
    .candidates = candidates,
    .route = route,
    .router = router};
