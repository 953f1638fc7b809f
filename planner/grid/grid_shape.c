/* Shapes of grids (grid_shape.h).
 *
 * Every dimension gets one bit of the ranks' log2. The remaining bits are poured over a staircase,
 * which says how much larger than its neighbours a dimension is to be: each bit goes where most is
 * missing, in doubt to the lowest stair. So the sizes of neighbouring dimensions are equal or
 * differ by a factor of two, however many bits and dimensions there are; few dimensions may be
 * equal in any shape (64 x 64). */
#include "planner/grid/grid_shape.h"

static const char *const names[CPL_N_SHAPES] = {
    [CPL_SHAPE_EQUAL] = "equal",         [CPL_SHAPE_HYPERCUBE] = "hypercube",
    [CPL_SHAPE_INCREASE] = "increase",   [CPL_SHAPE_DECREASE] = "decrease",
    [CPL_SHAPE_HOURGLASS] = "hourglass", [CPL_SHAPE_INVERSE_HOURGLASS] = "inverse-hourglass"};

const char *cpl_grid_shape_name(enum cpl_grid_shape shape)
{
    return names[shape];
}

int32_t cpl_grid_log2(int32_t n)
{
    int32_t log2 = 0;
    while (INT64_C(1) << log2 < n)
        log2++;
    return log2;
}

/* The height of the staircase at dimension d. */
static int32_t stair(enum cpl_grid_shape shape, int32_t n_dims, int32_t d)
{
    int32_t from_end = d < n_dims - 1 - d ? d : n_dims - 1 - d;
    switch (shape) {
    case CPL_SHAPE_INCREASE:
        return d;
    case CPL_SHAPE_DECREASE:
        return -d;
    case CPL_SHAPE_HOURGLASS:
        return -from_end;
    case CPL_SHAPE_INVERSE_HOURGLASS:
        return from_end;
    default:
        return 0;
    }
}

/* The dimension that gets the next bit: the one that lacks most, then the lowest stair, then the
 * first. */
static int32_t next_dimension(enum cpl_grid_shape shape, int32_t n_dims, const int32_t *bits)
{
    int32_t best = 0;
    for (int32_t d = 1; d < n_dims; d++) {
        int32_t here = stair(shape, n_dims, d), there = stair(shape, n_dims, best);
        int32_t more = (here - bits[d]) - (there - bits[best]);
        if (more > 0 || (more == 0 && here < there))
            best = d;
    }
    return best;
}

static int32_t default_dimensions(enum cpl_grid_shape shape, int32_t n_bits)
{
    if (shape == CPL_SHAPE_HYPERCUBE)
        return n_bits > 1 ? n_bits : 1;
    int32_t half = (n_bits + 1) / 2;
    return half < 2 && n_bits >= 2 ? 2 : half < 1 ? 1 : half;
}

enum cpl_status cpl_grid_shape_sizes(enum cpl_grid_shape shape, int32_t n_ranks, int32_t n_dims,
                                     int32_t *n_sizes, int32_t *size, struct cpl_error *error)
{
    int32_t n_bits = cpl_grid_log2(n_ranks), most = n_bits > 1 ? n_bits : 1;
    int32_t bits[CPL_MAX_DIMENSIONS] = {0};
    if (n_dims < 0 || n_dims > most)
        return cpl_fail(error, CPL_ERR_UNFIT,
                        "%d ranks fit %s shapes of 1 to %d dimensions, not %d", (int)n_ranks,
                        names[shape], (int)most, (int)n_dims);
    if (n_dims == 0)
        n_dims = default_dimensions(shape, n_bits);
    for (int32_t d = 0; d < n_dims; d++)
        bits[d] = n_bits > 0;
    for (int32_t remaining = n_bits - n_dims; remaining > 0; remaining--)
        bits[next_dimension(shape, n_dims, bits)]++;
    for (int32_t d = 0; d < n_dims; d++)
        size[d] = INT32_C(1) << bits[d];
    *n_sizes = n_dims;
    return CPL_OK;
}
