/* Tests of folding (array/fold.h): all algorithms against a naive one. */
#include "array/fold.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_REQUESTS 12000
#define MOST_SEGMENTS 9

struct requests {
    int n_segments;
    int64_t index[MOST_REQUESTS], first[MOST_SEGMENTS + 1];
};

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Indices below a limit, so that many are the same. */
static void draw(uint64_t *random, bool is_sorted, struct requests *r)
{
    int64_t limit = INT64_C(1) << random_below(random, 31),
            scale = random_below(random, 2) ? INT64_C(1) << 31 : 1;
    r->n_segments = is_sorted ? random_below(random, MOST_SEGMENTS + 1) : 1;
    r->first[0] = 0;
    for (int s = 0; s < r->n_segments; s++) {
        int64_t n = random_below(random, 4) ? random_below(random, MOST_REQUESTS / 9) : 0;
        r->first[s + 1] = r->first[s] + n;
        for (int64_t k = r->first[s]; k < r->first[s + 1]; k++)
            r->index[k] = random_below(random, (int32_t)limit) * scale;
        if (is_sorted)
            qsort(r->index + r->first[s], (size_t)n, sizeof *r->index, compare);
    }
}

/* Every request's slot has its index; each index is there once. */
static void check_folded(const struct requests *r, const struct cpl_fold *fold, bool is_ascending)
{
    static int64_t sorted[MOST_REQUESTS];
    int64_t n = r->first[r->n_segments];
    int32_t n_distinct = 0;
    for (int64_t k = 0; k < n; k++) {
        sorted[k] = r->index[k];
        assert_true(fold->slot[k] >= 0 && fold->slot[k] < fold->n);
        assert_true(fold->index[fold->slot[k]] == r->index[k]);
    }
    qsort(sorted, (size_t)n, sizeof *sorted, compare);
    for (int64_t k = 0; k < n; k++)
        n_distinct += k == 0 || sorted[k] != sorted[k - 1];
    assert_int_equal(fold->n, n_distinct);
    for (int32_t k = 1; k < fold->n && is_ascending; k++)
        assert_true(fold->index[k] > fold->index[k - 1]);
}

static void test_all_variants(void **state)
{
    (void)state;
    static struct requests r;
    uint64_t random = 1;
    for (int round = 0; round < 300; round++)
        for (int v = 0; v < CPL_N_VARIANTS; v++) {
            enum cpl_variant variant = (enum cpl_variant)v;
            bool is_sorted = round % 3 > 0,
                 is_hash = variant == CPL_VARIANT_HASH || variant == CPL_VARIANT_ENVELOPE_HASH;
            draw(&random, is_sorted, &r);
            struct cpl_fold_input input = {r.index, r.first, r.n_segments, is_sorted, false};
            struct cpl_fold fold = {0};
            assert_true(cpl_fold_make(variant, &input, &fold));
            check_folded(&r, &fold, !is_hash);
            cpl_fold_free(&fold);
        }
}

/* Nothing is folded: equal indices have slots in the order of the requests. */
static void test_keeps_all(void **state)
{
    (void)state;
    static struct requests r;
    uint64_t random = 2;
    for (int round = 0; round < 100; round++)
        for (int v = 0; v < CPL_N_VARIANTS; v++) {
            draw(&random, round % 3 > 0, &r);
            struct cpl_fold_input input = {r.index, r.first, r.n_segments, round % 3 > 0, true};
            struct cpl_fold fold = {0};
            int64_t n = r.first[r.n_segments];
            assert_true(cpl_fold_make((enum cpl_variant)v, &input, &fold));
            assert_int_equal(fold.n, n);
            for (int64_t k = 0; k < n; k++) {
                assert_true(fold.index[fold.slot[k]] == r.index[k]);
                for (int64_t j = k - 20 < 0 ? 0 : k - 20; j < k; j++)
                    assert_true(fold.slot[j] != fold.slot[k] &&
                                (r.index[j] != r.index[k] || fold.slot[j] < fold.slot[k]));
            }
            cpl_fold_free(&fold);
        }
}

/* Each request gets its element's value, wherever elements were put and whatever their size. */
static void test_spread(void **state)
{
    (void)state;
    static struct requests r;
    static int32_t place[MOST_REQUESTS];
    static char result[MOST_REQUESTS * 12], answer[MOST_REQUESTS * 12];
    uint64_t random = 3;
    for (int round = 0; round < 40; round++)
        for (size_t size = 8; size <= 12; size += 4) {
            draw(&random, round % 2 > 0, &r);
            struct cpl_fold_input input = {r.index, r.first, r.n_segments, round % 2 > 0, false};
            struct cpl_fold fold = {0};
            int64_t n = r.first[r.n_segments];
            bool moves = random_below(&random, 2);
            assert_true(cpl_fold_make(CPL_VARIANT_SORT, &input, &fold));
            for (int32_t e = 0; e < fold.n; e++) {
                place[e] = moves ? fold.n - 1 - e : e;
                memset(result + (size_t)place[e] * size, 7, size);
                memcpy(result + (size_t)place[e] * size, &fold.index[e], 8);
            }
            cpl_fold_spread(&fold, n, moves ? place : NULL, result, size, answer);
            for (int64_t k = 0; k < n; k++) {
                assert_memory_equal(answer + (size_t)k * size, &r.index[k], 8);
                assert_true(size == 8 || answer[(size_t)k * size + size - 1] == 7);
            }
            cpl_fold_free(&fold);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_variants),
                                       cmocka_unit_test(test_keeps_all),
                                       cmocka_unit_test(test_spread)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
