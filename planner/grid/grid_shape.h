/* Shapes of grids: sizes that are powers of two, distributed over the steps in
 * different ways (Peters 2024, 5.2.1).
 *
 * Pure functions. */
#ifndef CARPOOL_GRID_SHAPE_H
#define CARPOOL_GRID_SHAPE_H

#include "planner/grid/grid.h"
#include "planner/status.h"

#include <stdint.h>

enum cpl_grid_shape {
    CPL_SHAPE_EQUAL,             /* 4 x 4 x 4 x 4 x 4 x 4 for 4096 ranks and 6 steps */
    CPL_SHAPE_HYPERCUBE,         /* twelve times 2 */
    CPL_SHAPE_INCREASE,          /* 2 x 2 x 2 x 4 x 8 x 16 */
    CPL_SHAPE_DECREASE,          /* 16 x 8 x 4 x 2 x 2 x 2 */
    CPL_SHAPE_HOURGLASS,         /* 8 x 4 x 2 x 2 x 4 x 8 */
    CPL_SHAPE_INVERSE_HOURGLASS, /* 2 x 4 x 8 x 8 x 4 x 2 */
    CPL_N_SHAPES
};

/* The name of a shape, in lower case with hyphens. */
const char *cpl_grid_shape_name(enum cpl_grid_shape shape);

/* log2 of n, rounded up (n >= 1). */
int32_t cpl_grid_log2(int32_t n);

/* The sizes of a shape for n_ranks in n_dims dimensions (0: half of log2 of the ranks, rounded up,
 * but at least two where there are more than two ranks; a hypercube always has log2). size has
 * CPL_MAX_DIMENSIONS entries, in the order of the steps; their product is n_ranks rounded up to a
 * power of two. Returns CPL_OK and *n_sizes, or CPL_ERR_UNFIT unless n_dims is 0 or 1 .. log2 of
 * the ranks, rounded up. */
enum cpl_status cpl_grid_shape_sizes(enum cpl_grid_shape shape, int32_t n_ranks, int32_t n_dims,
                                     int32_t *n_sizes, int32_t *size, struct cpl_error *error);

#endif
