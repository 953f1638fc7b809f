/* grid:AxBx... and grid:SHAPE: store-and-forward on a virtual grid of given sizes, or of one of the
 * shapes of Peters 2024, 5.2.1.
 *
 * Sizes are written in the order of the steps. The first step goes to neighbouring ranks, which are
 * usually on the same node, and the last one to far ranks; after "far:" it is the other way round,
 * which is Peters's order: every step divides the range of ranks that a message can still reach,
 * and the last steps stay inside nodes. The size of the step between the farthest ranks is cut to
 * what the ranks need; holes are stood in for (grid.h).
 *
 * Shapes: equal, hypercube, increase, decrease, hourglass, inverse-hourglass (grid_shape.h), and
 * locality: a hypercube whose points are the nodes, then one step inside the destination's node
 * (node_grid.h). A suffix +MAP (not of locality) assigns the ranks to the points in another way
 * where that is modelled faster (grid_mapped.h). O(messages x steps), and what the map takes. */
#include "planner/grid/grid.h"
#include "planner/grid/grid_shape.h"
#include "planner/strategies/grid_mapped.h"
#include "planner/strategies/node_grid.h"
#include "planner/strategies/rows.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Meaning of the numbers. After them come sizes, or the dimensions of a shape if given. */
enum { AT_SHAPE, AT_ORDER, AT_MAP, N_FIXED };

/* What grid_shape.h does not have. */
enum { SHAPE_LOCALITY = CPL_N_SHAPES, SHAPE_SIZES, N_SHAPES = SHAPE_SIZES };

static const char far_prefix[] = "far:";

static const char *shape_name(int32_t shape)
{
    return shape == SHAPE_LOCALITY ? "locality" : cpl_grid_shape_name((enum cpl_grid_shape)shape);
}

static bool takes_dimensions(int32_t shape)
{
    return shape != CPL_SHAPE_HYPERCUBE && shape != SHAPE_LOCALITY;
}

/* The sizes of a shape or those given, in the order of the steps. */
static enum cpl_status step_sizes(const struct cpl_strategy_numbers *numbers, int32_t n_points,
                                  int32_t *n, int32_t *size, struct cpl_error *error)
{
    int32_t shape = numbers->at[AT_SHAPE];
    if (shape == SHAPE_LOCALITY)
        shape = CPL_SHAPE_HYPERCUBE;
    if (shape != SHAPE_SIZES)
        return cpl_grid_shape_sizes((enum cpl_grid_shape)shape, n_points,
                                    numbers->n > N_FIXED ? numbers->at[N_FIXED] : 0, n, size,
                                    error);
    *n = numbers->n - N_FIXED;
    memcpy(size, numbers->at + N_FIXED, (size_t)*n * sizeof *size);
    return CPL_OK;
}

/* Says why sizes do not fit, and which would. */
static enum cpl_status fail_unfit(const struct cpl_error *why, int32_t n_ranks,
                                  struct cpl_error *error)
{
    int32_t size[2] = {1, 1};
    cpl_grid_even_sizes(n_ranks, n_ranks < 4 ? 1 : 2, size, NULL);
    return cpl_fail(error, CPL_ERR_UNFIT, "%s; grid:%dx%d fits", why->text, (int)size[0],
                    (int)size[1]);
}

/* The grid of n_points whose routes in the order of the numbers has the steps that they say. */
static enum cpl_status make_grid(const struct cpl_strategy_numbers *numbers, int32_t n_points,
                                 struct cpl_grid *grid, struct cpl_error *error)
{
    int32_t n, step[CPL_MAX_DIMENSIONS], size[CPL_MAX_DIMENSIONS];
    struct cpl_error why = {""};
    enum cpl_status status = step_sizes(numbers, n_points, &n, step, error);
    if (status)
        return status;
    for (int32_t d = 0; d < n; d++)
        size[d] = step[numbers->at[AT_ORDER] == CPL_GRID_FAR_FIRST ? n - 1 - d : d];
    status = cpl_grid_init(grid, n_points, n, size, &why);
    return status ? fail_unfit(&why, n_points, error) : CPL_OK;
}

