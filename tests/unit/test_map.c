/* Tests of maps (map.h): examples by hand; no swap remains that would gain; a strategy with a map
 * is never modelled slower than without. */
#include "planner/grid/map.h"
#include "planner/plan.h"
#include "planner/strategy.h"
#include "plans.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MOST_RANKS RANDOM_PATTERN_MOST_RANKS

static struct cpl_grid make_grid(int32_t n_ranks, int32_t n_dims, const int32_t *size)
{
    struct cpl_grid grid = {0};
    assert_int_equal(cpl_grid_init(&grid, n_ranks, n_dims, size, NULL), CPL_OK);
    return grid;
}

/* The machine whose rank i is on node node[i] and socket socket[i] (NULL: all 0). */
static struct cpl_machine make_machine(int32_t n_ranks, const int64_t *node, const int32_t *socket)
{
    struct cpl_machine machine;
    assert_int_equal(cpl_machine_from_places(n_ranks, node, socket, NULL, 0, &machine, NULL),
                     CPL_OK);
    return machine;
}

static void assert_permutation(const int32_t *position, int32_t n_ranks)
{
    bool seen[MOST_RANKS] = {false};
    for (int32_t i = 0; i < n_ranks; i++) {
        if (position[i] < 0 || position[i] >= n_ranks || seen[position[i]])
            fail_msg("rank %d of %d plays %d", i, n_ranks, position[i]);
        seen[position[i]] = true;
    }
}

static void test_hops(void **state)
{
    (void)state;
    struct cpl_grid grid = make_grid(18, 3, (const int32_t[]){3, 2, 3});
    assert_int_equal(cpl_map_hops(&grid, 0, 0), 0);
    assert_int_equal(cpl_map_hops(&grid, 0, 2), 1);
    assert_int_equal(cpl_map_hops(&grid, 0, 3), 1);
    assert_int_equal(cpl_map_hops(&grid, 1, 3), 2);
    assert_int_equal(cpl_map_hops(&grid, 4, 12), 3);
    struct cpl_pattern pattern = make_pattern(
        18, (const struct cpl_pattern_entry[]){MESSAGE(1, 3, 10), MESSAGE(4, 12, 1)}, 2);
    int32_t position[18];
    for (int32_t i = 0; i < 18; i++)
        position[i] = i;
    assert_true(cpl_map_forwarded(&pattern, &grid, NULL) == 23);
    assert_true(cpl_map_forwarded(&pattern, &grid, position) == 23);
    position[3] = 2;
    position[2] = 3;
    assert_true(cpl_map_forwarded(&pattern, &grid, position) == 13);
    cpl_pattern_free(&pattern);
}

/* Corners of a square: 0 and 3 have most to say to each other, 1 and 2 a little. One swap makes
 * both pairs neighbours; the lowest ranks swap. */
static void test_square(void **state)
{
    (void)state;
    struct cpl_grid grid = make_grid(4, 2, (const int32_t[]){2, 2});
    struct cpl_pattern pattern =
        make_pattern(4, (const struct cpl_pattern_entry[]){MESSAGE(0, 3, 5), MESSAGE(2, 1, 1)}, 2);
    for (int map = CPL_MAP_KLF; map <= CPL_MAP_KLR; map++) {
        int32_t position[4];
        assert_int_equal(cpl_map_make((enum cpl_map)map, &pattern, NULL, &grid, position, NULL),
                         CPL_OK);
        assert_memory_equal(position, ((const int32_t[]){1, 0, 2, 3}), sizeof position);
        assert_true(cpl_map_forwarded(&pattern, &grid, position) == 6);
    }
    cpl_pattern_free(&pattern);
}

