/* part-grid:N and part-grid:product: a grid for each part of the pattern (grid/parts.h), over its
 * ranks only, node by node.
 *
 * Grids are as even as possible, of N dimensions or as many as the part fits. With `product`, parts
 * in which ranks exchange with their neighbours in a grid of processes (grid/product.h) have that
 * grid, others one of three dimensions. So plans do not depend on the numbers of the ranks, and
 * small parts not on how many ranks there are besides. O(messages x steps), and what finding
 * products takes. */
#include "planner/grid/grid.h"
#include "planner/grid/parts.h"
#include "planner/grid/product.h"
#include "planner/strategies/rows.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PRODUCT 0 /* as the number of dimensions */

#define OTHERS_DIMENSIONS 3 /* of parts that are no products */
#define MOST_CANDIDATES   4 /* candidates have so many dimensions at most */

struct part_grids {
    struct cpl_parts parts;
    const struct cpl_grid **grid; /* per part; NULL: it is one rank */
    int32_t n_waves;
    bool has_products;
};

/* Even grids of all parts; parts of one size share one. */
static enum cpl_status make_even(struct part_grids *g, int32_t n_dims, struct cpl_arena *arena)
{
    int32_t size[CPL_MAX_DIMENSIONS], n_ranks = g->parts.first[g->parts.n_parts];
    struct cpl_grid **of_size = CPL_ARENA_ARRAY(arena, struct cpl_grid *, n_ranks + 1);
    if (!of_size)
        return CPL_ERR_NOMEM;
    for (int32_t k = 0; k < g->parts.n_parts; k++) {
        int32_t n = cpl_part_size(&g->parts, k), most = cpl_grid_most_dimensions(n);
        if (n > 1 && !of_size[n]) {
            int32_t fitting = n_dims < most ? n_dims : most;
            of_size[n] = CPL_ARENA_ARRAY(arena, struct cpl_grid, 1);
            if (!of_size[n])
                return CPL_ERR_NOMEM;
            enum cpl_status status = cpl_grid_even_sizes(n, fitting, size, NULL);
            if (!status)
                status = cpl_grid_init(of_size[n], n, fitting, size, NULL);
            if (status)
                return status;
        }
        g->grid[k] = of_size[n];
    }
    return CPL_OK;
}

/* The grids of the parts that are products. */
static enum cpl_status make_products(const struct cpl_strategy_input *input, struct part_grids *g,
                                     struct cpl_arena *arena)
{
    struct cpl_neighbours neighbours;
    enum cpl_status status = cpl_neighbours_find(input->pattern, arena, &neighbours);
    for (int32_t k = 0; k < g->parts.n_parts && !status; k++) {
        struct cpl_grid grid, *kept;
        bool found = false;
        status = cpl_product_find(&neighbours, input->machine, &g->parts, k, &grid, &found);
        if (!found)
            continue;
        g->has_products = true;
        kept = CPL_ARENA_ARRAY(arena, struct cpl_grid, 1);
        if (!kept)
            return CPL_ERR_NOMEM;
        *kept = grid;
        g->grid[k] = kept;
    }
    return status;
}

static enum cpl_status make_grids(const struct cpl_strategy_input *input, int32_t n_dims,
                                  struct part_grids *g, struct cpl_arena *arena,
                                  struct cpl_error *error)
{
    enum cpl_status status = cpl_parts_find(input->pattern, input->machine, arena, &g->parts);
    if (!status) {
        g->grid = CPL_ARENA_ARRAY(arena, const struct cpl_grid *, g->parts.n_parts);
        status = g->grid ? make_even(g, n_dims == PRODUCT ? OTHERS_DIMENSIONS : n_dims, arena)
                         : CPL_ERR_NOMEM;
    }
    if (!status && n_dims == PRODUCT)
        status = make_products(input, g, arena);
    if (status)
        return cpl_fail_memory(error, "the grids of parts");
    g->n_waves = 1;
    for (int32_t k = 0; k < g->parts.n_parts; k++)
        if (g->grid[k] && g->grid[k]->n_dims > g->n_waves)
            g->n_waves = g->grid[k]->n_dims;
    return CPL_OK;
}

