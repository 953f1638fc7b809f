/* Tests of virtual grids (grid.h): sizes, and that steps through all dimensions lead anywhere. */
#include "planner/grid/grid.h"
#include "planner/grid/grid_shape.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int32_t log2_floor(int32_t n)
{
    int32_t log2 = 0;
    while (n >> (log2 + 1))
        log2++;
    return log2;
}

static void check_sizes(int32_t n_ranks, int32_t n_dims, const int32_t *expected)
{
    int32_t size[CPL_MAX_DIMENSIONS];
    struct cpl_error error = {""};
    if (cpl_grid_even_sizes(n_ranks, n_dims, size, &error))
        fail_msg("%s", error.text);
    for (int32_t d = 0; d < n_dims; d++)
        if (size[d] != expected[d])
            fail_msg("%d ranks, %d dimensions: size %d is %d, not %d", n_ranks, n_dims, d, size[d],
                     expected[d]);
}

/* Exact factors, larger first. */
static void test_exact_sizes(void **state)
{
    (void)state;
    check_sizes(1, 1, (const int32_t[]){1});
    check_sizes(7, 1, (const int32_t[]){7});
    check_sizes(4, 2, (const int32_t[]){2, 2});
    check_sizes(12, 2, (const int32_t[]){4, 3});
    check_sizes(12, 3, (const int32_t[]){3, 2, 2});
    check_sizes(36, 2, (const int32_t[]){6, 6});
    check_sizes(64, 3, (const int32_t[]){4, 4, 4});
    check_sizes(64, 6, (const int32_t[]){2, 2, 2, 2, 2, 2});
    check_sizes(360, 3, (const int32_t[]){9, 8, 5});
    check_sizes(1 << 24, 2, (const int32_t[]){4096, 4096});
    check_sizes(1 << 24, 24, (const int32_t[]){2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
                                               2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2});
}

/* Primes, and numbers whose factors are too uneven: 2 x 17 would be 17 messages, 6 x 6 with two
 * holes is 10. */
static void test_sizes_with_holes(void **state)
{
    (void)state;
    check_sizes(2, 1, (const int32_t[]){2});
    check_sizes(5, 2, (const int32_t[]){3, 2});
    check_sizes(7, 2, (const int32_t[]){3, 3});
    check_sizes(9, 3, (const int32_t[]){3, 2, 2});
    check_sizes(34, 2, (const int32_t[]){6, 6});
    check_sizes(127, 2, (const int32_t[]){12, 11});
    check_sizes(127, 3, (const int32_t[]){6, 5, 5});
    check_sizes(16777213, 2, (const int32_t[]){4096, 4096}); /* the largest prime that fits */
}

/* A grid without holes may need a quarter more messages: 7 x 2 (7) against 4 x 4 (6) is within, 11
 * x 2 (11) against 5 x 5 (8) is not. */
static void test_a_quarter_worse(void **state)
{
    (void)state;
    check_sizes(10, 2, (const int32_t[]){5, 2});
    check_sizes(14, 2, (const int32_t[]){7, 2});
    check_sizes(22, 2, (const int32_t[]){5, 5});
}

static void test_unfit_sizes(void **state)
{
    (void)state;
    static const int32_t unfit[][2] = {{1, 0}, {1, 2}, {2, 2},  {3, 2},
                                       {7, 3}, {8, 4}, {8, -1}, {1 << 24, 25}};
    int32_t size[CPL_MAX_DIMENSIONS];
    for (size_t k = 0; k < sizeof unfit / sizeof *unfit; k++) {
        struct cpl_error error = {""};
        assert_int_equal(cpl_grid_even_sizes(unfit[k][0], unfit[k][1], size, &error),
                         CPL_ERR_UNFIT);
        assert_non_null(strstr(error.text, "dimensions, not"));
    }
    struct cpl_error error;
    cpl_grid_even_sizes(7, 3, size, &error);
    assert_string_equal(error.text, "7 ranks fit 1 to 2 dimensions, not 3");
}

static void test_init(void **state)
{
    (void)state;
    struct cpl_grid grid;
    struct cpl_error error = {""};
    assert_int_equal(cpl_grid_init(&grid, 7, 2, (const int32_t[]){3, 9}, &error), CPL_OK);
    assert_int_equal(grid.size[0], 3);
    assert_int_equal(grid.size[1], 3); /* cut to what is needed */
    assert_int_equal(grid.stride[0], 1);
    assert_int_equal(grid.stride[1], 3);
    assert_int_equal(cpl_grid_init(&grid, 6, 3, (const int32_t[]){6, 1, 1}, &error), CPL_OK);
}