/* The largest volume there is, over three hops, is weighed right. */
static void test_large_volumes(void **state)
{
    (void)state;
    struct cpl_grid grid = make_grid(8, 3, (const int32_t[]){2, 2, 2});
    struct cpl_pattern pattern =
        make_pattern(8, (const struct cpl_pattern_entry[]){MESSAGE(0, 7, INT64_MAX)}, 1);
    for (int map = CPL_MAP_KLF; map <= CPL_MAP_KLR; map++) {
        int32_t position[8];
        assert_int_equal(cpl_map_make((enum cpl_map)map, &pattern, NULL, &grid, position, NULL),
                         CPL_OK);
        assert_permutation(position, 8);
        assert_int_equal(cpl_map_hops(&grid, position[0], position[7]), 1);
    }
    cpl_pattern_free(&pattern);
}

/* Few messages of little volume between few ranks, so that every gain is worthwhile. */
static struct cpl_pattern make_small_pattern(int32_t n_ranks, uint64_t *random)
{
    struct cpl_pattern_entry entries[10];
    for (int k = 0; k < 10; k++)
        entries[k] = (struct cpl_pattern_entry)MESSAGE(
            random_below(random, n_ranks), random_below(random, n_ranks), random_below(random, 3));
    return make_pattern(n_ranks, entries, 10);
}

/* The largest gain of a swap that the map allows. */
static double best_gain(enum cpl_map map, const struct cpl_pattern *pattern,
                        const struct cpl_grid *grid, int32_t *position)
{
    double now = cpl_map_forwarded(pattern, grid, position), best = 0;
    for (int32_t a = 0; a < grid->n_ranks; a++)
        for (int32_t b = 0; b < a; b++) {
            int32_t point_a = position[a], point_b = position[b];
            if (map == CPL_MAP_KLR && cpl_map_hops(grid, point_a, point_b) != 1)
                continue;
            position[a] = point_b;
            position[b] = point_a;
            double gain = now - cpl_map_forwarded(pattern, grid, position);
            best = gain > best ? gain : best;
            position[a] = point_a;
            position[b] = point_b;
        }
    return best;
}

static void check_swaps(enum cpl_map map, const struct cpl_pattern *pattern,
                        const struct cpl_grid *grid, int *n_better)
{
    int32_t position[MOST_RANKS], again[MOST_RANKS];
    assert_int_equal(cpl_map_make(map, pattern, NULL, grid, position, NULL), CPL_OK);
    assert_int_equal(cpl_map_make(map, pattern, NULL, grid, again, NULL), CPL_OK);
    assert_memory_equal(position, again, (size_t)grid->n_ranks * sizeof *position);
    assert_permutation(position, grid->n_ranks);
    double saved =
        cpl_map_forwarded(pattern, grid, NULL) - cpl_map_forwarded(pattern, grid, position);
    assert_true(saved >= 0);
    *n_better += saved > 0;
    if (saved < 32 && best_gain(map, pattern, grid, position) > 0)
        fail_msg("%s on %d ranks: a swap gains", cpl_map_name(map), grid->n_ranks);
}

/* No swap is left that would gain, on grids of many shapes with and without holes. */
static void test_swaps(void **state)
{
    (void)state;
    uint64_t random = 1;
    int n_grids = 0, n_better = 0;
    while (n_grids < 500) {
        int32_t size[3], n_dims = 1 + random_below(&random, 3), n = 2 + random_below(&random, 20);
        struct cpl_grid grid;
        for (int32_t d = 0; d < n_dims; d++)
            size[d] = 1 + random_below(&random, 4);
        if (cpl_grid_init(&grid, n, n_dims, size, NULL))
            continue;
        struct cpl_pattern pattern = make_small_pattern(n, &random);
        n_grids++;
        check_swaps(CPL_MAP_KLF, &pattern, &grid, &n_better);
        check_swaps(CPL_MAP_KLR, &pattern, &grid, &n_better);
        cpl_pattern_free(&pattern);
    }
    assert_true(n_better > 300);
}

