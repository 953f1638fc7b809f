/* Tests of choosing ways (array/choice.h). */
#include "array/choice.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define N_WAYS 5

static const struct cpl_step_load reads = {0, 1000, 8}, writes = {1000, 0, 8};

/* n steps of a load whose ways take these times, up to so many percent more; counts the steps by
 * each way. Returns the way of the last step. */
static int run(struct cpl_choice *choice, const struct cpl_step_load *load, const double *modelled,
               const double *real, int n, int percent, uint64_t *random, int *count)
{
    for (int s = 0; s < n; s++) {
        int way = cpl_choice_next(choice, load, modelled);
        assert_in_range(way, 0, N_WAYS - 1);
        count[way]++;
        cpl_choice_note(choice, real[way] * (1 + random_below(random, percent + 1) / 100.0));
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
        cpl_choice_begin(&choice, N_WAYS, true);
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
    cpl_choice_begin(&choice, N_WAYS, true);
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
    cpl_choice_begin(&choice, N_WAYS, true);
    for (int k = 0; k < 30; k++) {
        run(&choice, &reads, modelled, few, 1, 5, &random, count);
        run(&choice, &writes, modelled, many, 1, 5, &random, count);
    }
    assert_int_equal(cpl_choice_next(&choice, &reads, modelled), 0);
    assert_int_equal(cpl_choice_next(&choice, &writes, modelled), 4);
    /* more sizes than are remembered: the oldest is forgotten, the newest known */
    struct cpl_step_load load = {1, 1, 8};
    for (int k = 0; k < 3 * CPL_CHOICE_SIZES; k++, load.n_reads *= 2)
        run(&choice, &load, modelled, few, 20, 5, &random, count);
    load.n_reads /= 2;
    assert_int_equal(cpl_choice_next(&choice, &load, modelled), 0);
}

static void test_without_measuring(void **state)
{
    (void)state;
    static const double modelled[N_WAYS] = {3, 2, 2, 9, 4}, real[N_WAYS] = {1, 500, 1, 1, 1};
    struct cpl_choice choice;
    int count[N_WAYS] = {0};
    uint64_t random = 4;
    cpl_choice_begin(&choice, N_WAYS, false);
    run(&choice, &reads, modelled, real, 300, 5, &random, count);
    assert_int_equal(count[1], 300);
}

/* A step whose time is not known is no step of the trial. */
static void test_unknown_times(void **state)
{
    (void)state;
    static const double modelled[N_WAYS] = {1, 2, 3, 4, 5};
    struct cpl_choice choice;
    cpl_choice_begin(&choice, N_WAYS, true);
    for (int k = 0; k < 10; k++) {
        assert_int_equal(cpl_choice_next(&choice, &reads, modelled), 0);
        cpl_choice_note(&choice, 0);
    }
    cpl_choice_note(&choice, 5);
    assert_int_equal(cpl_choice_next(&choice, &reads, modelled), 0);
    cpl_choice_note(&choice, 5);
    assert_int_equal(cpl_choice_next(&choice, &reads, modelled), 1);
}

static double model(int32_t n_ranks, int32_t n_dims, int64_t n_reads)
{
    struct cpl_costs costs = cpl_costs_default();
    struct cpl_step_load load = {0, n_reads * n_ranks, 8};
    struct cpl_grid grid;
    int32_t size[CPL_MAX_DIMENSIONS];
    if (n_dims == 0)
        return cpl_choice_model_us(&costs, NULL, n_ranks, 32, &load);
    assert_int_equal(cpl_grid_even_sizes(n_ranks, n_dims, size, NULL), CPL_OK);
    assert_int_equal(cpl_grid_init(&grid, n_ranks, n_dims, size, NULL), CPL_OK);
    return cpl_choice_model_us(&costs, &grid, n_ranks, 32, &load);
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
        cmocka_unit_test(test_finds_the_fastest), cmocka_unit_test(test_looks_again),
        cmocka_unit_test(test_sizes_are_apart),   cmocka_unit_test(test_without_measuring),
        cmocka_unit_test(test_unknown_times),     cmocka_unit_test(test_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
