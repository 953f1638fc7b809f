/* Bidirectional exchange over any number of ranks (hypercube.h): who plays which corner, and the
 * cost of carrying a pattern along, computed again by walking each message. */
#include "planner/base/hash.h"
#include "planner/grid/hypercube.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define MOST_RANKS 40
#define MOST_STEPS 8

static void test_corners(void **state)
{
    (void)state;
    for (int32_t n = 1; n <= 200; n++) {
        struct cpl_hypercube cube = cpl_hypercube_of(n);
        int32_t n_corners = INT32_C(1) << cube.n_steps, n_at[256] = {0};
        assert_true(n_corners <= n && n < 2 * n_corners);
        for (int32_t rank = 0; rank < n; rank++) {
            int32_t corner = cpl_hypercube_corner(&cube, rank);
            assert_in_range(corner, 0, n_corners - 1);
            n_at[corner]++;
        }
        for (int32_t corner = 0; corner < n_corners; corner++) {
            int32_t rank = cpl_hypercube_rank(&cube, corner);
            assert_int_equal(cpl_hypercube_corner(&cube, rank), corner);
            assert_int_equal(n_at[corner], corner < cube.n_folded ? 2 : 1);
        }
    }
}

/* What every rank sends and gets in every step, by walking the messages one after the other. */
struct walk {
    double bytes[MOST_STEPS][MOST_RANKS][2];
    double segments[MOST_STEPS][MOST_RANKS][2];
};

static void hop(struct walk *walk, int step, int32_t *at, int32_t to, double bytes)
{
    walk->bytes[step][*at][0] += bytes;
    walk->segments[step][*at][0]++;
    walk->bytes[step][to][1] += bytes;
    walk->segments[step][to][1]++;
    *at = to;
}

static void walk_message(struct walk *walk, const struct cpl_hypercube *cube, int32_t src,
                         int32_t dst, double bytes)
{
    int32_t at = src, n = cube->n_steps;
    if (cpl_hypercube_is_guest(cube, src))
        hop(walk, 0, &at, cpl_hypercube_companion(cube, src), bytes);
    for (int32_t k = 0; k < n; k++) {
        int32_t here = cpl_hypercube_corner(cube, at), there = cpl_hypercube_corner(cube, dst);
        if ((here ^ there) & (1 << k))
            hop(walk, 1 + k, &at, cpl_hypercube_rank(cube, here ^ (1 << k)), bytes);
    }
    if (cpl_hypercube_is_guest(cube, dst))
        hop(walk, n + 1, &at, dst, bytes);
    assert_int_equal(at, dst);
}

static double walked_us(const struct cpl_hypercube *cube, const struct cpl_pattern *pattern,
                        const struct cpl_machine *machine)
{
    struct walk *walk = calloc(1, sizeof *walk);
    double us = 0, ns_per_byte = machine->costs.link[CPL_LINK_NETWORK].ns_per_byte;
    for (int32_t src = 0; src < pattern->n_ranks; src++)
        for (int64_t m = pattern->first[src]; m < pattern->first[src + 1]; m++)
            walk_message(walk, cube, src, pattern->dst[m], 8 * (double)pattern->volume[m]);
    for (int step = 0; step < cube->n_steps + 2; step++) {
        double most = 0;
        for (int32_t rank = 0; rank < pattern->n_ranks; rank++) {
            const double *bytes = walk->bytes[step][rank], *n = walk->segments[step][rank];
            double ns = (bytes[0] > bytes[1] ? bytes[0] : bytes[1]) * ns_per_byte +
                        (n[0] + n[1]) * machine->costs.segment_ns;
            most = ns > most ? ns : most;
        }
        us += most * 1e-3;
    }
    free(walk);
    return us;
}

static void shuffle(uint64_t seed, int32_t n, int32_t *point_of, int32_t *rank_at)
{
    for (int32_t i = 0; i < n; i++) {
        int32_t at = (int32_t)(cpl_hash_mix(seed * 1000 + (uint64_t)i) % (uint64_t)(i + 1));
        rank_at[i] = rank_at[at];
        rank_at[at] = i;
    }
    for (int32_t point = 0; point < n; point++)
        point_of[rank_at[point]] = point;
}