static enum cpl_status route(const struct cpl_strategy_input *input,
                             const struct cpl_strategy_numbers *numbers, struct cpl_routes *routes,
                             struct cpl_error *error)
{
    enum cpl_grid_order order = (enum cpl_grid_order)numbers->at[AT_ORDER];
    if (numbers->at[AT_SHAPE] == SHAPE_LOCALITY) {
        struct cpl_node_grid steps = {.n_gather = 0, .order = order, .n_scatter = 1};
        enum cpl_status status = make_grid(numbers, input->machine->n_nodes, &steps.between, error);
        return status ? status
                      : cpl_node_grid_route(input->pattern, input->machine, &steps, routes, error);
    }
    struct cpl_grid grid;
    enum cpl_status status = make_grid(numbers, input->pattern->n_ranks, &grid, error);
    return status ? status
                  : cpl_grid_mapped_route(input, &grid, order, (enum cpl_map)numbers->at[AT_MAP],
                                          routes, error);
}

static enum cpl_status router(const struct cpl_strategy_input *input,
                              const struct cpl_strategy_numbers *numbers, struct cpl_router *router,
                              struct cpl_error *error)
{
    enum cpl_grid_order order = (enum cpl_grid_order)numbers->at[AT_ORDER];
    bool locality = numbers->at[AT_SHAPE] == SHAPE_LOCALITY;
    struct cpl_node_grid steps = {.n_gather = 0, .order = order, .n_scatter = 1};
    if (numbers->at[AT_MAP] != CPL_MAP_NONE)
        return cpl_fail_map_router(error);
    enum cpl_status status =
        make_grid(numbers, locality ? input->machine->n_nodes : input->pattern->n_ranks,
                  &steps.between, error);
    if (status)
        return status;
    return locality ? cpl_node_grid_router(input->machine, &steps, router, error)
                    : cpl_grid_router(&steps.between, order, router, error);
}

static enum cpl_status fail_parse(const char *text, struct cpl_error *error)
{
    char shapes[120];
    size_t used = 0;
    for (int32_t shape = 0; shape < N_SHAPES; shape++)
        used += (size_t)snprintf(shapes + used, sizeof shapes - used, ", %s", shape_name(shape));
    return cpl_fail(error, CPL_ERR_ARG,
                    "strategy grid takes 1 to %d sizes, as in grid:8x64 or grid:far:8x64, or one "
                    "of%s, not '%s'",
                    CPL_MAX_DIMENSIONS, shapes + 1, text);
}

/* Parses "AxBx..."; no more points than a grid of the most ranks can need before the last size. */
static bool parse_sizes(const char *text, struct cpl_strategy_numbers *numbers)
{
    int64_t points = 1;
    for (;;) {
        char *end;
        long size = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : 0;
        if (size < 1 || size > CPL_MAX_RANKS || points > CPL_MAX_RANKS ||
            numbers->n == N_FIXED + CPL_MAX_DIMENSIONS)
            return false;
        points *= size;
        numbers->at[numbers->n++] = (int32_t)size;
        if (!*end)
            return true;
        if (*end != 'x')
            return false;
        text = end + 1;
    }
}

/* Parses "SHAPE" or "SHAPE:DIMENSIONS". */
static bool parse_shape(const char *text, struct cpl_strategy_numbers *numbers)
{
    size_t length = strcspn(text, ":");
    int32_t shape = 0;
    while (shape < N_SHAPES &&
           (strlen(shape_name(shape)) != length || strncmp(shape_name(shape), text, length) != 0))
        shape++;
    if (shape == N_SHAPES || (text[length] && !takes_dimensions(shape)))
        return false;
    numbers->at[AT_SHAPE] = shape;
    return true;
}