static void check_unfit(int32_t n_ranks, int32_t n_dims, const int32_t *size)
{
    struct cpl_grid grid;
    struct cpl_error error = {""};
    assert_int_equal(cpl_grid_init(&grid, n_ranks, n_dims, size, &error), CPL_ERR_UNFIT);
    assert_true(error.text[0] != '\0');
    assert_int_equal(cpl_grid_init(&grid, n_ranks, n_dims, size, NULL), CPL_ERR_UNFIT);
}

static void test_unfit_grids(void **state)
{
    (void)state;
    int32_t twos[CPL_MAX_DIMENSIONS + 1];
    for (int32_t d = 0; d <= CPL_MAX_DIMENSIONS; d++)
        twos[d] = 2;
    check_unfit(8, 0, twos);
    check_unfit(8, CPL_MAX_DIMENSIONS + 1, twos);
    check_unfit(8, 2, twos);                                          /* 4 points */
    check_unfit(8, 2, (const int32_t[]){8, 0});                       /* no size */
    check_unfit(8, 2, (const int32_t[]){-2, -4});                     /* no size */
    check_unfit(8, 2, (const int32_t[]){9, 1});                       /* a layer of 9 points */
    check_unfit(8, 3, (const int32_t[]){INT32_MAX, INT32_MAX, 3});    /* overflow */
    check_unfit(1 << 24, 3, (const int32_t[]){1 << 30, 1 << 30, 16}); /* overflow */
}

/* The point (x, y) of 3 x 3 with ranks 0 .. 6: the last layer holds 6 and two holes. */
static void test_steps_around_holes(void **state)
{
    (void)state;
    struct cpl_grid grid;
    assert_int_equal(cpl_grid_init(&grid, 7, 2, (const int32_t[]){3, 3}, NULL), CPL_OK);
    assert_int_equal(cpl_grid_step(&grid, 0, 5, 0), 2); /* (0,0) -> (2,0) */
    assert_int_equal(cpl_grid_step(&grid, 2, 5, 1), 5); /* (2,0) -> (2,1) */
    assert_int_equal(cpl_grid_step(&grid, 3, 6, 0), 3); /* rests */
    assert_int_equal(cpl_grid_step(&grid, 6, 1, 0), 1); /* (1,2) is a hole: in layer 6 % 2 */
    assert_int_equal(cpl_grid_step(&grid, 1, 1, 1), 1);
    assert_int_equal(cpl_grid_step(&grid, 6, 5, 0), 2); /* (2,2) is a hole */
    assert_int_equal(cpl_grid_step(&grid, 2, 5, 1), 5);
}

/* The same from far to near. Ranks 0 .. 2, 3 .. 5 are full layers, 6 is left first and entered
 * last.
 */
static void test_far_steps_around_holes(void **state)
{
    (void)state;
    struct cpl_grid grid;
    assert_int_equal(cpl_grid_init(&grid, 7, 2, (const int32_t[]){3, 3}, NULL), CPL_OK);
    assert_int_equal(cpl_grid_n_steps(&grid, CPL_GRID_NEAR_FIRST), 2);
    assert_int_equal(cpl_grid_n_steps(&grid, CPL_GRID_FAR_FIRST), 3);
    assert_int_equal(cpl_grid_far_step(&grid, 0, 5, 0), 3); /* (0,0) -> (0,1) */
    assert_int_equal(cpl_grid_far_step(&grid, 3, 5, 1), 5); /* (0,1) -> (2,1) */
    assert_int_equal(cpl_grid_far_step(&grid, 5, 5, 2), 5); /* rests */
    assert_int_equal(cpl_grid_far_step(&grid, 4, 6, 0), 4); /* does not enter yet */
    assert_int_equal(cpl_grid_far_step(&grid, 4, 6, 1), 3); /* (1,1) -> (0,1) */
    assert_int_equal(cpl_grid_far_step(&grid, 3, 6, 2), 6); /* enters */
    assert_int_equal(cpl_grid_far_step(&grid, 6, 5, 0), 3); /* leaves */
    assert_int_equal(cpl_grid_init(&grid, 8, 2, (const int32_t[]){3, 3}, NULL), CPL_OK);
    assert_int_equal(cpl_grid_far_step(&grid, 7, 6, 0),
                     4); /* (1,2) -> (1,1), not along the layer */
    assert_int_equal(cpl_grid_far_step(&grid, 4, 6, 1), 3);
    assert_int_equal(cpl_grid_far_step(&grid, 3, 6, 2), 6);
    assert_int_equal(cpl_grid_init(&grid, 9, 2, (const int32_t[]){3, 3}, NULL), CPL_OK);
    assert_int_equal(cpl_grid_n_steps(&grid, CPL_GRID_FAR_FIRST), 2);
    assert_int_equal(cpl_grid_far_step(&grid, 0, 7, 0), 6);
    assert_int_equal(cpl_grid_far_step(&grid, 6, 7, 1), 7);
}

