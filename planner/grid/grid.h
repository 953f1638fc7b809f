/* Virtual grids: ranks 0 .. n-1 as points of a mixed-radix grid, the first dimension varying
 * fastest. When the sizes' product exceeds the number of ranks, the last dimension's last layer has
 * holes: points without a rank.
 *
 * Pure functions on a small struct; only cpl_grid_route allocates. */
#ifndef CARPOOL_GRID_H
#define CARPOOL_GRID_H

#include "planner/pattern.h"
#include "planner/plan/router.h"
#include "planner/routes.h"
#include "planner/status.h"

#include <stdbool.h>
#include <stdint.h>

#define CPL_MAX_DIMENSIONS 24 /* log2 of CPL_MAX_RANKS */

struct cpl_grid {
    int32_t n_ranks;
    int32_t n_dims;
    int32_t size[CPL_MAX_DIMENSIONS];
    int32_t stride[CPL_MAX_DIMENSIONS]; /* product of the sizes of lower dimensions */
};

/* A grid of n_ranks with the given sizes (each >= 1, the last may exceed what is needed and is
 * cut). Returns CPL_OK, or CPL_ERR_UNFIT when the product is below n_ranks or n_dims is
 * outside 1..CPL_MAX_DIMENSIONS. */
enum cpl_status cpl_grid_init(struct cpl_grid *grid, int32_t n_ranks, int32_t n_dims,
                              const int32_t *size, struct cpl_error *error);

/* The most dimensions of at least two points each that n_ranks fill: log2(n_ranks), at least 1. */
int32_t cpl_grid_most_dimensions(int32_t n_ranks);

/* The sizes of an n-dimensional grid of n_ranks that is as even as possible, larger sizes first:
 * exact factors of n_ranks when their degree (the sum of size - 1, the most messages a rank can
 * send) is at most a quarter above that of the best grid with holes, else the latter. size has
 * n_dims entries. Returns CPL_OK, or CPL_ERR_UNFIT unless 1 <= n_dims <= cpl_grid_most_dimensions.
 */
enum cpl_status cpl_grid_even_sizes(int32_t n_ranks, int32_t n_dims, int32_t *size,
                                    struct cpl_error *error);

/* The rank that a message at rank `at` for `dest` goes to in the step that corrects dimension dim:
 * the point with dest's coordinate in that dimension. Where that point is a hole, a rank with the
 * same coordinates in a full layer of the last dimension stands in; which layer depends on the
 * present one, to spread the load. After steps in all dimensions, last one last, a message is at
 * dest. */
int32_t cpl_grid_step(const struct cpl_grid *grid, int32_t at, int32_t dest, int32_t dim);

/* The order in which the dimensions are corrected. Consecutive ranks are neighbours in the first
 * dimension and usually sit on one node. */
enum cpl_grid_order {
    CPL_GRID_NEAR_FIRST, /* the first dimension first, by cpl_grid_step */
    CPL_GRID_FAR_FIRST   /* the last dimension first, by cpl_grid_far_step */
};

/* The number of steps: one per dimension, and one more when a grid with holes is walked from far to
 * near. */
int32_t cpl_grid_n_steps(const struct cpl_grid *grid, enum cpl_grid_order order);

/* The rank that a message at rank `at` for `dest` goes to in step 0 .. cpl_grid_n_steps - 1 of the
 * grid from far to near. Without holes step s corrects dimension n_dims - 1 - s. With holes,
 * messages leave the last layer of the last dimension in step 0 and enter it only in the additional
 * last step, so that all steps between stay in full layers. After all steps a message is at dest.
 * Holes or not, a rank sends to, and receives from, at most the sum of (size - 1) others, by
 * all messages. */
int32_t cpl_grid_far_step(const struct cpl_grid *grid, int32_t at, int32_t dest, int32_t step);

/* The rank that a message at rank `at` for `dest` goes to in a step in that order. */
int32_t cpl_grid_next(const struct cpl_grid *grid, enum cpl_grid_order order, int32_t at,
                      int32_t dest, int32_t step);

/* The ranks that messages of rank `at` can go to in a step in that order (incoming:
 * can come from), ascending, including `at` where messages can rest. peer has room for n_ranks
 * entries. Returns their number. */
int32_t cpl_grid_peers(const struct cpl_grid *grid, enum cpl_grid_order order, int32_t at,
                       int32_t step, bool incoming, int32_t *peer);

/* The router over a grid of as many ranks, rank i at point i: a wave per step. Returns CPL_OK,
 * CPL_ERR_NOMEM. The caller frees *router. */
enum cpl_status cpl_grid_router(const struct cpl_grid *grid, enum cpl_grid_order order,
                                struct cpl_router *router, struct cpl_error *error);

/* Routes of a pattern's messages over a grid of as many ranks: a wave per step. position[i] is the
 * point that rank i plays (a permutation, map.h); NULL: rank i is point i. Returns CPL_OK,
 * CPL_ERR_NOMEM. The caller frees *routes. O(messages x dimensions). */
enum cpl_status cpl_grid_route(const struct cpl_pattern *pattern, const struct cpl_grid *grid,
                               enum cpl_grid_order order, const int32_t *position,
                               struct cpl_routes *routes, struct cpl_error *error);

#endif
