/* Routes that step inside nodes and between nodes (node_grid.h). Nodes of one size share the grids
 * of their places. */
#include "planner/strategies/node_grid.h"

#include "planner/grid/node_ranks.h"

#include <stddef.h>

/* The grids of a node's places. */
struct local_grids {
    struct cpl_grid gather;
    struct cpl_grid scatter;
};

struct grid_router {
    struct cpl_node_grid steps;
    struct cpl_node_ranks nodes;
    int32_t n_between;         /* steps between nodes */
    int32_t *kind;             /* per node size: which of the grids, 1 .. ; 0: no node has it */
    struct local_grids *grids; /* per kind, from 0 */
};

/* A grid of n_ranks in n_dims dimensions, or as many as fit. */
static enum cpl_status make_grid(int32_t n_ranks, int32_t n_dims, struct cpl_grid *grid)
{
    int32_t size[CPL_MAX_DIMENSIONS];
    int32_t most = cpl_grid_most_dimensions(n_ranks);
    int32_t fitting = n_dims < 1 ? 1 : n_dims < most ? n_dims : most;
    enum cpl_status status = cpl_grid_even_sizes(n_ranks, fitting, size, NULL);
    return status ? status : cpl_grid_init(grid, n_ranks, fitting, size, NULL);
}

static enum cpl_status prepare(struct grid_router *grid_router, const struct cpl_machine *machine,
                               struct cpl_arena *arena)
{
    struct cpl_node_ranks *nodes = &grid_router->nodes;
    int32_t n_kinds = 0;
    if (cpl_node_ranks_build(machine, arena, nodes))
        return CPL_ERR_NOMEM;
    grid_router->n_between =
        cpl_grid_n_steps(&grid_router->steps.between, grid_router->steps.order);
    grid_router->kind = CPL_ARENA_ARRAY(arena, int32_t, nodes->largest + 1);
    if (!grid_router->kind)
        return CPL_ERR_NOMEM;
    for (int32_t k = 0; k < nodes->n_nodes; k++)
        if (!grid_router->kind[cpl_node_size(nodes, k)])
            grid_router->kind[cpl_node_size(nodes, k)] = ++n_kinds;
    grid_router->grids = CPL_ARENA_ARRAY(arena, struct local_grids, n_kinds);
    if (!grid_router->grids)
        return CPL_ERR_NOMEM;
    for (int32_t size = 1; size <= nodes->largest; size++) {
        if (!grid_router->kind[size])
            continue;
        struct local_grids *grids = &grid_router->grids[grid_router->kind[size] - 1];
        enum cpl_status status = make_grid(size, grid_router->steps.n_gather, &grids->gather);
        if (!status)
            status = make_grid(size, grid_router->steps.n_scatter, &grids->scatter);
        if (status)
            return status;
    }
    return CPL_OK;
}

static const struct local_grids *grids_of(const struct grid_router *grid_router, int32_t node)
{
    return &grid_router->grids[grid_router->kind[cpl_node_size(&grid_router->nodes, node)] - 1];
}

/* Walks inside a node from `at` to a place; rests when the grid has fewer dimensions than there are
 * steps. Returns where it ends. */
static int32_t route_inside(const struct grid_router *grid_router, const struct cpl_grid *grid,
                            int32_t at, int32_t place, int32_t n_steps, int32_t *stops)
{
    const struct cpl_node_ranks *nodes = &grid_router->nodes;
    int32_t node = cpl_machine_node(nodes->machine, at), here = cpl_node_local(nodes, at);
    for (int32_t s = 0; s < n_steps; s++) {
        if (s < grid->n_dims)
            here = cpl_grid_step(grid, here, place, s);
        stops[s] = cpl_node_rank_at(nodes, node, here);
    }
    return n_steps > 0 ? stops[n_steps - 1] : at;
}

static int32_t route_between(const struct grid_router *grid_router, int32_t at, int32_t dest_node,
                             int32_t *stops)
{
    const struct cpl_node_ranks *nodes = &grid_router->nodes;
    const struct cpl_grid *grid = &grid_router->steps.between;
    for (int32_t s = 0; s < grid_router->n_between; s++) {
        int32_t node = cpl_machine_node(nodes->machine, at);
        int32_t next = cpl_grid_next(grid, grid_router->steps.order, node, dest_node, s);
        if (next != node)
            at = cpl_node_rank_at(nodes, next, cpl_node_local(nodes, at));
        stops[s] = at;
    }
    return at;
}

static void go(const struct cpl_router *router, int32_t at, int32_t dest, int32_t *stops)
{
    const struct grid_router *grid_router = router->grid;
    const struct cpl_node_ranks *nodes = &grid_router->nodes;
    int32_t node = cpl_machine_node(nodes->machine, at),
            dest_node = cpl_machine_node(nodes->machine, dest);
    int32_t n_before = grid_router->steps.n_gather + grid_router->n_between;
    if (node != dest_node) {
        int32_t turn = (dest_node - node - 1 + nodes->n_nodes) % nodes->n_nodes;
        at = route_inside(grid_router, &grids_of(grid_router, node)->gather, at,
                          turn % cpl_node_size(nodes, node), grid_router->steps.n_gather, stops);
        at = route_between(grid_router, at, dest_node, stops + grid_router->steps.n_gather);
    } else {
        for (int32_t s = 0; s < n_before; s++)
            stops[s] = at;
    }
    route_inside(grid_router, &grids_of(grid_router, dest_node)->scatter, at,
                 cpl_node_local(nodes, dest), grid_router->steps.n_scatter, stops + n_before);
}

static enum cpl_status check_fit(const struct grid_router *grid_router, struct cpl_error *error)
{
    int32_t most = cpl_grid_most_dimensions(grid_router->nodes.largest);
    int32_t asked = grid_router->steps.n_gather > grid_router->steps.n_scatter
                        ? grid_router->steps.n_gather
                        : grid_router->steps.n_scatter;
    if (asked <= most)
        return CPL_OK;
    return cpl_fail(error, CPL_ERR_UNFIT, "nodes of %d ranks fit 1 to %d dimensions inside, not %d",
                    (int)grid_router->nodes.largest, (int)most, (int)asked);
}

enum cpl_status cpl_node_grid_router(const struct cpl_machine *machine,
                                     const struct cpl_node_grid *steps, struct cpl_router *router,
                                     struct cpl_error *error)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct grid_router *grid_router = CPL_ARENA_ARRAY(&arena, struct grid_router, 1);
    enum cpl_status status = grid_router ? CPL_OK : CPL_ERR_NOMEM;
    if (grid_router) {
        grid_router->steps = *steps;
        status = prepare(grid_router, machine, &arena);
    }
    status = status ? cpl_fail_memory(error, "the ranks of nodes") : check_fit(grid_router, error);
    if (status) {
        cpl_arena_free(&arena);
        return status;
    }
    *router = (struct cpl_router){steps->n_gather + grid_router->n_between + steps->n_scatter, go,
                                  grid_router, arena};
    return CPL_OK;
}

enum cpl_status cpl_node_grid_route(const struct cpl_pattern *pattern,
                                    const struct cpl_machine *machine,
                                    const struct cpl_node_grid *steps, struct cpl_routes *routes,
                                    struct cpl_error *error)
{
    struct cpl_router router;
    enum cpl_status status = cpl_node_grid_router(machine, steps, &router, error);
    if (status)
        return status;
    status = cpl_router_routes(&router, pattern, routes, error);
    cpl_router_free(&router);
    return status;
}
