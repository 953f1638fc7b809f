/* Choosing by measurement (shim/meet/trial.h): with invented times of candidates. */
#include "shim/meet/trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* MPI and two plans. */
#define N_TRIED 3

static uint64_t random_state;

/* From 0 up to 1. */
static double random_share(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(random_state >> 40) / (double)(1 << 24);
}

/* Makes calls that take us[k] by candidate k, up to noise times as long at random, until a trial
 * has ended (or n calls were made). Returns how much time more than MPI's was spent, in calls of
 * MPI's. */
static double run_trial(struct cpl_trial *trial, const double *us, double noise, int64_t n)
{
    double spent = 0;
    int32_t n_trials = trial->n_trials;
    for (int64_t k = 0; k < n && trial->n_trials == n_trials; k++) {
        int32_t candidate = cpl_trial_candidate(trial);
        assert_in_range(candidate, 0, trial->n - 1);
        assert_true(!trial->running || trial->in[candidate]);
        spent += us[candidate] / us[0] - 1;
        if (cpl_trial_note(trial, us[candidate] * (1 + noise * random_share())))
            cpl_trial_judge(trial, trial->own_us);
    }
    return spent;
}

static void test_fastest_is_kept(void **state)
{
    (void)state;
    const double us[][N_TRIED] = {{10, 8, 9}, {10, 9, 8}, {8, 9, 10}, {10, 30, 9}, {10, 9, 90}};
    const int32_t best[] = {1, 2, 0, 2, 1};
    for (int32_t k = 0; k < 5; k++)
        for (int32_t rounds = 1; rounds <= CPL_TRIAL_ROUNDS; rounds += 6) {
            struct cpl_trial trial;
            cpl_trial_begin(&trial, N_TRIED, rounds);
            assert_int_equal(cpl_trial_candidate(&trial), 0);
            run_trial(&trial, us[k], 0, 1000);
            assert_false(trial.running);
            assert_int_equal(trial.chosen, best[k]);
            assert_int_equal(cpl_trial_candidate(&trial), best[k]);
        }
}

/* A call that is disturbed in every trial, be it MPI's or a plan's, does not turn the choice. */
static void test_one_disturbed_call(void **state)
{
    (void)state;
    for (int32_t disturbed = 2; disturbed < 16; disturbed++) {
        struct cpl_trial trial;
        int32_t call = 0;
        cpl_trial_begin(&trial, 2, 7);
        while (trial.running) {
            double us = (trial.turn ? 8 : 10) * (call++ == disturbed ? 20 : 1);
            if (cpl_trial_note(&trial, us))
                cpl_trial_judge(&trial, trial.own_us);
        }
        assert_int_equal(trial.chosen, 1);
    }
}

/* The margin: a plan that is hardly faster is not worth a change, one in use that is hardly slower
 * is given up. */
static void test_margin(void **state)
{
    (void)state;
    struct cpl_trial trial;
    const double hardly[] = {10, 9.9}, faster[] = {10, 9}, slower[] = {10, 10.05};
    cpl_trial_begin(&trial, 2, 7);
    run_trial(&trial, hardly, 0, 1000);
    assert_int_equal(trial.chosen, 0);
    run_trial(&trial, faster, 0, 10000);
    assert_int_equal(trial.chosen, 1);
    run_trial(&trial, hardly, 0, 100000);
    assert_int_equal(trial.chosen, 1);
    run_trial(&trial, slower, 0, 100000);
    assert_int_equal(trial.chosen, 0);
}

/* What a later trial has not measured is not told of: it is of other times. */
static void test_last_trial_is_told(void **state)
{
    (void)state;
    const double first[] = {10, 8, 9}, later[] = {6, 7, 1};
    struct cpl_trial trial;
    cpl_trial_begin(&trial, N_TRIED, 7);
    run_trial(&trial, first, 0, 1000);
    assert_true(cpl_trial_us(&trial, 1) == 8 && cpl_trial_us(&trial, 2) == 9);
    run_trial(&trial, later, 0, 100000);
    assert_int_equal(trial.chosen, 0);
    assert_true(cpl_trial_us(&trial, 0) == 6 && cpl_trial_us(&trial, 1) == 7);
    assert_true(cpl_trial_us(&trial, 2) == 0);
}

/* Turns of two candidates, of n calls each in so many microseconds: what counts of them is 10 and
 * `counted`, and candidate 1 wins. Ranks meet before the first call of a turn. */
static void take_turns(struct cpl_trial *trial, int32_t n, const double us[2][4], double counted)
{
    for (int32_t call = 0; trial->running; call++) {
        int32_t turn = call / n % 2;
        assert_int_equal(cpl_trial_begins_turn(trial), call % n == 0);
        assert_int_equal(cpl_trial_candidate(trial), turn);
        bool is_over = cpl_trial_note(trial, us[turn][call % n]);
        assert_int_equal(is_over, call % (2 * n) == 2 * n - 1);
        if (is_over) {
            assert_true(trial->own_us[0] == 10 && trial->own_us[1] == counted);
            cpl_trial_judge(trial, trial->own_us);
        }
    }
    assert_int_equal(trial->chosen, 1);
    assert_true(cpl_trial_us(trial, 1) == counted);
    assert_false(cpl_trial_begins_turn(trial));
}

/* Where several calls make a turn, their mean counts. */
static void test_turns(void **state)
{
    (void)state;
    const double us[2][4] = {{10, 10, 10, 10}, {30, 1, 1, 1}};
    struct cpl_trial trial;
    cpl_trial_begin(&trial, 2, 7);
    trial.calls_a_turn = 4;
    take_turns(&trial, 4, us, 8.25);
    assert_int_equal(trial.tried, 2 * 4 * 4); /* 10 is more than BEATEN times 8.25 */
}

