/* Virtual grids (grid.h). */
#include "planner/grid/grid.h"

#include <stdlib.h>
#include <string.h>

enum cpl_status cpl_grid_init(struct cpl_grid *grid, int32_t n_ranks, int32_t n_dims,
                              const int32_t *size, struct cpl_error *error)
{
    if (n_dims < 1 || n_dims > CPL_MAX_DIMENSIONS)
        return cpl_fail(error, CPL_ERR_UNFIT, "a grid has 1 to %d dimensions, not %d",
                        CPL_MAX_DIMENSIONS, n_dims);
    struct cpl_grid made = {.n_ranks = n_ranks, .n_dims = n_dims};
    int64_t points = 1;
    for (int32_t d = 0; d < n_dims; d++) {
        if (size[d] < 1 || points > n_ranks)
            return cpl_fail(error, CPL_ERR_UNFIT,
                            "a grid with %d points in dimension %d is not one for %d ranks",
                            size[d], d + 1, n_ranks);
        made.size[d] = size[d];
        made.stride[d] = (int32_t)points;
        points *= size[d];
    }
    if (points < n_ranks)
        return cpl_fail(error, CPL_ERR_UNFIT, "a grid of %lld points does not hold %d ranks",
                        (long long)points, n_ranks);
    int32_t layer = made.stride[n_dims - 1];
    made.size[n_dims - 1] = n_ranks / layer + (n_ranks % layer != 0);
    *grid = made;
    return CPL_OK;
}

static int64_t degree(const int32_t *size, int32_t n_dims)
{
    int64_t sum = 0;
    for (int32_t d = 0; d < n_dims; d++)
        sum += size[d] - 1;
    return sum;
}

/* The best factorisation found so far; sizes descend. */
struct factors {
    int32_t n_dims;
    int64_t degree; /* -1: none found */
    int32_t size[CPL_MAX_DIMENSIONS];
    int32_t trial[CPL_MAX_DIMENSIONS];
};

/* Tries all ways to write rest as a product of the dimensions from dim on, each factor from 2 up to
 * limit. */
static void factorise(struct factors *f, int32_t dim, int32_t rest, int32_t limit)
{
    if (dim == f->n_dims - 1) {
        if (rest < 2 || rest > limit)
            return;
        f->trial[dim] = rest;
        int64_t sum = degree(f->trial, f->n_dims);
        if (f->degree < 0 || sum < f->degree) {
            f->degree = sum;
            memcpy(f->size, f->trial, sizeof f->size);
        }
        return;
    }
    for (int32_t s = 2; s <= limit && s <= rest / 2; s++)
        if (rest % s == 0) {
            f->trial[dim] = s;
            factorise(f, dim + 1, rest / s, s);
        }
}

/* The largest b with b^n <= value. */
static int32_t integer_root(int32_t value, int32_t n)
{
    int32_t b = 1;
    for (;;) {
        int64_t power = 1;
        for (int32_t k = 0; k < n && power <= value; k++)
            power *= b + 1;
        if (power > value)
            return b;
        b++;
    }
}

/* Sizes b and b + 1, larger first, with the smallest product that holds n_ranks. */
static void even_with_holes(int32_t n_ranks, int32_t n_dims, int32_t *size)
{
    int32_t b = integer_root(n_ranks, n_dims);
    for (int32_t n_larger = 0; n_larger <= n_dims; n_larger++) {
        int64_t product = 1;
        for (int32_t d = 0; d < n_dims; d++) {
            size[d] = d < n_larger ? b + 1 : b;
            product *= size[d];
        }
        if (product >= n_ranks)
            return;
    }
}

int32_t cpl_grid_most_dimensions(int32_t n_ranks)
{
    int32_t log2 = 0;
    while (n_ranks >> (log2 + 1))
        log2++;
    return log2 > 1 ? log2 : 1;
}

enum cpl_status cpl_grid_even_sizes(int32_t n_ranks, int32_t n_dims, int32_t *size,
                                    struct cpl_error *error)
{
    int32_t max_dims = cpl_grid_most_dimensions(n_ranks);
    if (n_dims < 1 || n_dims > max_dims || n_dims > CPL_MAX_DIMENSIONS)
        return cpl_fail(error, CPL_ERR_UNFIT, "%d ranks fit 1 to %d dimensions, not %d", n_ranks,
                        max_dims, n_dims);
    if (n_dims == 1) {
        size[0] = n_ranks;
        return CPL_OK;
    }
    struct factors f = {.n_dims = n_dims, .degree = -1};
    factorise(&f, 0, n_ranks, n_ranks);
    even_with_holes(n_ranks, n_dims, size);
    if (f.degree >= 0 && 4 * f.degree <= 5 * degree(size, n_dims))
        memcpy(size, f.size, (size_t)n_dims * sizeof *size);
    return CPL_OK;
}

