/* Tests of choosing ways (array/choice.h). */
#include "array/choice.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define N_WAYS 5

static const struct cpl_step_load reads = {{0, 1000}, {1, 1}, 8}, writes = {{1000, 0}, {1, 1}, 8};
static const double all[2] = {1, 1};

/* n steps of a load whose ways take these times, up to so many percent more; counts the steps by
 * each way. Returns the way of the last step. */
static int run(struct cpl_choice *choice, const struct cpl_step_load *load, const double *modelled,
               const double *real, int n, int percent, uint64_t *random, int *count)
{
    for (int s = 0; s < n; s++) {
        int way = cpl_choice_next(choice, load, modelled);
        assert_in_range(way, 0, N_WAYS - 1);
        count[way]++;
        cpl_choice_note(choice, real[way] * (1 + random_below(random, percent + 1) / 100.0), all);
    }
    return choice->way;
}

static void test_finds_the_fastest(void **state)
{
    (void)state;
    static const double modelled[N_WAYS] = {3, 1, 2, 100, 4};
    uint64_t random = 1;
    for (int best = 0; best < N_WAYS; best++) {
        struct cpl_choice choice;
        double real[N_WAYS] = {300, 200, 1000, 250, 300};
        int count[N_WAYS] = {0};
        real[best] = 100;
        cpl_choice_begin(&choice, N_WAYS, NULL, true);
        assert_int_equal(cpl_choice_next(&choice, &reads, modelled), 1); /* the model's first */
        int last = run(&choice, &reads, modelled, real, 60, 20, &random, count);
        /* way 3 is modelled hopeless and never tried; way 2, measured hopeless, once */
        assert_int_equal(last, best == 3 ? 1 : best);
        assert_int_equal(count[3], 0);
        assert_int_equal(count[2], best == 2 ? count[2] : 1);
        for (int k = 0; k < N_WAYS; k++)
            assert_true(k == last || count[k] <= CPL_CHOICE_ROUNDS);
    }
}

static void test_looks_again(void **state)
{
    (void)state;
    static const double modelled[N_WAYS] = {1, 1, 1, 1, 1};
    double real[N_WAYS] = {100, 120, 500, 500, 500};
    struct cpl_choice choice;
    int count[N_WAYS] = {0};
    uint64_t random = 2;
    cpl_choice_begin(&choice, N_WAYS, NULL, true);
    assert_int_equal(run(&choice, &writes, modelled, real, 40, 5, &random, count), 0);
    real[0] = 300;
    assert_int_equal(run(&choice, &writes, modelled, real, 200, 5, &random, count), 1);
    /* ever more seldom */
    int before = count[0];
    run(&choice, &writes, modelled, real, 10000, 5, &random, count);
    assert_in_range(count[0] - before, 1, 30);
}

static void test_sizes_are_apart(void **state)
{
    (void)state;
    static const double modelled[N_WAYS] = {1, 1, 1, 1, 1};
    static const double few[N_WAYS] = {10, 50, 50, 50, 50}, many[N_WAYS] = {50, 50, 50, 50, 10};
    struct cpl_choice choice;
    int count[N_WAYS] = {0};
    uint64_t random = 3;
    cpl_choice_begin(&choice, N_WAYS, NULL, true);
    for (int k = 0; k < 30; k++) {
        run(&choice, &reads, modelled, few, 1, 5, &random, count);
        run(&choice, &writes, modelled, many, 1, 5, &random, count);
    }
    assert_int_equal(cpl_choice_next(&choice, &reads, modelled), 0);
    assert_int_equal(cpl_choice_next(&choice, &writes, modelled), 4);
    /* more sizes than are remembered: the oldest is forgotten, the newest known */
    struct cpl_step_load load = {{1, 1}, {1, 1}, 8};
    for (int k = 0; k < 3 * CPL_CHOICE_SIZES; k++, load.n[1] *= 2)
        run(&choice, &load, modelled, few, 20, 5, &random, count);
    load.n[1] /= 2;
    assert_int_equal(cpl_choice_next(&choice, &load, modelled), 0);
}

static void test_without_measuring(void **state)
{
    (void)state;
    static const double modelled[N_WAYS] = {3, 2, 2, 9, 4}, real[N_WAYS] = {1, 500, 1, 1, 1};
    struct cpl_choice choice;
    int count[N_WAYS] = {0};
    uint64_t random = 4;
    cpl_choice_begin(&choice, N_WAYS, NULL, false);
    run(&choice, &reads, modelled, real, 300, 5, &random, count);
    assert_int_equal(count[1], 300);
}

/* A step whose time is not known is no step of the trial. */
static void test_unknown_times(void **state)
{
    (void)state;
    static const double modelled[N_WAYS] = {1, 2, 3, 4, 5};
    struct cpl_choice choice;
    cpl_choice_begin(&choice, N_WAYS, NULL, true);
    for (int k = 0; k < 10; k++) {
        assert_int_equal(cpl_choice_next(&choice, &reads, modelled), 0);
        cpl_choice_note(&choice, 0, all);
    }
    cpl_choice_note(&choice, 5, all);
    assert_int_equal(cpl_choice_next(&choice, &reads, modelled), 0);
    cpl_choice_note(&choice, 5, all);
    assert_int_equal(cpl_choice_next(&choice, &reads, modelled), 1);
}

