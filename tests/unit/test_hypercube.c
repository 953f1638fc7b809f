/* Bidirectional exchange over any number of ranks (hypercube.h): who plays which corner, and what
 * carrying a pattern along costs, found again by walking each message. */
#include "hypercube.h"
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
    int32_t at = src, n = cube->n_steps, folded = 2 * cube->n_folded;
    if (src < folded && src % 2 == 0)
        hop(walk, 0, &at, src + 1, bytes);
    for (int32_t k = 0; k < n; k++) {
        int32_t here = cpl_hypercube_corner(cube, at), there = cpl_hypercube_corner(cube, dst);
        if ((here ^ there) & (1 << k))
            hop(walk, 1 + k, &at, cpl_hypercube_rank(cube, here ^ (1 << k)), bytes);
    }
    if (dst < folded && dst % 2 == 0)
        hop(walk, n + 1, &at, dst, bytes);
    assert_int_equal(at, dst);
}

static double walked_us(const struct cpl_pattern *pattern, const struct cpl_machine *machine)
{
    struct walk *walk = calloc(1, sizeof *walk);
    struct cpl_hypercube cube = cpl_hypercube_of(pattern->n_ranks);
    double us = 0, ns_per_byte = machine->costs.link[CPL_LINK_NETWORK].ns_per_byte;
    for (int32_t src = 0; src < pattern->n_ranks; src++)
        for (int64_t m = pattern->first[src]; m < pattern->first[src + 1]; m++)
            walk_message(walk, &cube, src, pattern->dst[m], 8 * (double)pattern->volume[m]);
    for (int step = 0; step < cube.n_steps + 2; step++) {
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

static void test_cost(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct cpl_pattern pattern = random_pattern_undivided(seed, MOST_RANKS);
        struct cpl_machine machine;
        double us = -1;
        /* one rank a node: the links are all alike */
        assert_int_equal(cpl_machine_init(pattern.n_ranks, 1, &machine, NULL), CPL_OK);
        assert_int_equal(cpl_hypercube_carry_cost(&pattern, &machine, 8, &us, NULL), CPL_OK);
        double expected = walked_us(&pattern, &machine);
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
    assert_int_equal(cpl_hypercube_carry_cost(&pattern, &machine, 1, &us, &error), CPL_ERR_ARG);
    assert_true(us < 0);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_corners),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_other_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
