/* Tests of the statistics of carpool calibrate (calibrate/robust.h): medians, slopes, rounds. */
#include "calibrate/robust.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_median(void **state)
{
    (void)state;
    assert_true(cpl_robust_median((double[]){7}, 1) == 7);
    assert_true(cpl_robust_median((double[]){9, 1}, 2) == 5);
    assert_true(cpl_robust_median((double[]){1e9, 3, 1, 2, 1e9}, 5) == 3);
    assert_true(cpl_robust_median((double[]){4, 1e9, 3, 1}, 4) == 3.5);
}

static void test_slope(void **state)
{
    (void)state;
    const double x[] = {256, 1024, 4096, 16384, 65536};
    double y[5];
    for (int k = 0; k < 5; k++)
        y[k] = 700 + 0.25 * x[k];
    assert_true(cpl_robust_slope(x, y, 5) == 0.25);
    assert_true(cpl_robust_slope(x, y, 2) == 0.25);
    y[1] += 5000; /* one point is wrong */
    assert_true(cpl_robust_slope(x, y, 5) == 0.25);
    y[1] = 1e6;
    assert_true(cpl_robust_slope(x, y, 5) == 0.25);
    for (int k = 0; k < 5; k++)
        y[k] = 700 - 0.25 * x[k];
    assert_true(cpl_robust_slope(x, y, 5) == 0); /* no cost is negative */
}

/* Weights: the two points that are far apart say more than those near each other. */
static void test_slope_weights(void **state)
{
    (void)state;
    const double x[] = {0, 1, 2, 100}, y[] = {0, 50, 100, 200};
    /* 50 (three times, weights 1, 1, 2); 2, 150/99, 100/98 (weights 100, 99, 98) */
    assert_true(cpl_robust_slope(x, y, 4) == 150.0 / 99);
}

/* All pairs meet, once; in a round nobody has two partners. */
static void test_rounds(void **state)
{
    (void)state;
    for (int n = 1; n <= 40; n++) {
        int n_met[40][40] = {{0}};
        assert_int_equal(cpl_rounds(n), n == 1 ? 0 : n % 2 ? n : n - 1);
        for (int round = 0; round < cpl_rounds(n); round++)
            for (int i = 0; i < n; i++) {
                int partner = cpl_round_partner(n, round, i);
                if (partner < 0) {
                    assert_int_equal(n % 2, 1);
                    continue;
                }
                assert_in_range(partner, 0, n - 1);
                assert_int_not_equal(partner, i);
                assert_int_equal(cpl_round_partner(n, round, partner), i);
                n_met[i][partner]++;
            }
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                assert_int_equal(n_met[i][j], i != j);
    }
    assert_int_equal(cpl_round_partner(2000000000, 1999999998, 1999999999), 1999999998);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median),
        cmocka_unit_test(test_slope),
        cmocka_unit_test(test_slope_weights),
        cmocka_unit_test(test_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
