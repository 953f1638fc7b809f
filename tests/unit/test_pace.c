/* The pace of a program (shim/meet/pace.h): with a clock of the test's own. */
#include "shim/meet/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static double now;
static int n_looks;

double PMPI_Wtime(void)
{
    n_looks++;
    return now;
}

/* A program that does so many exchanges between two collectives, `seconds` each. */
static void go_on(struct cpl_pace *pace, int64_t *n, double seconds, int64_t n_exchanges,
                  bool rerouted)
{
    now += seconds * (double)n_exchanges;
    *n += n_exchanges;
    cpl_pace_note(pace, *n, rerouted);
}

static int begin(void **state)
{
    (void)state;
    now = 1;
    n_looks = 0;
    return 0;
}

static void test_medians_of_both(void **state)
{
    (void)state;
    struct cpl_pace pace = {.at = 0};
    int64_t n = 0;
    go_on(&pace, &n, 7, 1, false); /* the first one has nothing before it */
    assert_int_equal(pace.before.n, 0);
    for (int k = 0; k < 9; k++)
        go_on(&pace, &n, k == 4 ? 50 : 2, 3, false);
    for (int k = 0; k < 5; k++)
        go_on(&pace, &n, k == 2 ? 0.1 : 3, 1, true);
    assert_int_equal(pace.before.n, 9);
    assert_int_equal(pace.since.n, 5);
    assert_float_equal(cpl_pace_before(&pace), 2, 1e-5);
    assert_float_equal(cpl_pace_since(&pace), 3, 1e-5);
}

static void test_time_of_the_shims_own(void **state)
{
    (void)state;
    struct cpl_pace pace = {.at = 0};
    int64_t n = 0;
    go_on(&pace, &n, 1, 1, false);
    for (int k = 0; k < 8; k++) {
        now += 100; /* the ranks agree on something */
        cpl_pace_resume(&pace, n);
        go_on(&pace, &n, 2, 1 + k % 2, true);
    }
    assert_int_equal(pace.since.n, 8);
    assert_float_equal(cpl_pace_since(&pace), 2, 1e-5);
}

static void test_collectives_without_exchanges(void **state)
{
    (void)state;
    struct cpl_pace pace = {.at = 0};
    int64_t n = 0;
    go_on(&pace, &n, 1, 1, false);
    go_on(&pace, &n, 1, 0, false);
    go_on(&pace, &n, 1, 0, true);
    assert_int_equal(pace.before.n + pace.since.n, 0);
    go_on(&pace, &n, 1, 1, true);
    assert_int_equal(pace.since.n, 1);
}

static void test_few_times_say_nothing(void **state)
{
    (void)state;
    struct cpl_pace pace = {.at = 0};
    int64_t n = 0;
    go_on(&pace, &n, 1, 1, false);
    for (int k = 0; k < 2; k++)
        go_on(&pace, &n, 1, 1, true);
    assert_float_equal(cpl_pace_since(&pace), 0, 0);
    go_on(&pace, &n, 1, 1, true);
    assert_float_equal(cpl_pace_since(&pace), 1, 1e-5);
}

/* Short exchanges, the first ones of which take long: the clock is looked at after each eighth. */
static void test_short_exchanges(void **state)
{
    (void)state;
    struct cpl_pace pace = {.at = 0};
    int64_t n = 0;
    go_on(&pace, &n, 5e-6, 1, false);
    for (int k = 0; k < 1000; k++) {
        go_on(&pace, &n, k < 40 ? 15e-6 : 3e-6, 1, true);
        double since = cpl_pace_since(&pace);
        assert_true(since == 0 || since < 10e-6);
    }
    assert_true(n_looks < 140);
    assert_float_equal(cpl_pace_since(&pace), 3e-6, 1e-8);
    now += 1; /* one long time does not change the median, and is followed by looks at each */
    for (int k = 0; k < 20; k++)
        go_on(&pace, &n, 300e-6, 1, true);
    assert_true(pace.since.n > 135);
}

static void test_slower(void **state)
{
    (void)state;
    assert_true(cpl_pace_is_slower(1.06, 1));
    assert_false(cpl_pace_is_slower(1.04, 1));
    assert_false(cpl_pace_is_slower(0.5, 1));
    assert_false(cpl_pace_is_slower(1, 0)); /* nothing to compare with */
    assert_false(cpl_pace_is_slower(0, 1)); /* nothing known yet */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_medians_of_both, begin),
        cmocka_unit_test_setup(test_time_of_the_shims_own, begin),
        cmocka_unit_test_setup(test_collectives_without_exchanges, begin),
        cmocka_unit_test_setup(test_few_times_say_nothing, begin),
        cmocka_unit_test_setup(test_short_exchanges, begin),
        cmocka_unit_test_setup(test_slower, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