/* Ways 0 and 1 are 3's and 4's twins. */
static const int twin[N_WAYS] = {3, 4, -1, 0, 1};

/* Twins of the best way are tried once it is known that many requests are for the same elements,
 * and stay only where they are faster. */
static void test_twins(void **state)
{
    (void)state;
    static const double unknown[N_WAYS] = {10, 11, 12, 13, 14}, known[N_WAYS] = {10, 11, 12, 8, 9};
    static const double few[2] = {0.1, 0.1};
    for (int is_faster = 0; is_faster < 2; is_faster++)
        for (int learns = 0; learns < 2; learns++) {
            double real[N_WAYS] = {150, 100, 110, 1, is_faster ? 90 : 105};
            int count[N_WAYS] = {0};
            struct cpl_choice choice;
            cpl_choice_begin(&choice, N_WAYS, twin, true);
            for (int s = 0; s < 40; s++) {
                struct cpl_step_load load = reads;
                cpl_choice_recall(&choice, &load);
                assert_true(load.distinct[1] == (learns && s > 0 ? few[1] : 1));
                int way = cpl_choice_next(&choice, &load, load.distinct[1] < 0.5 ? known : unknown);
                count[way]++;
                cpl_choice_note(&choice, real[way], learns ? few : all);
            }
            assert_int_equal(count[3], 0); /* its twin is not near the best */
            assert_int_equal(count[4], !learns ? 0 : is_faster ? count[4] : CPL_CHOICE_ROUNDS);
            assert_int_equal(choice.way, learns && is_faster ? 4 : 1);
        }
}

/* Where hashing is modelled faster from the beginning, its twin does not take turns. */
static void test_better_twin_first(void **state)
{
    (void)state;
    static const double modelled[N_WAYS] = {10, 11, 12, 8, 9}, real[N_WAYS] = {5, 5, 9, 7, 8};
    struct cpl_choice choice;
    int count[N_WAYS] = {0};
    uint64_t random = 5;
    cpl_choice_begin(&choice, N_WAYS, twin, true);
    assert_int_equal(run(&choice, &reads, modelled, real, 40, 0, &random, count), 3);
    assert_int_equal(count[0] + count[1], 0);
}

static double model_way(int32_t n_ranks, int32_t n_dims, bool hashes, int64_t n_reads,
                        double distinct)
{
    struct cpl_costs costs = cpl_costs_default();
    struct cpl_step_load load = {{0, n_reads * n_ranks}, {1, distinct}, 8};
    struct cpl_grid grid;
    struct cpl_way_model way = {n_dims ? &grid : NULL, hashes};
    int32_t size[CPL_MAX_DIMENSIONS];
    if (n_dims > 0) {
        assert_int_equal(cpl_grid_even_sizes(n_ranks, n_dims, size, NULL), CPL_OK);
        assert_int_equal(cpl_grid_init(&grid, n_ranks, n_dims, size, NULL), CPL_OK);
    }
    return cpl_choice_model_us(&costs, &way, n_ranks, 32, &load);
}

static double model(int32_t n_ranks, int32_t n_dims, int64_t n_reads)
{
    return model_way(n_ranks, n_dims, false, n_reads, 1);
}

static void test_model_of_hashing(void **state)
{
    (void)state;
    for (int32_t n_ranks = 8; n_ranks <= 4096; n_ranks *= 8)
        for (int32_t n_dims = 1; n_dims <= 3; n_dims++) {
            assert_true(model_way(n_ranks, n_dims, true, 10000, 1) >
                        model_way(n_ranks, n_dims, false, 10000, 1));
            assert_true(model_way(n_ranks, n_dims, true, 10000, 0.1) <
                        model_way(n_ranks, n_dims, false, 10000, 0.1));
            /* what is left only has to be sent */
            assert_true(model_way(n_ranks, n_dims, false, 10000, 0.1) <
                        model_way(n_ranks, n_dims, false, 10000, 1));
        }
}

static void test_model(void **state)
{
    (void)state;
    /* few requests on many ranks: startups count, grids save them */
    assert_true(model(4096, 2, 1000) < model(4096, 0, 1000) / 5);
    assert_true(model(4096, 3, 100) < model(4096, 2, 100));
    /* many on few ranks: each stage moves them once more */
    assert_true(model(64, 0, 1000000) < model(64, 2, 1000000));
    assert_true(model(64, 2, 1000000) < model(64, 6, 1000000));
    assert_true(model(64, 2, 2000) < model(64, 2, 4000));
    /* one rank alone, and one request */
    assert_true(model(1, 0, 10) >= 0 && model(1, 1, 10) >= 0);
    assert_true(model(1000, 0, 1) > 0 && model(1000, 2, 1) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_the_fastest),
        cmocka_unit_test(test_looks_again),
        cmocka_unit_test(test_sizes_are_apart),
        cmocka_unit_test(test_without_measuring),
        cmocka_unit_test(test_unknown_times),
        cmocka_unit_test(test_twins),
        cmocka_unit_test(test_better_twin_first),
        cmocka_unit_test(test_model_of_hashing),
        cmocka_unit_test(test_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