/* Calls that lead in to a turn do not count, however long they take. */
static void test_leading_in(void **state)
{
    (void)state;
    const double us[2][4] = {{10, 10}, {30, 8}};
    struct cpl_trial trial;
    cpl_trial_begin(&trial, 2, 7);
    trial.lead_in = 1;
    take_turns(&trial, 2, us, 8);
}

/* Two plans that take `slow` times as long as MPI are given up after n_rounds. */
static void cost_is_bounded(double mpi_us, double slow, int n_rounds)
{
    const double us[] = {mpi_us, mpi_us * slow, mpi_us * slow};
    struct cpl_trial trial;
    int64_t last = 0;
    cpl_trial_begin(&trial, N_TRIED, 7);
    assert_true(run_trial(&trial, us, 0, 1000) <= 2 * n_rounds * (slow - 1) + 1e-9);
    assert_int_equal(trial.chosen, 0);
    for (int32_t k = 0; k < 6; k++) {
        int64_t tried = trial.tried, interval = trial.interval;
        run_trial(&trial, us, 0, INT64_C(1) << 20);
        assert_true(trial.interval > last);
        assert_true(trial.tried - tried <= 2 * (1 + 4));
        assert_true((trial.tried - tried) * 100 <= interval);
        last = trial.interval;
    }
}

/* A slow plan costs little however slow it is, and later trials come ever more seldom: four rounds,
 * or two of what takes more than twice as long, and a millisecond more. */
static void test_cost_is_bounded(void **state)
{
    (void)state;
    for (double slow = 1; slow <= 16; slow *= 2) {
        cost_is_bounded(10, slow, 4);
        cost_is_bounded(1e4, slow, slow > 2 ? 2 : 4);
    }
}

/* The first calls in cold memory say little: only one that takes a millisecond longer is hopeless.
 */
static void test_cold(void **state)
{
    (void)state;
    struct cpl_trial trial;
    const double cold[] = {14, 500}, warm[] = {6, 2}, dear[] = {14, 1100};
    cpl_trial_begin(&trial, 2, 7);
    run_trial(&trial, cold, 0, 4);
    assert_true(trial.running);
    run_trial(&trial, warm, 0, 1000);
    assert_int_equal(trial.chosen, 1);
    cpl_trial_begin(&trial, 2, 7);
    run_trial(&trial, dear, 0, 2);
    assert_false(trial.running);
    assert_int_equal(trial.chosen, 0);
}

/* Calls that are noted together count as if one by one. */
static void test_passed_calls(void **state)
{
    (void)state;
    const double us[] = {8, 10};
    struct cpl_trial one, many;
    cpl_trial_begin(&one, 2, 7);
    assert_int_equal(cpl_trial_passing(&one), 0);
    run_trial(&one, us, 0, 1000);
    many = one;
    for (int32_t k = 0; k < 8; k++) {
        int64_t n = cpl_trial_passing(&many), part = n / 3;
        cpl_trial_pass(&many, part);
        assert_int_equal(cpl_trial_passing(&many), n - part);
        cpl_trial_pass(&many, n - part);
        assert_int_equal(cpl_trial_passing(&many), 0);
        assert_false(cpl_trial_note(&many, us[0]));
        assert_true(many.running);
        for (int64_t i = 0; i < n; i++)
            cpl_trial_note(&one, us[0]);
        assert_false(one.running);
        cpl_trial_note(&one, us[0]);
        assert_true(one.running);
        run_trial(&one, us, 0, 1000);
        run_trial(&many, us, 0, 1000);
    }
    cpl_trial_begin(&one, 2, 0);
    assert_true(cpl_trial_passing(&one) > INT64_C(1) << 40);
    cpl_trial_pass(&one, 1000);
    assert_int_equal(cpl_trial_candidate(&one), 1);
}

/* Without rounds the first plan is used and never tried. */
static void test_untried(void **state)
{
    (void)state;
    struct cpl_trial trial;
    cpl_trial_begin(&trial, 2, 0);
    for (int32_t k = 0; k < 100000; k++) {
        assert_int_equal(cpl_trial_candidate(&trial), 1);
        assert_false(cpl_trial_note(&trial, 1));
    }
}

/* Under noise of half a call's time a plan that takes twice as long is never kept, and one that
 * takes half always. */
static void test_noise(void **state)
{
    (void)state;
    const double slow[] = {10, 20, 25}, fast[] = {10, 5, 12};
    for (int32_t k = 0; k < 2000; k++) {
        struct cpl_trial trial;
        random_state = (uint64_t)k;
        cpl_trial_begin(&trial, N_TRIED, 7);
        run_trial(&trial, slow, 0.5, 1000);
        assert_int_equal(trial.chosen, 0);
        cpl_trial_begin(&trial, N_TRIED, 7);
        run_trial(&trial, fast, 0.5, 1000);
        assert_int_equal(trial.chosen, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fastest_is_kept),
        cmocka_unit_test(test_one_disturbed_call),
        cmocka_unit_test(test_margin),
        cmocka_unit_test(test_cost_is_bounded),
        cmocka_unit_test(test_cold),
        cmocka_unit_test(test_passed_calls),
        cmocka_unit_test(test_untried),
        cmocka_unit_test(test_last_trial_is_told),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_leading_in),
        cmocka_unit_test(test_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