/* The stops of a message. */
static void router(const struct part_grids *g, int32_t src, int32_t dst, int32_t *stops)
{
    const struct cpl_parts *parts = &g->parts;
    const struct cpl_grid *grid = g->grid[parts->part[src]];
    const int32_t *ranks = parts->ranks + parts->first[parts->part[src]];
    int32_t at = parts->place[src];
    for (int32_t s = 0; s < g->n_waves; s++) {
        if (s < grid->n_dims)
            at = cpl_grid_step(grid, at, parts->place[dst], s);
        stops[s] = ranks[at];
    }
}

static enum cpl_status route(const struct cpl_strategy_input *input,
                             const struct cpl_strategy_numbers *numbers, struct cpl_routes *routes,
                             struct cpl_error *error)
{
    const struct cpl_pattern *pattern = input->pattern;
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct part_grids g = {.n_waves = 0};
    enum cpl_status status = make_grids(input, numbers->at[0], &g, &arena, error);
    if (!status)
        status = cpl_routes_init(pattern, g.n_waves, routes, error);
    for (int32_t i = 0; i < pattern->n_ranks && !status; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++)
            router(&g, i, pattern->dst[m], cpl_routes_of(routes, m));
    cpl_arena_free(&arena);
    return status;
}

/* Whether there are products, or the ranks of a part are others than all, or in another order: else
 * vpt:N does the same. */
static enum cpl_status applies(const struct cpl_strategy_input *input,
                               const struct cpl_strategy_numbers *numbers, bool *does,
                               struct cpl_error *error)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct part_grids g = {.n_waves = 0};
    enum cpl_status status = make_grids(input, numbers->at[0], &g, &arena, error);
    *does = g.has_products;
    if (!status && numbers->at[0] != PRODUCT) {
        *does = g.parts.n_parts > 1;
        for (int32_t i = 0; i < input->pattern->n_ranks; i++)
            *does |= g.parts.place[i] != i;
    }
    cpl_arena_free(&arena);
    return status;
}

static int32_t most_hops(const struct cpl_strategy_input *input,
                         const struct cpl_strategy_numbers *numbers)
{
    int32_t most = cpl_grid_most_dimensions(input->pattern->n_ranks);
    return numbers->at[0] == PRODUCT || numbers->at[0] > most ? most : numbers->at[0];
}

static enum cpl_status parse(const struct cpl_strategy *strategy, const char *text,
                             struct cpl_strategy_numbers *numbers, struct cpl_error *error)
{
    *numbers = (struct cpl_strategy_numbers){1, {PRODUCT}};
    if (!text)
        return cpl_fail(
            error, CPL_ERR_ARG,
            "strategy part-grid needs its dimensions, as in part-grid:2, or part-grid:product");
    return strcmp(text, "product") == 0
               ? CPL_OK
               : cpl_strategy_parse_number(strategy, text, 1, CPL_MAX_DIMENSIONS, &numbers->at[0],
                                           error);
}

static void format(const struct cpl_strategy_numbers *numbers, char text[CPL_STRATEGY_TEXT])
{
    if (numbers->at[0] == PRODUCT)
        snprintf(text, CPL_STRATEGY_TEXT, "product");
    else
        snprintf(text, CPL_STRATEGY_TEXT, "%d", (int)numbers->at[0]);
}

static void candidates(const struct cpl_strategy *strategy, const struct cpl_strategy_input *input,
                       struct cpl_strategy_list *list)
{
    int32_t most = cpl_grid_most_dimensions(input->pattern->n_ranks);
    if (most < 2)
        return;
    cpl_strategy_add(list, strategy, &(struct cpl_strategy_numbers){1, {PRODUCT}});
    for (int32_t n = 2; n <= most && n <= MOST_CANDIDATES; n++)
        cpl_strategy_add(list, strategy, &(struct cpl_strategy_numbers){1, {n}});
}

const struct cpl_strategy cpl_strategy_part_grid = {
    .name = "part-grid",
    .parameter = ":DIMENSIONS|product",
    .doc = "a grid of so many dimensions for each set of ranks that messages join, node by "
           "node; or that in which its ranks are neighbours (product)",
    .examples = "part-grid:2",
    .most_hops = most_hops,
    .parse = parse,
    .format = format,
    .candidates = candidates,
    .applies = applies,
    .route = route};