static void check_far_router(const struct cpl_grid *grid, int32_t src, int32_t dest)
{
    int32_t at = src;
    for (int32_t s = 0; s < cpl_grid_n_steps(grid, CPL_GRID_FAR_FIRST); s++) {
        at = cpl_grid_far_step(grid, at, dest, s);
        if (at < 0 || at >= grid->n_ranks)
            fail_msg("%d -> %d of %d ranks, %d dimensions: far over %d", src, dest, grid->n_ranks,
                     grid->n_dims, at);
    }
    if (at != dest)
        fail_msg("%d -> %d of %d ranks, %d dimensions: far ends at %d", src, dest, grid->n_ranks,
                 grid->n_dims, at);
}

static void check_router(const struct cpl_grid *grid, int32_t src, int32_t dest)
{
    int32_t at = src;
    check_far_router(grid, src, dest);
    for (int32_t d = 0; d < grid->n_dims; d++) {
        at = cpl_grid_step(grid, at, dest, d);
        if (at < 0 || at >= grid->n_ranks)
            fail_msg("%d -> %d of %d ranks, %d dimensions: over %d", src, dest, grid->n_ranks,
                     grid->n_dims, at);
    }
    if (at != dest)
        fail_msg("%d -> %d of %d ranks, %d dimensions: ends at %d", src, dest, grid->n_ranks,
                 grid->n_dims, at);
}

static struct cpl_grid make_even_grid(int32_t n_ranks, int32_t n_dims)
{
    int32_t size[CPL_MAX_DIMENSIONS];
    struct cpl_grid grid = {0};
    struct cpl_error error = {""};
    if (cpl_grid_even_sizes(n_ranks, n_dims, size, &error) ||
        cpl_grid_init(&grid, n_ranks, n_dims, size, &error))
        fail_msg("%d ranks, %d dimensions: %s", n_ranks, n_dims, error.text);
    return grid;
}

/* All pairs of all grids of few ranks. */
static void test_all_routers(void **state)
{
    (void)state;
    for (int32_t n = 1; n <= 70; n++)
        for (int32_t n_dims = 1; n_dims <= (n > 1 ? log2_floor(n) : 1); n_dims++) {
            struct cpl_grid grid = make_even_grid(n, n_dims);
            for (int32_t src = 0; src < n; src++)
                for (int32_t dest = 0; dest < n; dest++)
                    check_router(&grid, src, dest);
        }
}

/* Some pairs of grids of many ranks, the largest number and primes included. */
static void test_random_routers(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int k = 0; k < 200; k++) {
        int32_t n = k < 4 ? (1 << 24) - 3 * k : 2 + random_below(&random, 1 << (4 + k % 21));
        for (int32_t n_dims = 1; n_dims <= log2_floor(n); n_dims++) {
            struct cpl_grid grid = make_even_grid(n, n_dims);
            for (int pair = 0; pair < 20; pair++)
                check_router(&grid, random_below(&random, n), random_below(&random, n));
            check_router(&grid, 0, n - 1);
            check_router(&grid, n - 1, 0);
        }
    }
}

/* Any sizes, however uneven, and sizes of 1. */
static void test_uneven_routers(void **state)
{
    (void)state;
    uint64_t random = 2;
    int n_grids = 0;
    while (n_grids < 500) {
        int32_t size[4], n_dims = 1 + random_below(&random, 4), n = 1 + random_below(&random, 60);
        struct cpl_grid grid;
        for (int32_t d = 0; d < n_dims; d++)
            size[d] = 1 + random_below(&random, 9);
        if (cpl_grid_init(&grid, n, n_dims, size, NULL))
            continue;
        n_grids++;
        for (int32_t src = 0; src < n; src++)
            for (int32_t dest = 0; dest < n; dest++)
                check_router(&grid, src, dest);
    }
}

/* Who goes where in each step, by walking all pairs. */
static void mark_computed(const struct cpl_grid *grid, enum cpl_grid_order order, char *goes)
{
    size_t n = (size_t)grid->n_ranks;
    for (int32_t src = 0; src < grid->n_ranks; src++)
        for (int32_t dest = 0; dest < grid->n_ranks; dest++)
            for (int32_t s = 0, at = src; s < cpl_grid_n_steps(grid, order); s++) {
                int32_t next = cpl_grid_next(grid, order, at, dest, s);
                goes[((size_t)s * n + (size_t)at) * n + (size_t)next] = 1;
                at = next;
            }
}

