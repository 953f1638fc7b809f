/* What may be spent (shim/base/account.h), and which of two ways is faster (shim/meet/trial.h). */
#include "shim/base/account.h"
#include "shim/meet/trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_balance(void **state)
{
    (void)state;
    struct cpl_account a = {.start = 100};
    assert_float_equal(cpl_account_balance(&a, 100, 0.01), 0.003, 1e-9); /* it will run a while */
    assert_float_equal(cpl_account_balance(&a, 110, 0.01), 0.1, 1e-9);
    assert_float_equal(cpl_account_balance(&a, 110, 0), 0, 0);
    a.spent[CPL_COST_MEETINGS] = 0.02;
    a.spent[CPL_COST_TRIALS] = 0.1;
    assert_float_equal(cpl_account_balance(&a, 110, 0.01), -0.02, 1e-9);
    a.gained = 1;
    assert_float_equal(cpl_account_balance(&a, 110, 0.01), 0.48, 1e-9);
}

/* What is charged inside an expense is not charged twice. */
static void test_expenses(void **state)
{
    (void)state;
    struct cpl_account a = {.gained = 0};
    struct cpl_expense outer = cpl_account_begin(&a, 100);
    struct cpl_expense inner = cpl_account_begin(&a, 101);
    assert_float_equal(cpl_account_end(&a, inner, CPL_COST_PLANNING, 104), 3, 1e-9);
    assert_float_equal(cpl_account_end(&a, outer, CPL_COST_MEETINGS, 105), 2, 1e-9);
    assert_float_equal(a.spent[CPL_COST_PLANNING], 3, 1e-9);
    assert_float_equal(a.spent[CPL_COST_MEETINGS], 2, 1e-9);
    assert_float_equal(cpl_account_spent(&a), 5, 1e-9);
}

/* Judges after each pair, until it is decided. */
static enum cpl_verdict judge(const double *other, int n, int *n_used)
{
    struct cpl_pairs pairs = {.n = 0};
    enum cpl_verdict verdict = CPL_UNDECIDED;
    for (*n_used = 0; *n_used < n && verdict == CPL_UNDECIDED; ++*n_used) {
        cpl_pairs_add(&pairs, 1, other[*n_used]);
        verdict = cpl_pairs_judge(&pairs);
    }
    return verdict;
}

static void test_pairs(void **state)
{
    (void)state;
    static const struct {
        double other[CPL_MOST_PAIRS];
        enum cpl_verdict verdict;
        int n;
    } cases[] = {
        {{0.7, 0.71, 0.72}, CPL_FASTER, 3},
        {{0.99, 0.985, 0.99}, CPL_NOT_FASTER, 3}, /* too little to be worth it */
        {{1.2, 1.21, 1.19}, CPL_NOT_FASTER, 3},
        {{1.6, 1.6}, CPL_NOT_FASTER, 2},
        {{0.7, 0.71, 3.0, 0.72, 0.7, 0.71, 0.7, 0.72},
         CPL_FASTER,
         8}, /* kept from its core for once */
        {{1.6, 0.98, 1.02, 0.97, 1.0, 1.01, 0.99, 1.0}, CPL_NOT_FASTER, 8},
        {{0.5, 1.2, 0.5, 1.2, 0.5, 1.2, 0.5, 1.2}, CPL_NOT_FASTER, 8}, /* scatter */
        {{0.8, 0.95, 0.82, 0.8, 0.81}, CPL_FASTER, 4},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int n;
        assert_int_equal(judge(cases[k].other, CPL_MOST_PAIRS, &n), cases[k].verdict);
        assert_int_equal(n, cases[k].n);
    }
}

/* Of ways that are the same, with times that scatter by a tenth, hardly any is taken to be faster.
 */
static void test_chance(void **state)
{
    (void)state;
    uint64_t random = 1;
    int n_faster = 0;
    for (int run = 0; run < 2000; run++) {
        double other[CPL_MOST_PAIRS];
        int n;
        for (int k = 0; k < CPL_MOST_PAIRS; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            other[k] = 0.9 + 0.2 * (double)(random >> 40) / (1 << 24);
        }
        n_faster += judge(other, CPL_MOST_PAIRS, &n) == CPL_FASTER;
    }
    assert_true(n_faster < 2000 / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_balance),
        cmocka_unit_test(test_expenses),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