/* A hypercube whose ranks were shuffled is found again to a good part. */
static void test_shuffled_hypercube(void **state)
{
    (void)state;
    struct cpl_pattern_entry entries[64 * 6];
    int32_t name[64], size[6] = {2, 2, 2, 2, 2, 2}, position[64];
    struct cpl_grid grid = make_grid(64, 6, size);
    uint64_t random = 3;
    int64_t n = 0;
    for (int32_t i = 0; i < 64; i++) {
        int32_t other = random_below(&random, i + 1);
        name[i] = name[other];
        name[other] = i;
    }
    for (int32_t i = 0; i < 64; i++)
        for (int32_t d = 0; d < 6; d++)
            entries[n++] = (struct cpl_pattern_entry)MESSAGE(name[i], name[i ^ 1 << d], 1);
    struct cpl_pattern pattern = make_pattern(64, entries, n);
    double best = 64 * 6, before = cpl_map_forwarded(&pattern, &grid, NULL);
    assert_true(before > 2.5 * best);
    for (int map = CPL_MAP_KLF; map <= CPL_MAP_KLR; map++) {
        assert_int_equal(cpl_map_make((enum cpl_map)map, &pattern, NULL, &grid, position, NULL),
                         CPL_OK);
        double after = cpl_map_forwarded(&pattern, &grid, position);
        if (after > best + 0.6 * (before - best))
            fail_msg("%s: %g of %g before, %g at best", cpl_map_name((enum cpl_map)map), after,
                     before, best);
    }
    cpl_pattern_free(&pattern);
}

static void check_map(enum cpl_map map, struct cpl_machine machine, const int32_t *expected)
{
    int32_t position[MOST_RANKS];
    assert_int_equal(map == CPL_MAP_NEAR ? cpl_map_near(&machine, position)
                                         : cpl_map_doubling(&machine, position),
                     CPL_OK);
    assert_memory_equal(position, expected, (size_t)machine.n_ranks * sizeof *position);
    cpl_machine_free(&machine);
}

/* Rank 0's socket first, then its node, then the lowest rank that is left. */
static void test_near(void **state)
{
    (void)state;
    check_map(CPL_MAP_NEAR, make_machine(4, (const int64_t[]){0, 1, 0, 1}, NULL),
              (const int32_t[]){0, 2, 1, 3});
    check_map(CPL_MAP_NEAR, make_machine(1, (const int64_t[]){9}, NULL), (const int32_t[]){0});
    check_map(CPL_MAP_NEAR,
              make_machine(7, (const int64_t[]){0, 1, 0, 0, 0, 1, 1},
                           (const int32_t[]){1, 0, 0, 1, 0, 1, 0}),
              (const int32_t[]){0, 4, 2, 1, 3, 6, 5});
}

/* Point 2 for the nearest rank to point 0's, then point 1, from which 3 is reached. */
static void test_doubling(void **state)
{
    (void)state;
    check_map(CPL_MAP_DOUBLING, make_machine(4, (const int64_t[]){0, 0, 1, 1}, NULL),
              (const int32_t[]){0, 2, 1, 3});
    check_map(CPL_MAP_DOUBLING, make_machine(4, (const int64_t[]){0, 1, 0, 1}, NULL),
              (const int32_t[]){0, 1, 2, 3});
    /* 0; around it 4 and 2; around 2 only 3 (6 is none); then 1 around 0 */
    check_map(CPL_MAP_DOUBLING, make_machine(5, (const int64_t[]){0, 1, 1, 0, 1}, NULL),
              (const int32_t[]){0, 2, 3, 4, 1});
}

static void set_distances(struct cpl_machine *machine, float *us)
{
    struct cpl_distances distances = {.n_ranks = machine->n_ranks, .us = us};
    assert_int_equal(cpl_machine_set_distances(machine, &distances, NULL, NULL), CPL_OK);
}

static struct cpl_machine make_measured(int32_t n_ranks, const int64_t *node, float *us)
{
    struct cpl_machine machine = make_machine(n_ranks, node, NULL);
    set_distances(&machine, us);
    return machine;
}

