/* Tests of routes and of the packing of paths into waves (routes.h). */
#include "planner/routes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define N_OF(array) ((int64_t)(sizeof(array) / sizeof *(array)))

static struct cpl_pattern build(int32_t n_ranks, const struct cpl_pattern_entry *entries,
                                int64_t n_entries)
{
    struct cpl_pattern pattern;
    struct cpl_error error = {""};
    if (cpl_pattern_build(n_ranks, entries, n_entries, &pattern, &error))
        fail_msg("%s", error.text);
    return pattern;
}

/* Packs the paths and compares all stops with the expected ones. */
static void check_packing(const struct cpl_pattern *pattern, int32_t max_hops, const int32_t *path,
                          const int8_t *n_hops, int32_t n_waves, const int32_t *stops)
{
    struct cpl_routes routes;
    struct cpl_error error;
    assert_int_equal(cpl_routes_from_paths(pattern, max_hops, path, n_hops, &routes, &error),
                     CPL_OK);
    assert_int_equal(routes.n_waves, n_waves);
    assert_int_equal(routes.n_messages, pattern->n_messages);
    size_t n_stops = (size_t)pattern->n_messages * (size_t)n_waves;
    assert_memory_equal(routes.stops, stops, n_stops * sizeof *stops);
    cpl_routes_free(&routes);
}

static void test_init_is_direct(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {{0, 2, 1, -1}, {1, 0, 1, -1}};
    struct cpl_pattern pattern = build(3, entries, N_OF(entries));
    struct cpl_routes routes;
    struct cpl_error error;
    const int32_t expected[] = {0, 0, 2, 1, 1, 0};
    assert_int_equal(cpl_routes_init(&pattern, 3, &routes, &error), CPL_OK);
    assert_memory_equal(routes.stops, expected, sizeof expected);
    cpl_routes_free(&routes);
    assert_int_equal(cpl_routes_init(&pattern, 0, &routes, &error), CPL_ERR_ARG);
    cpl_pattern_free(&pattern);
}

static void test_no_messages(void **state)
{
    (void)state;
    struct cpl_pattern pattern = build(4, NULL, 0);
    check_packing(&pattern, 4, NULL, NULL, 1, NULL);
    cpl_pattern_free(&pattern);
}

/* Back at the source, through the destination, twice the same rank: all one hop or two. */
static void test_loops_are_cut(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {
        {0, 1, 1, -1}, {0, 2, 1, -1}, {0, 3, 1, -1}, {1, 2, 1, -1}};
    struct cpl_pattern pattern = build(4, entries, N_OF(entries));
    const int32_t path[] = {2, 0, 1, 1, /* */ 2, 3, 2, 2, /* */ 3, 3, 3, 3, /* */ 0, 3, 0, 2};
    const int8_t n_hops[] = {4, 4, 4, 4};
    const int32_t expected[] = {0, 1, /* */ 0, 2, /* */ 0, 3, /* */ 0, 2};
    check_packing(&pattern, 4, path, n_hops, 2, expected);
    cpl_pattern_free(&pattern);
}

/* One message over 1 opens 0 -> 1 in the first and 1 -> 2 in the second wave; single hops go where
 * their edge is open, else into the last wave. */
static void test_open_messages_are_joined(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {
        {0, 1, 1, -1}, {0, 2, 1, -1}, {1, 2, 1, -1}, {3, 0, 1, -1}};
    struct cpl_pattern pattern = build(4, entries, N_OF(entries));
    const int32_t path[] = {1, 0, /* */ 1, 2, /* */ 2, 0, /* */ 0, 0};
    const int8_t n_hops[] = {1, 2, 1, 1};
    const int32_t expected[] = {1, 1, /* */ 1, 2, /* */ 1, 2, /* */ 3, 0};
    check_packing(&pattern, 2, path, n_hops, 2, expected);
    cpl_pattern_free(&pattern);
}

/* 0 -> 1 -> 2 -> 3 takes all three waves. 1 -> 2 -> 3 can join both of its hops in waves 2 and 3,
 * 0 -> 1 -> 4 its first hop in wave 1 and then takes the last wave. */
static void test_two_hops_in_three_waves(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {{0, 3, 1, -1}, {0, 4, 1, -1}, {1, 3, 1, -1}};
    struct cpl_pattern pattern = build(5, entries, N_OF(entries));
    const int32_t path[] = {1, 2, 3, /* */ 1, 4, 0, /* */ 2, 3, 0};
    const int8_t n_hops[] = {3, 2, 2};
    const int32_t expected[] = {1, 2, 3, /* */ 1, 1, 4, /* */ 1, 2, 3};
    check_packing(&pattern, 3, path, n_hops, 3, expected);
    cpl_pattern_free(&pattern);
}

/* A path through 100 ranks, and messages between neighbours on it, in both halves of the waves. */
static void test_more_than_64_waves(void **state)
{
    (void)state;
    enum { LAST = 100 };
    const struct cpl_pattern_entry entries[] = {{0, LAST, 1, -1}, {20, 21, 1, -1}, {80, 81, 1, -1}};
    struct cpl_pattern pattern = build(LAST + 1, entries, N_OF(entries));
    int32_t path[3 * LAST] = {0};
    int32_t expected[3 * LAST];
    const int8_t n_hops[] = {LAST, 1, 1};
    for (int32_t w = 0; w < LAST; w++) {
        path[w] = w + 1;
        expected[w] = w + 1;
        expected[LAST + w] = w < 20 ? 20 : 21;
        expected[2 * LAST + w] = w < 80 ? 80 : 81;
    }
    path[LAST] = 21;
    path[2 * LAST] = 81;
    check_packing(&pattern, LAST, path, n_hops, LAST, expected);
    cpl_pattern_free(&pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_init_is_direct),
        cmocka_unit_test(test_no_messages),
        cmocka_unit_test(test_loops_are_cut),
        cmocka_unit_test(test_open_messages_are_joined),
        cmocka_unit_test(test_two_hops_in_three_waves),
        cmocka_unit_test(test_more_than_64_waves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
