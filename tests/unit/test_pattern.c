/* Tests of building patterns (pattern.h): the thesis's examples, merging, fingerprints. */
#include "planner/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_OF(array) ((int64_t)(sizeof(array) / sizeof *(array)))

static struct cpl_pattern build(int32_t n_ranks, const struct cpl_pattern_entry *entries,
                                int64_t n_entries)
{
    struct cpl_pattern pattern;
    struct cpl_error error = {""};
    enum cpl_status status = cpl_pattern_build(n_ranks, entries, n_entries, &pattern, &error);
    if (status)
        fail_msg("%s", error.text);
    return pattern;
}

static void assert_rows(const struct cpl_pattern *pattern, const int64_t *first, const int32_t *dst)
{
    int64_t n = first[pattern->n_ranks];
    assert_int_equal(pattern->n_messages, n);
    assert_memory_equal(pattern->first, first, sizeof *first * ((size_t)pattern->n_ranks + 1));
    assert_memory_equal(pattern->dst, dst, sizeof *dst * (size_t)n);
}

/* Thesis, Figure 2.2, from entries in an order of no kind. */
static void test_thesis_figure_2_2(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {{3, 2, 2, -1}, {1, 3, 3, -1}, {0, 1, 2, -1},
                                                {2, 0, 1, -1}, {1, 0, 5, -1}, {2, 3, 6, -1}};
    const int64_t first[] = {0, 1, 3, 5, 6};
    const int32_t dst[] = {1, 0, 3, 0, 3, 2};
    const int64_t volume[] = {2, 5, 3, 1, 6, 2};
    struct cpl_pattern pattern = build(4, entries, N_OF(entries));
    assert_rows(&pattern, first, dst);
    assert_memory_equal(pattern.volume, volume, sizeof volume);
    assert_null(pattern.payload_class);
    assert_int_equal(cpl_pattern_sends(&pattern, 1), 2);
    cpl_pattern_free(&pattern);
}

/* Thesis, Figure 4.3: all of four ranks send to all. */
static void test_thesis_figure_4_3(void **state)
{
    (void)state;
    struct cpl_pattern_entry entries[16];
    for (int32_t i = 0; i < 16; i++)
        entries[i] = (struct cpl_pattern_entry){i % 4, 3 - i / 4, 1, -1};
    const int64_t first[] = {0, 3, 6, 9, 12};
    const int32_t dst[] = {1, 2, 3, 0, 2, 3, 0, 1, 3, 0, 1, 2};
    struct cpl_pattern pattern = build(4, entries, N_OF(entries));
    assert_rows(&pattern, first, dst);
    assert_int_equal(pattern.n_self, 4);
    assert_int_equal(pattern.n_merged, 0);
    cpl_pattern_free(&pattern);
}

static void test_duplicates_are_merged(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {{2, 0, 1, -1}, {0, 2, 10, 4}, {0, 1, 5, 4},
                                                {0, 2, 20, 4}, {2, 0, 0, 0},  {2, 0, 7, 0},
                                                {0, 1, 6, 5},  {1, 2, 9, 3},  {0, 1, 7, 4}};
    const int64_t first[] = {0, 3, 4, 6};
    const int32_t dst[] = {1, 1, 2, 2, 0, 0};
    const int64_t volume[] = {12, 6, 30, 9, 1, 7};
    const int32_t class[] = {4, 5, 4, 3, -1, 0};
    struct cpl_pattern pattern = build(3, entries, N_OF(entries));
    assert_rows(&pattern, first, dst);
    assert_memory_equal(pattern.volume, volume, sizeof volume);
    assert_non_null(pattern.payload_class);
    assert_memory_equal(pattern.payload_class, class, sizeof class);
    assert_int_equal(pattern.n_merged, 3);
    assert_int_equal(cpl_pattern_most_sends(&pattern), 3);
    cpl_pattern_free(&pattern);
}