int32_t cpl_grid_step(const struct cpl_grid *grid, int32_t at, int32_t dest, int32_t dim)
{
    int32_t stride = grid->stride[dim], size = grid->size[dim];
    int64_t point = at + (int64_t)(dest / stride % size - at / stride % size) * stride;
    if (point < grid->n_ranks)
        return (int32_t)point;
    /* A hole lies in the last layer; every layer below is full, and there is one, or the point
     * would be dest. */
    int32_t layer = grid->stride[grid->n_dims - 1];
    int32_t full_layers = grid->n_ranks / layer;
    return (int32_t)(point % layer) + at % full_layers * layer;
}

int32_t cpl_grid_n_steps(const struct cpl_grid *grid, enum cpl_grid_order order)
{
    int32_t layer = grid->stride[grid->n_dims - 1];
    return grid->n_dims + (order == CPL_GRID_FAR_FIRST && grid->n_ranks % layer != 0);
}

/* Why this never meets a hole: let the last layer be partial. Step 0 ends in a full layer, whatever
 * dest: a message for a full layer goes to its destination's layer; a message for the partial layer
 * stays where it is or, if it comes from the partial layer, goes to some full layer. Steps 1 ..
 * n_dims - 1 change coordinates inside that layer, where every point is a rank, to those of dest.
 * The last step changes the layer to that of dest, and the point is dest itself.
 *
 * Why no rank has more partners than the sum of (size - 1): with F full layers size - 1 of the last
 * dimension is F. In step 0 a rank of a full layer exchanges messages with F - 1 others at most, in
 * the last step with one of the partial layer; a rank of the partial layer with F at most, in step
 * 0 as sender, in the last step as receiver. */
int32_t cpl_grid_far_step(const struct cpl_grid *grid, int32_t at, int32_t dest, int32_t step)
{
    int32_t last = grid->n_dims - 1, layer = grid->stride[last];
    int32_t full_ranks = grid->n_ranks - grid->n_ranks % layer;
    if (at == dest || step > last)
        return dest;
    if (step > 0) {
        int32_t stride = grid->stride[last - step], size = grid->size[last - step];
        return at + (dest / stride % size - at / stride % size) * stride;
    }
    if (dest < full_ranks)
        return dest / layer * layer + at % layer;
    return at < full_ranks ? at : at % layer + at % layer % (full_ranks / layer) * layer;
}

/* The full layers' ranks with the in-layer coordinates of a rank. */
static int32_t full_layer_peers(const struct cpl_grid *grid, int32_t at, int32_t *peer)
{
    int32_t layer = grid->stride[grid->n_dims - 1], n = grid->n_ranks / layer;
    for (int32_t k = 0; k < n; k++)
        peer[k] = k * layer + at % layer;
    return n;
}

/* Peers in step 0 and in the additional last step of a grid with holes, which is the reverse.
 * leaves: from the partial layer into the full ones; only in step 0 also between full layers. */
static int32_t partial_layer_peers(const struct cpl_grid *grid, int32_t at, bool leaves,
                                   bool is_source, int32_t *peer)
{
    int32_t layer = grid->stride[grid->n_dims - 1];
    int32_t full_ranks = grid->n_ranks - grid->n_ranks % layer, n = 0;
    bool in_full = at < full_ranks;
    if (in_full && leaves)
        n = full_layer_peers(grid, at, peer);
    else if (in_full)
        peer[n++] = at;
    else if (is_source == leaves)
        n = full_layer_peers(grid, at, peer);
    if (!in_full)
        peer[n++] = at;
    else if (is_source != leaves && at % layer < grid->n_ranks % layer)
        peer[n++] = full_ranks + at % layer;
    return n;
}

static int32_t far_peers(const struct cpl_grid *grid, int32_t at, int32_t step, bool incoming,
                         int32_t *peer)
{
    int32_t last = grid->n_dims - 1, layer = grid->stride[last];
    int32_t partial = grid->n_ranks % layer;
    if (partial && (step == 0 || step > last))
        return partial_layer_peers(grid, at, step == 0, !incoming, peer);
    if (at >= grid->n_ranks - partial) {
        peer[0] = at;
        return 1;
    }
    int32_t stride = grid->stride[last - step], size = grid->size[last - step];
    for (int32_t k = 0; k < size; k++)
        peer[k] = at + (k - at / stride % size) * stride;
    return size;
}

