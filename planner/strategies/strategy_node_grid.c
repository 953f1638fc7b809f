/* node-grid: grids inside nodes and between them (node_grid.h). A message is gathered inside its
 * source's node, steps over a grid whose points are the nodes, from each to the rank in the same
 * place of the next, and is scattered inside its destination's node (Peters 2024, 3.2.2).
 *
 * node-grid:GATHER:BETWEEN:SCATTER are the numbers of dimensions of the three; GATHER may be 0,
 * which leaves it out. Grids are as even as possible. O(messages x steps). */
#include "planner/grid/grid.h"
#include "planner/grid/grid_shape.h"
#include "planner/strategies/node_grid.h"
#include "planner/strategies/rows.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Meaning of the numbers. */
enum { GATHER, BETWEEN, SCATTER, N_PARTS };

static enum cpl_status make_steps(const struct cpl_machine *machine,
                                  const struct cpl_strategy_numbers *numbers,
                                  struct cpl_node_grid *steps, struct cpl_error *error)
{
    int32_t size[CPL_MAX_DIMENSIONS], n_nodes = machine->n_nodes;
    *steps = (struct cpl_node_grid){.n_gather = numbers->at[GATHER],
                                    .order = CPL_GRID_NEAR_FIRST,
                                    .n_scatter = numbers->at[SCATTER]};
    if (cpl_grid_even_sizes(n_nodes, numbers->at[BETWEEN], size, NULL))
        return cpl_fail(error, CPL_ERR_UNFIT, "%d nodes fit 1 to %d dimensions between, not %d",
                        (int)n_nodes, (int)cpl_grid_most_dimensions(n_nodes),
                        (int)numbers->at[BETWEEN]);
    return cpl_grid_init(&steps->between, n_nodes, numbers->at[BETWEEN], size, error);
}

static enum cpl_status route(const struct cpl_strategy_input *input,
                             const struct cpl_strategy_numbers *numbers, struct cpl_routes *routes,
                             struct cpl_error *error)
{
    struct cpl_node_grid steps;
    enum cpl_status status = make_steps(input->machine, numbers, &steps, error);
    return status ? status
                  : cpl_node_grid_route(input->pattern, input->machine, &steps, routes, error);
}

static enum cpl_status router(const struct cpl_strategy_input *input,
                              const struct cpl_strategy_numbers *numbers, struct cpl_router *router,
                              struct cpl_error *error)
{
    struct cpl_node_grid steps;
    enum cpl_status status = make_steps(input->machine, numbers, &steps, error);
    return status ? status : cpl_node_grid_router(input->machine, &steps, router, error);
}

static int32_t most_hops(const struct cpl_strategy_input *input,
                         const struct cpl_strategy_numbers *numbers)
{
    (void)input;
    return numbers->at[GATHER] + numbers->at[BETWEEN] + numbers->at[SCATTER];
}

static enum cpl_status parse(const struct cpl_strategy *strategy, const char *text,
                             struct cpl_strategy_numbers *numbers, struct cpl_error *error)
{
    static const long low[N_PARTS] = {[GATHER] = 0, [BETWEEN] = 1, [SCATTER] = 1};
    struct cpl_strategy_numbers parsed = {.n = 0};
    const char *rest = text ? text : "";
    (void)strategy;
    while (*rest >= '0' && *rest <= '9' && parsed.n < N_PARTS) {
        char *end;
        long number = strtol(rest, &end, 10);
        if (number < low[parsed.n] || number > CPL_MAX_DIMENSIONS)
            break;
        parsed.at[parsed.n++] = (int32_t)number;
        rest = *end == ':' && parsed.n < N_PARTS ? end + 1 : end;
    }
    if (parsed.n < N_PARTS || *rest)
        return cpl_fail(
            error, CPL_ERR_ARG,
            "strategy node-grid takes dimensions inside, between and inside nodes, each "
            "1 to %d (the first may be 0), as in node-grid:1:2:1, not '%s'",
            CPL_MAX_DIMENSIONS, text ? text : "");
    *numbers = parsed;
    return CPL_OK;
}

static void format(const struct cpl_strategy_numbers *numbers, char text[CPL_STRATEGY_TEXT])
{
    snprintf(text, CPL_STRATEGY_TEXT, "%d:%d:%d", (int)numbers->at[GATHER],
             (int)numbers->at[BETWEEN], (int)numbers->at[SCATTER]);
}

/* Whether another strategy does the same: node:partner, or grid:locality. */
static bool is_known(const struct cpl_strategy_numbers *numbers, int32_t n_nodes)
{
    return numbers->at[GATHER] == 0 && numbers->at[SCATTER] == 1 &&
           (numbers->at[BETWEEN] == 1 || numbers->at[BETWEEN] == cpl_grid_log2(n_nodes));
}

/* For nodes of more than one rank. */
static void candidates(const struct cpl_strategy *strategy, const struct cpl_strategy_input *input,
                       struct cpl_strategy_list *list)
{
    static const struct cpl_strategy_numbers numbers[] = {
        {N_PARTS, {0, 1, 2}}, {N_PARTS, {0, 1, 3}}, {N_PARTS, {0, 2, 1}}, {N_PARTS, {0, 2, 2}},
        {N_PARTS, {0, 2, 3}}, {N_PARTS, {0, 3, 2}}, {N_PARTS, {0, 3, 3}}, {N_PARTS, {1, 1, 1}},
        {N_PARTS, {2, 1, 2}}, {N_PARTS, {2, 1, 3}}, {N_PARTS, {2, 2, 2}}};
    const struct cpl_machine *machine = input->machine;
    if (machine->n_nodes < 2 || machine->n_nodes == machine->n_ranks)
        return;
    int32_t most_between = cpl_grid_most_dimensions(machine->n_nodes);
    int32_t most_inside = cpl_grid_most_dimensions(machine->n_ranks / machine->n_nodes);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        if (numbers[k].at[GATHER] <= most_inside && numbers[k].at[BETWEEN] <= most_between &&
            numbers[k].at[SCATTER] <= most_inside && !is_known(&numbers[k], machine->n_nodes))
            cpl_strategy_add(list, strategy, &numbers[k]);
}

const struct cpl_strategy cpl_strategy_node_grid = {
    .name = "node-grid",
    .parameter = ":GATHER:BETWEEN:SCATTER",
    .doc = "gathers inside the node, walks over a grid of nodes from rank to rank of the same "
           "place, scatters inside the node, in so many dimensions each; Peters 2024",
    .examples = "node-grid:1:1:1",
    .most_hops = most_hops,
    .parse = parse,
    .format = format,
    .candidates = candidates,
    .route = route,
    .router = router};