/* Parses what is left of the text without order and map. */
static enum cpl_status parse_steps(const struct cpl_strategy *strategy, const char *left,
                                   const char *text, struct cpl_strategy_numbers *numbers,
                                   struct cpl_error *error)
{
    if (!parse_shape(left, numbers))
        return parse_sizes(left, numbers) ? CPL_OK : fail_parse(text ? text : "", error);
    const char *colon = strchr(left, ':');
    return colon ? cpl_strategy_parse_number(strategy, colon + 1, 1, CPL_MAX_DIMENSIONS,
                                             &numbers->at[numbers->n++], error)
                 : CPL_OK;
}

static int32_t most_hops(const struct cpl_strategy_input *input,
                         const struct cpl_strategy_numbers *numbers)
{
    enum cpl_grid_order order = (enum cpl_grid_order)numbers->at[AT_ORDER];
    bool locality = numbers->at[AT_SHAPE] == SHAPE_LOCALITY;
    struct cpl_grid grid;
    if (make_grid(numbers, locality ? input->machine->n_nodes : input->pattern->n_ranks, &grid,
                  NULL))
        return 0;
    return cpl_grid_n_steps(&grid, order) + locality;
}

static enum cpl_status parse(const struct cpl_strategy *strategy, const char *text,
                             struct cpl_strategy_numbers *numbers, struct cpl_error *error)
{
    struct cpl_strategy_numbers parsed = {N_FIXED, {SHAPE_SIZES, CPL_GRID_NEAR_FIRST}};
    char front[CPL_STRATEGY_TEXT];
    const char *rest = front;
    enum cpl_map map;
    if (cpl_grid_mapped_parse(strategy, text, front, &map, error))
        return CPL_ERR_ARG;
    parsed.at[AT_MAP] = (int32_t)map;
    if (strncmp(rest, far_prefix, strlen(far_prefix)) == 0) {
        parsed.at[AT_ORDER] = CPL_GRID_FAR_FIRST;
        rest += strlen(far_prefix);
    }
    if (parse_steps(strategy, rest, text, &parsed, error))
        return CPL_ERR_ARG;
    if (parsed.at[AT_SHAPE] == SHAPE_LOCALITY && map != CPL_MAP_NONE)
        return cpl_fail(error, CPL_ERR_ARG, "strategy grid:locality takes no +%s",
                        cpl_map_name(map));
    *numbers = parsed;
    return CPL_OK;
}

static void format(const struct cpl_strategy_numbers *numbers, char text[CPL_STRATEGY_TEXT])
{
    int32_t shape = numbers->at[AT_SHAPE];
    size_t used = (size_t)snprintf(text, CPL_STRATEGY_TEXT, "%s%s",
                                   numbers->at[AT_ORDER] == CPL_GRID_FAR_FIRST ? far_prefix : "",
                                   shape == SHAPE_SIZES ? "" : shape_name(shape));
    for (int32_t k = N_FIXED; k < numbers->n && used < CPL_STRATEGY_TEXT; k++)
        used += (size_t)snprintf(text + used, CPL_STRATEGY_TEXT - used, "%s%d",
                                 shape != SHAPE_SIZES ? ":"
                                 : k > N_FIXED        ? "x"
                                                      : "",
                                 (int)numbers->at[k]);
    cpl_grid_mapped_format((enum cpl_map)numbers->at[AT_MAP], text);
}

/* Grids that are in the list of candidates already. */
struct known {
    int32_t n;
    struct {
        enum cpl_grid_order order;
        struct cpl_grid grid;
    } at[CPL_MAX_CANDIDATES];
};