/* What is sent in parts is there undivided too; a pattern without parts has no second form. */
static void test_pairs(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {{0, 2, 4, 1}, {2, 1, 7, -1}, {0, 1, 5, -1},
                                                {0, 1, 2, 0}, {0, 2, 2, 0},  {0, 1, 4, 1}};
    const int64_t first[] = {0, 5, 5, 6}, first_pair[] = {0, 2, 2, 3};
    const int32_t dst[] = {1, 1, 1, 2, 2, 1}, dst_of_pair[] = {1, 2, 1};
    const int64_t volume_of_pair[] = {11, 6, 7};
    struct cpl_pattern pattern = build(3, entries, N_OF(entries));
    assert_rows(&pattern, first, dst);
    assert_non_null(pattern.pairs);
    assert_ptr_equal(cpl_pattern_pairs(&pattern), pattern.pairs);
    assert_rows(pattern.pairs, first_pair, dst_of_pair);
    assert_memory_equal(pattern.pairs->volume, volume_of_pair, sizeof volume_of_pair);
    assert_null(pattern.pairs->payload_class);
    cpl_pattern_free(&pattern);
    pattern = build(3, entries, 3);
    assert_null(pattern.pairs);
    assert_ptr_equal(cpl_pattern_pairs(&pattern), &pattern);
    cpl_pattern_free(&pattern);
}

/* The last message of a row and the first of the next may go to the same rank. */
static void test_rows_are_not_merged_with_each_other(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {{0, 2, 1, -1}, {1, 2, 2, -1}};
    const int64_t first[] = {0, 1, 2, 2};
    const int32_t dst[] = {2, 2};
    struct cpl_pattern pattern = build(3, entries, N_OF(entries));
    assert_rows(&pattern, first, dst);
    assert_int_equal(pattern.n_merged, 0);
    cpl_pattern_free(&pattern);
}

static void test_self_entries_are_dropped(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {
        {1, 1, INT64_MAX, 0}, {1, 0, 3, -1}, {0, 0, INT64_MAX, 1}};
    struct cpl_pattern pattern = build(2, entries, N_OF(entries));
    assert_int_equal(pattern.n_messages, 1);
    assert_int_equal(pattern.n_self, 2);
    assert_null(pattern.payload_class);
    cpl_pattern_free(&pattern);
}

static void test_empty_ranks_and_patterns(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entry = {4, 9, 0, -1};
    const int64_t first[] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1};
    struct cpl_pattern pattern = build(10, &entry, 1);
    assert_rows(&pattern, first, (const int32_t[]){9});
    cpl_pattern_free(&pattern);
    pattern = build(1, NULL, 0);
    assert_int_equal(pattern.n_messages, 0);
    assert_int_equal(pattern.first[1], 0);
    cpl_pattern_free(&pattern);
}

static void assert_refused(int32_t n_ranks, struct cpl_pattern_entry entry, const char *fragment)
{
    struct cpl_pattern pattern = {.n_ranks = 77};
    struct cpl_error error = {""};
    const struct cpl_pattern_entry entries[] = {{0, 1, INT64_MAX - 5, -1}, entry};
    assert_int_equal(cpl_pattern_build(n_ranks, entries, 2, &pattern, &error), CPL_ERR_ARG);
    if (!strstr(error.text, fragment))
        fail_msg("\"%s\" does not say \"%s\"", error.text, fragment);
    assert_int_equal(pattern.n_ranks, 77); /* outputs only on success */
    assert_int_equal(cpl_pattern_build(n_ranks, entries, 2, &pattern, NULL), CPL_ERR_ARG);
}

