/* vpt:n: store-and-forward on an n-dimensional virtual process topology (thesis 3.3, after
 * Selvitopi and Aykanat 2019).
 *
 * Ranks are points of an n-dimensional grid; in step d a message goes to the rank with its
 * destination's coordinate in dimension d. A rank sends at most the sum of (size - 1) messages,
 * whatever the pattern. Any number of ranks: where the sizes do not multiply to it, holes are stood
 * in for (grid.h). O(messages x n). */
#include "grid.h"
#include "strategy.h"

#include <stdio.h>

/* numbers: the dimensions. */
static enum cpl_status route(const struct cpl_strategy_input *input,
                             const struct cpl_strategy_numbers *numbers, struct cpl_routes *routes,
                             struct cpl_error *error)
{
    int32_t n_dims = numbers->at[0], size[CPL_MAX_DIMENSIONS];
    struct cpl_grid grid;
    enum cpl_status status = cpl_grid_even_sizes(input->pattern->n_ranks, n_dims, size, error);
    if (!status)
        status = cpl_grid_init(&grid, input->pattern->n_ranks, n_dims, size, error);
    return status ? status
                  : cpl_grid_route(input->pattern, &grid, CPL_GRID_NEAR_FIRST, routes, error);
}

static enum cpl_status parse(const struct cpl_strategy *strategy, const char *text,
                             struct cpl_strategy_numbers *numbers, struct cpl_error *error)
{
    numbers->n = 1;
    if (!text)
        return cpl_fail(error, CPL_ERR_ARG, "strategy vpt needs its dimensions, as in vpt:2");
    return cpl_strategy_parse_number(strategy, text, 1, CPL_MAX_DIMENSIONS, &numbers->at[0], error);
}

static void format(const struct cpl_strategy_numbers *numbers, char text[CPL_STRATEGY_TEXT])
{
    snprintf(text, CPL_STRATEGY_TEXT, "%d", (int)numbers->at[0]);
}

/* Dimensions from 2 (one is direct) to log2 of the ranks. */
static void candidates(const struct cpl_strategy *strategy, const struct cpl_strategy_input *input,
                       struct cpl_strategy_list *list)
{
    for (int32_t n = 2; n <= CPL_MAX_DIMENSIONS && INT64_C(1) << n <= input->pattern->n_ranks; n++)
        cpl_strategy_add(list, strategy, &(struct cpl_strategy_numbers){1, {n}});
}

const struct cpl_strategy cpl_strategy_vpt = {
    .name = "vpt",
    .parameter = ":DIMENSIONS",
    .doc = "store-and-forward on a virtual process topology of 1 to log2(ranks) dimensions; "
           "Selvitopi and Aykanat 2019",
    .parse = parse,
    .format = format,
    .candidates = candidates,
    .route = route};