/* Whether the grid is new: then it is known from now on. */
static bool learn(struct known *known, enum cpl_grid_order order, const struct cpl_grid *grid)
{
    for (int32_t k = 0; k < known->n; k++)
        if (known->at[k].order == order && known->at[k].grid.n_dims == grid->n_dims &&
            memcmp(known->at[k].grid.size, grid->size, sizeof grid->size) == 0)
            return false;
    if (known->n == CPL_MAX_CANDIDATES)
        return false;
    known->at[known->n].order = order;
    known->at[known->n++].grid = *grid;
    return true;
}

static void learn_vpt(struct known *known, int32_t n_ranks)
{
    int32_t size[CPL_MAX_DIMENSIONS];
    struct cpl_grid grid;
    for (int32_t n = 1; n <= cpl_grid_most_dimensions(n_ranks); n++)
        if (!cpl_grid_even_sizes(n_ranks, n, size, NULL) &&
            !cpl_grid_init(&grid, n_ranks, n, size, NULL))
            learn(known, CPL_GRID_NEAR_FIRST, &grid);
}

/* Adds the numbers in both orders where they give a new grid with more than one step. */
static void offer(const struct cpl_strategy *strategy, int32_t n_ranks, struct known *known,
                  struct cpl_strategy_numbers numbers, struct cpl_strategy_list *list)
{
    static const enum cpl_grid_order orders[] = {CPL_GRID_FAR_FIRST, CPL_GRID_NEAR_FIRST};
    for (size_t k = 0; k < 2; k++) {
        struct cpl_grid grid;
        numbers.at[AT_ORDER] = orders[k];
        if (!make_grid(&numbers, n_ranks, &grid, NULL) && grid.n_dims > 1 &&
            learn(known, orders[k], &grid))
            cpl_strategy_add(list, strategy, &numbers);
    }
}

/* From four ranks on (fewer have nothing to combine): all shapes; equal sizes in three dimensions;
 * grids of two power-of-two sizes of 4 or more that are up to a factor of 64 apart. What vpt or an
 * earlier one gives is left out. */
static void candidates(const struct cpl_strategy *strategy, const struct cpl_strategy_input *input,
                       struct cpl_strategy_list *list)
{
    int32_t n_ranks = input->pattern->n_ranks, log2 = cpl_grid_log2(n_ranks);
    struct known known = {.n = 0};
    if (n_ranks < 4)
        return;
    learn_vpt(&known, n_ranks);
    for (int32_t shape = 0; shape < CPL_N_SHAPES; shape++)
        offer(strategy, n_ranks, &known, (struct cpl_strategy_numbers){N_FIXED, {shape}}, list);
    if (input->machine->n_nodes > 1 && input->machine->n_nodes < n_ranks)
        cpl_strategy_add(list, strategy, &(struct cpl_strategy_numbers){N_FIXED, {SHAPE_LOCALITY}});
    offer(strategy, n_ranks, &known,
          (struct cpl_strategy_numbers){N_FIXED + 1, {CPL_SHAPE_EQUAL, 0, CPL_MAP_NONE, 3}}, list);
    for (int32_t a = 2; a <= log2 - 2; a++)
        if (abs(log2 - 2 * a) <= 6)
            offer(strategy, n_ranks, &known,
                  (struct cpl_strategy_numbers){
                      N_FIXED + 2, {SHAPE_SIZES, 0, CPL_MAP_NONE, 1 << a, 1 << (log2 - a)}},
                  list);
}

const struct cpl_strategy cpl_strategy_grid = {
    .name = "grid",
    .parameter = ":[far:]SIZExSIZE...|SHAPE[:DIMENSIONS][+MAP]",
    .doc = "store-and-forward on a grid with steps of the given sizes, from neighbouring ranks to "
           "far ones or (far:) the other way round, or of a shape: equal, hypercube, increase, "
           "decrease, hourglass, inverse-hourglass, locality; Peters 2024",
    .examples = "grid:far:increase",
    .most_hops = most_hops,
    .parse = parse,
    .format = format,
    .candidates = candidates,
    .route = route,
    .router = router};