static void test_wrong_entries_are_refused(void **state)
{
    (void)state;
    assert_refused(4, (struct cpl_pattern_entry){4, 0, 1, -1}, "ranks are 0 to 3");
    assert_refused(4, (struct cpl_pattern_entry){-1, 0, 1, -1}, "entry 1");
    assert_refused(4, (struct cpl_pattern_entry){0, 4, 1, -1}, "to rank 4");
    assert_refused(4, (struct cpl_pattern_entry){0, -3, 1, -1}, "to rank -3");
    assert_refused(4, (struct cpl_pattern_entry){0, 1, -1, -1}, "volume -1");
    assert_refused(4, (struct cpl_pattern_entry){0, 1, 1, -2}, "class -2");
    assert_refused(4, (struct cpl_pattern_entry){0, 1, 6, -1}, "add up");
    assert_refused(4, (struct cpl_pattern_entry){2, 3, 6, -1}, "add up");
    assert_refused(0, (struct cpl_pattern_entry){0, 0, 1, -1}, "0 ranks");
    assert_refused(CPL_MAX_RANKS + 1, (struct cpl_pattern_entry){0, 1, 1, -1}, "16777216");
    struct cpl_pattern pattern;
    assert_int_equal(cpl_pattern_build(1, NULL, -1, &pattern, NULL), CPL_ERR_ARG);
}

/* Against a dense matrix. */
static void test_random_entries(void **state)
{
    (void)state;
    enum { P = 23, N = 600 };
    struct cpl_pattern_entry entries[N];
    int64_t sum[P][P] = {{0}};
    srand(7);
    for (int e = 0; e < N; e++) {
        entries[e] = (struct cpl_pattern_entry){rand() % P, rand() % P, 1 + rand() % 9, -1};
        sum[entries[e].src][entries[e].dst] += entries[e].volume;
    }
    struct cpl_pattern pattern = build(P, entries, N);
    int64_t m = 0;
    for (int32_t i = 0; i < P; i++) {
        assert_int_equal(pattern.first[i], m);
        for (int32_t j = 0; j < P; j++) {
            if (i == j || !sum[i][j])
                continue;
            assert_int_equal(pattern.dst[m], j);
            assert_int_equal(pattern.volume[m++], sum[i][j]);
        }
    }
    assert_int_equal(pattern.n_messages, m);
    assert_int_equal(pattern.n_self + pattern.n_merged + m, N);
    cpl_pattern_free(&pattern);
}

static uint64_t fingerprint(int32_t n_ranks, const struct cpl_pattern_entry *entries, int64_t n)
{
    struct cpl_pattern pattern = build(n_ranks, entries, n);
    uint64_t value = cpl_pattern_fingerprint(&pattern);
    cpl_pattern_free(&pattern);
    return value;
}

static void test_fingerprints(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {{0, 1, 2, -1}, {1, 0, 5, -1}, {1, 3, 3, -1},
                                                {2, 0, 1, -1}, {2, 3, 6, -1}, {3, 2, 2, -1}};
    enum { N = 6 };
    uint64_t value = fingerprint(4, entries, N);
    /* Pinned, computed by an independent program: kept plans rest on it. */
    assert_true(value == UINT64_C(0x3e70e9eb88b4a5d0));
    struct cpl_pattern_entry changed[N];
    for (int e = 0; e < N; e++)
        changed[N - 1 - e] = entries[e];
    assert_true(fingerprint(4, changed, N) == value);
    assert_true(fingerprint(5, entries, N) != value);
    assert_true(fingerprint(4, entries, N - 1) != value);
    for (int e = 0; e < N; e++) {
        memcpy(changed, entries, sizeof entries);
        changed[e].volume++;
        assert_true(fingerprint(4, changed, N) != value);
        changed[e].volume--;
        changed[e].payload_class = 0;
        assert_true(fingerprint(4, changed, N) != value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thesis_figure_2_2),
        cmocka_unit_test(test_thesis_figure_4_3),
        cmocka_unit_test(test_duplicates_are_merged),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_rows_are_not_merged_with_each_other),
        cmocka_unit_test(test_self_entries_are_dropped),
        cmocka_unit_test(test_empty_ranks_and_patterns),
        cmocka_unit_test(test_wrong_entries_are_refused),
        cmocka_unit_test(test_random_entries),
        cmocka_unit_test(test_fingerprints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
