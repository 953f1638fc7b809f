/* The pace of a program (shim/meet/pace.h): with a clock of the test's own. */
#include "shim/meet/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A program that does so many exchanges between two collectives, `seconds` apart. */
static void go_on(struct cpl_pace *pace, double *now, double seconds, int64_t n_exchanges,
                  bool rerouted)
{
    *now += seconds;
    cpl_pace_note(pace, pace->n + n_exchanges, rerouted, *now);
    *now += 100; /* in the collective itself: not the program's time */
    pace->at = *now;
}

static void test_left_at_once(void **state)
{
    (void)state;
    struct cpl_pace pace = {.at = 0};
    for (int k = 0; k < 10; k++)
        cpl_pace_note(&pace, k, false, 5 + 2 * k);
    assert_int_equal(pace.before.n, 9);
    assert_float_equal(cpl_samples_median(&pace.before), 2, 1e-5);
}

static void test_medians_of_both(void **state)
{
    (void)state;
    struct cpl_pace pace = {.at = 0};
    double now = 1;
    go_on(&pace, &now, 7, 1, false); /* the first one has nothing before it */
    assert_int_equal(pace.before.n, 0);
    for (int k = 0; k < 9; k++)
        go_on(&pace, &now, k == 4 ? 50 : 2, 3, false);
    for (int k = 0; k < 5; k++)
        go_on(&pace, &now, k == 2 ? 0.1 : 3, 1, true);
    assert_int_equal(pace.before.n, 9);
    assert_int_equal(pace.since.n, 5);
    assert_float_equal(cpl_samples_median(&pace.before), 2, 1e-5);
    assert_float_equal(cpl_samples_median(&pace.since), 3, 1e-5);
}

static void test_collectives_without_exchanges(void **state)
{
    (void)state;
    struct cpl_pace pace = {.at = 0};
    double now = 1;
    go_on(&pace, &now, 1, 1, false);
    go_on(&pace, &now, 1, 0, false);
    go_on(&pace, &now, 1, 0, true);
    assert_int_equal(pace.before.n + pace.since.n, 0);
    go_on(&pace, &now, 1, 1, true);
    assert_int_equal(pace.since.n, 1);
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
        cmocka_unit_test(test_left_at_once),
        cmocka_unit_test(test_medians_of_both),
        cmocka_unit_test(test_collectives_without_exchanges),
        cmocka_unit_test(test_slower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