static void check_peers(const struct cpl_grid *grid, enum cpl_grid_order order, int32_t at,
                        int32_t step, bool incoming, const char *goes)
{
    int32_t peer[64], n = grid->n_ranks, k = 0;
    int32_t n_peers = cpl_grid_peers(grid, order, at, step, incoming, peer);
    for (int32_t other = 0; other < n; other++) {
        int32_t from = incoming ? other : at, to = incoming ? at : other;
        if (!goes[((size_t)step * (size_t)n + (size_t)from) * (size_t)n + (size_t)to])
            continue;
        if (k == n_peers || peer[k++] != other)
            fail_msg("%d ranks, %d dimensions, step %d: %s rank %d, %d is missing", n, grid->n_dims,
                     step, incoming ? "to" : "from", at, other);
    }
    if (k != n_peers)
        fail_msg("%d ranks, %d dimensions, step %d: rank %d has %d peers, not %d", n, grid->n_dims,
                 step, at, k, n_peers);
}

static void check_all_peers(const struct cpl_grid *grid, enum cpl_grid_order order)
{
    static char goes[7 * 40 * 40];
    memset(goes, 0, sizeof goes);
    mark_computed(grid, order, goes);
    for (int32_t s = 0; s < cpl_grid_n_steps(grid, order); s++)
        for (int32_t at = 0; at < grid->n_ranks; at++) {
            check_peers(grid, order, at, s, false, goes);
            check_peers(grid, order, at, s, true, goes);
        }
}

/* Peers are those that some message goes to or comes from. */
static void test_peers(void **state)
{
    (void)state;
    for (int32_t n = 1; n <= 40; n++)
        for (int32_t n_dims = 1; n_dims <= log2_floor(n) || n_dims == 1; n_dims++) {
            struct cpl_grid grid = make_even_grid(n, n_dims);
            check_all_peers(&grid, CPL_GRID_FAR_FIRST);
            check_all_peers(&grid, CPL_GRID_NEAR_FIRST);
        }
}

/* The sizes hold all ranks, and the largest comes first; no size is 1 from two dimensions on. */
static void test_many_sizes(void **state)
{
    (void)state;
    for (int32_t n = 2; n <= 3000; n++)
        for (int32_t n_dims = 2; n_dims <= log2_floor(n); n_dims++) {
            int32_t size[CPL_MAX_DIMENSIONS];
            int64_t points = 1;
            assert_int_equal(cpl_grid_even_sizes(n, n_dims, size, NULL), CPL_OK);
            for (int32_t d = 0; d < n_dims; d++) {
                points *= size[d];
                assert_true(size[d] >= 2 && size[d] <= size[0]);
                assert_true(d == 0 || size[d] <= size[d - 1]);
            }
            assert_true(points >= n);
        }
}

static void check_shape(enum cpl_grid_shape shape, int32_t n_ranks, int32_t n_dims,
                        int32_t n_expected, const int32_t *expected)
{
    int32_t n = -1, size[CPL_MAX_DIMENSIONS];
    assert_int_equal(cpl_grid_shape_sizes(shape, n_ranks, n_dims, &n, size, NULL), CPL_OK);
    assert_int_equal(n, n_expected);
    for (int32_t d = 0; d < n; d++)
        if (size[d] != expected[d])
            fail_msg("%s of %d: size %d is %d, not %d", cpl_grid_shape_name(shape), n_ranks, d,
                     size[d], expected[d]);
}

/* The shapes of Peters 2024, 5.2.1, for 4096 ranks. */
static void test_shapes_of_4096(void **state)
{
    (void)state;
    check_shape(CPL_SHAPE_EQUAL, 4096, 0, 6, (const int32_t[]){4, 4, 4, 4, 4, 4});
    check_shape(CPL_SHAPE_HYPERCUBE, 4096, 0, 12,
                (const int32_t[]){2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2});
    check_shape(CPL_SHAPE_INCREASE, 4096, 0, 6, (const int32_t[]){2, 2, 2, 4, 8, 16});
    check_shape(CPL_SHAPE_DECREASE, 4096, 0, 6, (const int32_t[]){16, 8, 4, 2, 2, 2});
    check_shape(CPL_SHAPE_HOURGLASS, 4096, 0, 6, (const int32_t[]){8, 4, 2, 2, 4, 8});
    check_shape(CPL_SHAPE_INVERSE_HOURGLASS, 4096, 0, 6, (const int32_t[]){2, 4, 8, 8, 4, 2});
}