/* Distances that contradict the nodes: 3 is next to 0 and then 1, not 2, to 3; doubling has 3 at
 * the far point, 2 around 0, and what is left next to 2. */
static void test_distances(void **state)
{
    (void)state;
    const int64_t node[] = {0, 0, 1, 1};
    float us[] = {0, 5, 4, 1, /* a row for each rank */
                  9, 0, 9, 9, /* rows tell, columns do not */
                  4, 9, 0, 8, 3, 1, 2, 0};
    check_map(CPL_MAP_NEAR, make_machine(4, node, NULL), (const int32_t[]){0, 1, 2, 3});
    check_map(CPL_MAP_NEAR, make_measured(4, node, us), (const int32_t[]){0, 2, 3, 1});
    check_map(CPL_MAP_DOUBLING, make_machine(4, node, NULL), (const int32_t[]){0, 2, 1, 3});
    check_map(CPL_MAP_DOUBLING, make_measured(4, node, us), (const int32_t[]){0, 3, 1, 2});
    float equal[16] = {0};
    check_map(CPL_MAP_NEAR, make_measured(4, (const int64_t[]){0, 1, 0, 1}, equal),
              (const int32_t[]){0, 1, 2, 3}); /* ties: the lowest rank */
}

/* Whatever was measured, a map is a permutation; in the ring each rank is the nearest of those left
 * to the one before. */
static void test_random_distances(void **state)
{
    (void)state;
    static float us[MOST_RANKS * MOST_RANKS];
    uint64_t random = 8;
    for (int32_t n = 1; n <= MOST_RANKS; n++) {
        int32_t position[MOST_RANKS], rank_at[MOST_RANKS];
        int64_t node[MOST_RANKS] = {0};
        for (int32_t k = 0; k < n * n; k++)
            us[k] = (float)random_below(&random, 1 + n / 2);
        struct cpl_machine machine = make_measured(n, node, us);
        assert_int_equal(cpl_map_doubling(&machine, position), CPL_OK);
        assert_permutation(position, n);
        assert_int_equal(cpl_map_near(&machine, position), CPL_OK);
        assert_permutation(position, n);
        assert_int_equal(position[0], 0);
        for (int32_t i = 0; i < n; i++)
            rank_at[position[i]] = i;
        for (int32_t p = 1; p < n; p++)
            for (int32_t later = p + 1; later < n; later++)
                assert_true(us[rank_at[p - 1] * n + rank_at[p]] <=
                            us[rank_at[p - 1] * n + rank_at[later]]);
        cpl_machine_free(&machine);
    }
}

static void scatter_ranks(struct cpl_machine *machine, int32_t n_ranks, uint64_t *random)
{
    int64_t node[MOST_RANKS];
    int32_t socket[MOST_RANKS], n_nodes = 1 + random_below(random, n_ranks / 2 + 1);
    for (int32_t i = 0; i < n_ranks; i++) {
        node[i] = random_below(random, n_nodes);
        socket[i] = random_below(random, 2);
    }
    *machine = make_machine(n_ranks, node, socket);
}

/* Any number of ranks anywhere: a permutation; in the ring the ranks of a node are together. */
static void test_machines(void **state)
{
    (void)state;
    uint64_t random = 5;
    for (int32_t n = 1; n <= MOST_RANKS; n++) {
        struct cpl_machine machine;
        int32_t position[MOST_RANKS], node_at[MOST_RANKS], n_changes = 0;
        scatter_ranks(&machine, n, &random);
        assert_int_equal(cpl_map_doubling(&machine, position), CPL_OK);
        assert_permutation(position, n);
        assert_int_equal(cpl_map_near(&machine, position), CPL_OK);
        assert_permutation(position, n);
        for (int32_t i = 0; i < n; i++)
            node_at[position[i]] = machine.node[i];
        for (int32_t p = 1; p < n; p++)
            n_changes += node_at[p] != node_at[p - 1];
        assert_int_equal(n_changes, machine.n_nodes - 1);
        cpl_machine_free(&machine);
    }
}