static int compare_ranks(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Going from near to far leaves the last layer of the last dimension where the next point would
 * be a hole, by cpl_grid_step, and comes back to it in the last step only. */
static int32_t near_peers(const struct cpl_grid *grid, int32_t at, int32_t dim, bool incoming,
                          int32_t *peer)
{
    int32_t stride = grid->stride[dim], size = grid->size[dim], n = 0;
    int32_t layer = grid->stride[grid->n_dims - 1], full_layers = grid->n_ranks / layer;
    int32_t last_layer = full_layers * layer, first = at - at / stride % size * stride;
    bool is_full = at < last_layer;
    for (int32_t k = 0; k < size; k++) {
        int32_t point = first + k * stride; /* on the line through `at` */
        if (point < grid->n_ranks)
            peer[n++] = point;
        else if (!incoming && dim < grid->n_dims - 1) /* from the last layer */
            peer[n++] = point % layer + at % full_layers * layer;
        point = last_layer + point % layer; /* whose messages for `at`'s place meet a hole */
        if (incoming && is_full && dim < grid->n_dims - 1 && point < grid->n_ranks &&
            last_layer + at % layer >= grid->n_ranks && point % full_layers == at / layer)
            peer[n++] = point;
    }
    qsort(peer, (size_t)n, sizeof *peer, compare_ranks);
    return n;
}

int32_t cpl_grid_peers(const struct cpl_grid *grid, enum cpl_grid_order order, int32_t at,
                       int32_t step, bool incoming, int32_t *peer)
{
    return (order == CPL_GRID_FAR_FIRST ? far_peers : near_peers)(grid, at, step, incoming, peer);
}

int32_t cpl_grid_next(const struct cpl_grid *grid, enum cpl_grid_order order, int32_t at,
                      int32_t dest, int32_t step)
{
    return (order == CPL_GRID_FAR_FIRST ? cpl_grid_far_step : cpl_grid_step)(grid, at, dest, step);
}

/* Walks by cpl_grid_step, with fewer divisions; stops are points. */
static void route_near(const struct cpl_grid *grid, int32_t at, int32_t dest, int32_t *stops)
{
    int32_t at_rest = at, dest_rest = dest; /* divided by the stride */
    for (int32_t d = 0; d < grid->n_dims; d++) {
        int32_t stride = grid->stride[d], size = grid->size[d];
        int64_t point = at + (int64_t)(dest_rest % size - at_rest % size) * stride;
        at_rest /= size;
        dest_rest /= size;
        if (point < grid->n_ranks) {
            stops[d] = at = (int32_t)point;
            continue;
        }
        stops[d] = at = cpl_grid_step(grid, at, dest, d);
        at_rest = at / stride / size;
    }
}

/* Walks from a point to another; stops are points. */
static void router(const struct cpl_grid *grid, enum cpl_grid_order order, int32_t at, int32_t dest,
                   int32_t n_steps, int32_t *stops)
{
    if (order == CPL_GRID_NEAR_FIRST) {
        route_near(grid, at, dest, stops);
        return;
    }
    for (int32_t s = 0; s < n_steps; s++)
        stops[s] = at = cpl_grid_far_step(grid, at, dest, s);
}

/* What routes over a grid follow from. */
struct ordered_grid {
    struct cpl_grid grid;
    enum cpl_grid_order order;
};

static void go(const struct cpl_router *w, int32_t src, int32_t dst, int32_t *stops)
{
    const struct ordered_grid *ordered = w->grid;
    router(&ordered->grid, ordered->order, src, dst, w->n_waves, stops);
}

enum cpl_status cpl_grid_router(const struct cpl_grid *grid, enum cpl_grid_order order,
                                struct cpl_router *router, struct cpl_error *error)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct ordered_grid *ordered = CPL_ARENA_ARRAY(&arena, struct ordered_grid, 1);
    if (!ordered)
        return cpl_fail_memory(error, "routes over a grid");
    *ordered = (struct ordered_grid){*grid, order};
    *router = (struct cpl_router){cpl_grid_n_steps(grid, order), go, ordered, arena};
    return CPL_OK;
}

static void route_mapped(const struct cpl_pattern *pattern, const struct cpl_grid *grid,
                         enum cpl_grid_order order, const int32_t *position, const int32_t *rank_at,
                         struct cpl_routes *routes)
{
    for (int32_t i = 0; i < pattern->n_ranks; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++) {
            int32_t *stops = cpl_routes_of(routes, m);
            router(grid, order, position[i], position[pattern->dst[m]], routes->n_waves, stops);
            for (int32_t s = 0; s < routes->n_waves; s++)
                stops[s] = rank_at[stops[s]];
        }
}

enum cpl_status cpl_grid_route(const struct cpl_pattern *pattern, const struct cpl_grid *grid,
                               enum cpl_grid_order order, const int32_t *position,
                               struct cpl_routes *routes, struct cpl_error *error)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    int32_t *rank_at = position ? CPL_ARENA_ARRAY(&scratch, int32_t, grid->n_ranks) : NULL;
    if (position && !rank_at)
        return cpl_fail_memory(error, "the routes");
    enum cpl_status status = cpl_routes_init(pattern, cpl_grid_n_steps(grid, order), routes, error);
    for (int32_t i = 0; i < grid->n_ranks && position; i++)
        rank_at[position[i]] = i;
    if (!status && position)
        route_mapped(pattern, grid, order, position, rank_at, routes);
    for (int32_t i = 0; i < pattern->n_ranks && !status && !position; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++)
            router(grid, order, i, pattern->dst[m], routes->n_waves, cpl_routes_of(routes, m));
    cpl_arena_free(&scratch);
    return status;
}
