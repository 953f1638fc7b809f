/* shim/base/samples.c, times over calls: whatever the number of calls, all of them have a point, in
 * their order. */
#include "shim/base/samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void all_calls_have_a_point(void **state)
{
    const int64_t numbers[] = {1, 31, 32, 33, 64, 65, 1000, 100000};
    (void)state;
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        struct cpl_timeline t = {.width = 0};
        int64_t n = 0, n_tried = 0, n_planned = 0;
        double seconds = 0;
        for (int64_t call = 0; call < numbers[k]; call++)
            cpl_timeline_add(&t, call, 1, call % 2, call < 10);
        for (int p = 0; p < CPL_TIMELINE_POINTS; p++) {
            n += t.point[p].n;
            n_tried += t.point[p].n_tried;
            n_planned += t.point[p].n_planned;
            seconds += t.point[p].seconds;
            assert_true(t.point[p].n <= t.width);
        }
        assert_int_equal(n, numbers[k]);
        assert_int_equal(n_tried, numbers[k] < 10 ? numbers[k] : 10);
        assert_int_equal(n_planned, numbers[k] / 2);
        assert_true(seconds > (double)n - 0.5 && seconds < (double)n + 0.5);
        assert_true(t.width * CPL_TIMELINE_POINTS >= numbers[k]);
        assert_true(numbers[k] < CPL_TIMELINE_POINTS ||
                    t.width * CPL_TIMELINE_POINTS < 2 * numbers[k] + 2 * t.width);
    }
}

/* Calls that pass without a look leave gaps; those after a long one are where they belong. */
static void gaps_stay(void **state)
{
    struct cpl_timeline t = {.width = 0};
    (void)state;
    cpl_timeline_add(&t, 0, 1, false, false);
    cpl_timeline_add(&t, 1023, 2, true, true);
    assert_int_equal(t.width, 1024 / CPL_TIMELINE_POINTS);
    assert_int_equal(t.point[0].n, 1);
    assert_int_equal(t.point[CPL_TIMELINE_POINTS - 1].n, 1);
    assert_int_equal(t.point[CPL_TIMELINE_POINTS - 1].n_planned, 1);
    for (int p = 1; p < CPL_TIMELINE_POINTS - 1; p++)
        assert_int_equal(t.point[p].n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_calls_have_a_point),
        cmocka_unit_test(gaps_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