static struct cpl_plan plan_by(const struct cpl_strategy_input *input, const char *strategy,
                               double *us)
{
    struct cpl_strategy_choice choice;
    struct cpl_plan plan;
    struct cpl_error error = {""};
    if (cpl_strategy_parse(strategy, &choice, &error) ||
        cpl_strategy_plan(input, &choice, &plan, &error) ||
        cpl_plan_check(&plan, input->pattern, &error) ||
        cpl_plan_chain_cost(&plan, input->machine, input->unit_bytes, us, &error))
        fail_msg("%s: %s", strategy, error.text);
    return plan;
}

/* Returns how many maps were kept. */
static int check_kept(const struct cpl_strategy_input *input, const char *strategy)
{
    int n_kept = 0;
    double plain_us, us;
    struct cpl_plan plain = plan_by(input, strategy, &plain_us);
    for (int map = CPL_MAP_NONE + 1; map < CPL_N_MAPS; map++) {
        char text[CPL_STRATEGY_TEXT];
        snprintf(text, sizeof text, "%s+%s", strategy, cpl_map_name((enum cpl_map)map));
        struct cpl_plan plan = plan_by(input, text, &us);
        assert_true(us < plain_us || plan.fingerprint == plain.fingerprint);
        n_kept += us < plain_us;
        cpl_plan_free(&plan);
    }
    cpl_plan_free(&plain);
    return n_kept;
}

/* A map is kept when and only when the plan with it is modelled faster. */
static void test_strategies(void **state)
{
    (void)state;
    static const char *const strategies[] = {"vpt:2", "grid:far:equal", "grid:hypercube"};
    int n_kept[3] = {0};
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint64_t random = seed;
        struct cpl_machine machine;
        struct cpl_pattern pattern = random_pattern_undivided(seed, 60);
        struct cpl_strategy_input input = {&pattern, &machine, 8, 1};
        scatter_ranks(&machine, pattern.n_ranks, &random);
        for (size_t k = 0; k < 3; k++)
            if (k > 0 || pattern.n_ranks >= 4)
                n_kept[k] += check_kept(&input, strategies[k]);
        cpl_machine_free(&machine);
        cpl_pattern_free(&pattern);
    }
    for (size_t k = 0; k < 3; k++)
        assert_in_range(n_kept[k], 50, 4 * 200 - 50);
}

static void test_unfit(void **state)
{
    (void)state;
    struct cpl_error error = {""};
    struct cpl_pattern pattern = {.n_ranks = CPL_MAP_KLF_RANKS + 1};
    struct cpl_grid grid = make_grid(CPL_MAP_KLF_RANKS + 1, 2, (const int32_t[]){33, 33});
    assert_int_equal(cpl_map_make(CPL_MAP_KLF, &pattern, NULL, &grid, NULL, &error), CPL_ERR_UNFIT);
    assert_string_equal(error.text, "klf is for at most 1024 ranks, not 1025; try klr");
    grid = make_grid(1 << 20, 2, (const int32_t[]){1024, 1024});
    assert_int_equal(cpl_map_make(CPL_MAP_KLR, &pattern, NULL, &grid, NULL, &error), CPL_ERR_UNFIT);
    assert_string_equal(error.text, "klr on 1048576 ranks is for grids whose sizes sum up to 16 at "
                                    "most, not 2048");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hops),
        cmocka_unit_test(test_square),
        cmocka_unit_test(test_large_volumes),
        cmocka_unit_test(test_swaps),
        cmocka_unit_test(test_shuffled_hypercube),
        cmocka_unit_test(test_near),
        cmocka_unit_test(test_doubling),
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_random_distances),
        cmocka_unit_test(test_machines),
        cmocka_unit_test(test_strategies),
        cmocka_unit_test(test_unfit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