/* Bits beyond and below what the staircase takes, few ranks, ranks that are no power of two. */
static void test_other_shapes(void **state)
{
    (void)state;
    check_shape(CPL_SHAPE_INCREASE, 8192, 6, 6, (const int32_t[]){2, 2, 4, 4, 8, 16});
    check_shape(CPL_SHAPE_INCREASE, 2048, 2, 2, (const int32_t[]){32, 64});
    check_shape(CPL_SHAPE_INCREASE, 4096, 2, 2, (const int32_t[]){64, 64});
    check_shape(CPL_SHAPE_DECREASE, 4096, 12, 12,
                (const int32_t[]){2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2});
    check_shape(CPL_SHAPE_DECREASE, 512, 0, 5, (const int32_t[]){8, 4, 4, 2, 2});
    check_shape(CPL_SHAPE_HOURGLASS, 512, 5, 5, (const int32_t[]){4, 4, 2, 4, 4});
    check_shape(CPL_SHAPE_EQUAL, 100, 3, 3, (const int32_t[]){8, 4, 4});
    check_shape(CPL_SHAPE_EQUAL, 3, 0, 2, (const int32_t[]){2, 2});
    check_shape(CPL_SHAPE_INCREASE, 2, 0, 1, (const int32_t[]){2});
    check_shape(CPL_SHAPE_HOURGLASS, 1, 0, 1, (const int32_t[]){1});
    check_shape(CPL_SHAPE_HYPERCUBE, 1, 0, 1, (const int32_t[]){1});
    check_shape(CPL_SHAPE_EQUAL, (1 << 24) - 3, 2, 2, (const int32_t[]){4096, 4096});
}

/* Whatever the shape: the product is the power of two that holds the ranks, neighbours differ by a
 * factor of two at most, and the grid can be made in both orders. */
static void test_many_shapes(void **state)
{
    (void)state;
    for (int32_t n_ranks = 1; n_ranks <= 3000; n_ranks += 1 + n_ranks / 7)
        for (int shape = 0; shape < CPL_N_SHAPES; shape++)
            for (int32_t n_dims = 1; n_dims <= cpl_grid_log2(n_ranks); n_dims++) {
                int32_t n = 0, size[CPL_MAX_DIMENSIONS], reversed[CPL_MAX_DIMENSIONS];
                int64_t points = 1;
                struct cpl_grid grid;
                assert_int_equal(cpl_grid_shape_sizes((enum cpl_grid_shape)shape, n_ranks, n_dims,
                                                      &n, size, NULL),
                                 CPL_OK);
                for (int32_t d = 0; d < n; d++) {
                    points *= size[d];
                    reversed[n - 1 - d] = size[d];
                    assert_true(d == 0 ||
                                (size[d] <= 2 * size[d - 1] && size[d - 1] <= 2 * size[d]));
                }
                assert_true(points >= n_ranks && points < 2 * n_ranks);
                assert_int_equal(cpl_grid_init(&grid, n_ranks, n, size, NULL), CPL_OK);
                assert_int_equal(cpl_grid_init(&grid, n_ranks, n, reversed, NULL), CPL_OK);
            }
}

static void test_unfit_shapes(void **state)
{
    (void)state;
    int32_t n, size[CPL_MAX_DIMENSIONS];
    struct cpl_error error = {""};
    assert_int_equal(cpl_grid_shape_sizes(CPL_SHAPE_EQUAL, 9, 5, &n, size, &error), CPL_ERR_UNFIT);
    assert_string_equal(error.text, "9 ranks fit equal shapes of 1 to 4 dimensions, not 5");
    assert_int_equal(cpl_grid_shape_sizes(CPL_SHAPE_EQUAL, 1, 2, &n, size, NULL), CPL_ERR_UNFIT);
    assert_int_equal(cpl_grid_shape_sizes(CPL_SHAPE_EQUAL, 9, -1, &n, size, NULL), CPL_ERR_UNFIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_sizes),
        cmocka_unit_test(test_sizes_with_holes),
        cmocka_unit_test(test_a_quarter_worse),
        cmocka_unit_test(test_unfit_sizes),
        cmocka_unit_test(test_init),
        cmocka_unit_test(test_unfit_grids),
        cmocka_unit_test(test_steps_around_holes),
        cmocka_unit_test(test_far_steps_around_holes),
        cmocka_unit_test(test_all_routers),
        cmocka_unit_test(test_random_routers),
        cmocka_unit_test(test_uneven_routers),
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_many_sizes),
        cmocka_unit_test(test_shapes_of_4096),
        cmocka_unit_test(test_other_shapes),
        cmocka_unit_test(test_many_shapes),
        cmocka_unit_test(test_unfit_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