/* With and without points of their own. */
static void test_cost(void **state)
{
    (void)state;
    int32_t point_of[MOST_RANKS], rank_at[MOST_RANKS];
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct cpl_pattern pattern = random_pattern_undivided(seed, MOST_RANKS);
        struct cpl_machine machine;
        double us = -1;
        /* one rank a node: the links are all alike */
        assert_int_equal(cpl_machine_init(pattern.n_ranks, 1, &machine, NULL), CPL_OK);
        struct cpl_hypercube cube = cpl_hypercube_of(pattern.n_ranks);
        if (seed % 2) {
            shuffle(seed, pattern.n_ranks, point_of, rank_at);
            cube.point_of = point_of;
            cube.rank_at = rank_at;
        }
        assert_int_equal(cpl_hypercube_carry_cost(&cube, &pattern, &machine, 8, &us, NULL), CPL_OK);
        double expected = walked_us(&cube, &pattern, &machine);
        assert_true(us >= expected * (1 - 1e-12) && us <= expected * (1 + 1e-12));
        cpl_machine_free(&machine);
        cpl_pattern_free(&pattern);
    }
}

static void test_other_machine(void **state)
{
    (void)state;
    struct cpl_pattern pattern = random_pattern_undivided(3, MOST_RANKS);
    struct cpl_machine machine;
    struct cpl_error error;
    double us = -1;
    assert_int_equal(cpl_machine_init(pattern.n_ranks + 1, 1, &machine, NULL), CPL_OK);
    struct cpl_hypercube cube = cpl_hypercube_of(pattern.n_ranks);
    assert_int_equal(cpl_hypercube_carry_cost(&cube, &pattern, &machine, 1, &us, &error),
                     CPL_ERR_ARG);
    assert_true(us < 0);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
}

/* A map is a permutation, and its cost is the one told, never above that of the ranks themselves.
 */
static void test_map(void **state)
{
    (void)state;
    int n_changed = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct cpl_pattern pattern = random_pattern_undivided(seed, MOST_RANKS);
        struct cpl_machine machine;
        int32_t point_of[MOST_RANKS], rank_at[MOST_RANKS], n = pattern.n_ranks;
        double before = -1, after = -1, us = -1;
        bool changed;
        assert_int_equal(cpl_machine_init(n, 1, &machine, NULL), CPL_OK);
        struct cpl_hypercube cube = cpl_hypercube_of(n);
        assert_int_equal(cpl_hypercube_carry_cost(&cube, &pattern, &machine, 8, &before, NULL),
                         CPL_OK);
        assert_int_equal(cpl_hypercube_map(&pattern, &machine, 8, point_of, &changed, &after, NULL),
                         CPL_OK);
        for (int32_t point = 0; point < n; point++)
            rank_at[point] = -1;
        for (int32_t rank = 0; rank < n; rank++) {
            assert_in_range(point_of[rank], 0, n - 1);
            assert_int_equal(rank_at[point_of[rank]], -1);
            rank_at[point_of[rank]] = rank;
        }
        cube.point_of = point_of;
        cube.rank_at = rank_at;
        assert_int_equal(cpl_hypercube_carry_cost(&cube, &pattern, &machine, 8, &us, NULL), CPL_OK);
        assert_true(us >= after * (1 - 1e-12) && us <= after * (1 + 1e-12));
        assert_true(changed ? after < 0.9 * before : after >= before);
        n_changed += changed;
        cpl_machine_free(&machine);
        cpl_pattern_free(&pattern);
    }
    assert_true(n_changed > 20);
}

/* Pairs that talk much to each other, shuffled: the map has them one step apart. */
static void test_pairs(void **state)
{
    (void)state;
    enum { RANKS = 32 };
    const int32_t sizes[] = {RANKS, RANKS - 8};
    for (int k = 0; k < 2; k++) {
        int32_t n = sizes[k], order[RANKS], position[RANKS], point_of[RANKS];
        struct cpl_pattern_entry entries[RANKS];
        struct cpl_pattern pattern;
        struct cpl_machine machine;
        double us;
        bool changed;
        shuffle(77, n, position, order);
        for (int32_t i = 0; i < n; i++)
            entries[i] = (struct cpl_pattern_entry){order[i], order[i ^ 1], 1000, -1};
        assert_int_equal(cpl_pattern_build(n, entries, n, &pattern, NULL), CPL_OK);
        assert_int_equal(cpl_machine_init(n, 1, &machine, NULL), CPL_OK);
        assert_int_equal(cpl_hypercube_map(&pattern, &machine, 8, point_of, &changed, &us, NULL),
                         CPL_OK);
        assert_true(changed);
        const struct cpl_link_cost *link = &machine.costs.link[CPL_LINK_NETWORK];
        double once = (8000 * link->ns_per_byte + 2 * machine.costs.segment_ns) * 1e-3;
        if (k == 0)
            assert_true(us <= 5.01 * once); /* no rank carries more than its own in any step */
        cpl_machine_free(&machine);
        cpl_pattern_free(&pattern);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_corners),       cmocka_unit_test(test_cost),
        cmocka_unit_test(test_other_machine), cmocka_unit_test(test_map),
        cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
