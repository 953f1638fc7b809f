/* Tests of building plans from routes, by examples worked by hand, and of their text (plan.h). */
#include "planner/plan.h"
#include "planner/routes.h"
#include "plans.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Builds the plan of the entries along the stops, which are those of the pattern's messages in its
 * order, and compares its waves and edges. */
static void check_example(int32_t n_ranks, const struct cpl_pattern_entry *entries,
                          int64_t n_entries, int32_t max_waves, const int32_t *stops,
                          int32_t n_waves, const char *edges)
{
    struct cpl_pattern pattern = make_pattern(n_ranks, entries, n_entries);
    struct cpl_plan plan = make_plan(&pattern, max_waves, stops);
    assert_int_equal(plan.n_ranks, n_ranks);
    assert_int_equal(plan.n_dests, pattern.n_messages);
    assert_edges(&plan, edges);
    assert_int_equal(plan.n_waves, n_waves);
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
}

static void test_no_messages(void **state)
{
    (void)state;
    struct cpl_pattern pattern = make_pattern(3, NULL, 0);
    struct cpl_plan plan = make_plan(&pattern, 2, (const int32_t[]){0});
    assert_edges(&plan, "");
    assert_int_equal(plan.n_waves, 0);
    assert_int_equal(plan.n_bundles, 0);
    cpl_plan_free(&plan);
    assert_null(plan.bundles);
    cpl_pattern_free(&pattern);
}

static void test_direct(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(2, 0, 7), MESSAGE(0, 2, 5),
                                                MESSAGE(0, 1, 3)};
    struct cpl_pattern pattern = make_pattern(3, entries, N_OF(entries));
    struct cpl_plan plan = make_plan(&pattern, 1, (const int32_t[]){1, 2, 0});
    assert_edges(&plan, "1 0 -> 1: 0>1\n1 0 -> 2: 0>2\n1 2 -> 0: 2>0\n");
    assert_int_equal(plan.n_bundles, 3);
    assert_int_equal(plan.bundles[1].owner, 0);
    assert_int_equal(plan.bundles[1].message, 1);
    assert_int_equal(plan.bundles[1].volume, 5);
    assert_int_equal(plan.edges[2].volume, 7);
    assert_int_equal(plan.edges[2].first_segment, 2);
    assert_true(plan.pattern_fingerprint == cpl_pattern_fingerprint(&pattern));
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
}

/* Rank 0 sends first to 3, which has to send on twice, then to 2, which does once, then to 1 and 4,
 * which are done: in the order of sending, not of ranks. */
static void test_order_of_sending(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {
        MESSAGE(0, 1, 1), MESSAGE(0, 2, 1), MESSAGE(0, 3, 1), MESSAGE(0, 4, 1),
        MESSAGE(0, 5, 1), MESSAGE(0, 6, 1), MESSAGE(0, 7, 1)};
    const int32_t stops[] = {1, 1, /* */ 2, 2,       /* */ 3, 3,       /* */ 4,
                             4, 2, 5,       /* */ 3, 6,       /* */ 3, 7};
    check_example(8, entries, N_OF(entries), 2, stops, 2,
                  "1 0 -> 3: 0>3 0>6 0>7\n1 0 -> 2: 0>2 0>5\n1 0 -> 1: 0>1\n1 0 -> 4: 0>4\n"
                  "2 2 -> 5: 0>5\n2 3 -> 6: 0>6\n2 3 -> 7: 0>7\n");
}

/* m01 rides with m02 and then with m21: two combined messages instead of three. */
static void test_shared_route(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 3), MESSAGE(0, 2, 5),
                                                MESSAGE(2, 1, 7)};
    const int32_t stops[] = {2, 1, /* */ 2, 2, /* */ 2, 1};
    struct cpl_pattern pattern = make_pattern(3, entries, N_OF(entries));
    struct cpl_plan plan = make_plan(&pattern, 2, stops);
    assert_edges(&plan, "1 0 -> 2: 0>1 0>2\n2 2 -> 1: 0>1 2>1\n");
    assert_int_equal(plan.edges[0].volume, 8);
    assert_int_equal(plan.edges[1].volume, 10);
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
}

static void test_loops_are_cut(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 1)};
    check_example(4, entries, 1, 4, (const int32_t[]){2, 3, 2, 1}, 2,
                  "1 0 -> 2: 0>1\n2 2 -> 1: 0>1\n");
    check_example(4, entries, 1, 4, (const int32_t[]){2, 3, 0, 1}, 1, "1 0 -> 1: 0>1\n");
    check_example(4, entries, 1, 5, (const int32_t[]){2, 0, 3, 0, 1}, 1, "1 0 -> 1: 0>1\n");
    check_example(4, entries, 1, 4, (const int32_t[]){2, 2, 3, 1}, 3,
                  "1 0 -> 2: 0>1\n2 2 -> 3: 0>1\n3 3 -> 1: 0>1\n");
}

/* What is at its destination stays there, whatever the route goes on to say. */
static void test_early_arrival(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 1)};
    check_example(3, entries, 1, 3, (const int32_t[]){1, 2, 1}, 1, "1 0 -> 1: 0>1\n");
    check_example(3, entries, 1, 4, (const int32_t[]){2, 1, 0, 1}, 2,
                  "1 0 -> 2: 0>1\n2 2 -> 1: 0>1\n");
}

static void test_empty_waves_are_dropped(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 1), MESSAGE(2, 1, 1)};
    const int32_t resting[] = {0, 0, 1, /* */ 2, 2, 1};
    const int32_t gaps[] = {0, 2, 2, 2, 2, 1, /* */ 2, 2, 2, 1, 1, 1};
    check_example(3, entries, 2, 3, resting, 1, "1 0 -> 1: 0>1\n1 2 -> 1: 2>1\n");
    check_example(3, entries, 2, 6, gaps, 3, "1 0 -> 2: 0>1\n2 2 -> 1: 2>1\n3 2 -> 1: 0>1\n");
}

/* One payload for three ranks: 0 sends one copy, 1 makes two more. */
static void test_tree_of_copies(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {CLASSED(0, 1, 9, 4), CLASSED(0, 2, 9, 4),
                                                CLASSED(0, 3, 9, 4)};
    const int32_t stops[] = {1, 1, /* */ 1, 2, /* */ 1, 3};
    struct cpl_pattern pattern = make_pattern(4, entries, N_OF(entries));
    struct cpl_plan plan = make_plan(&pattern, 2, stops);
    assert_edges(&plan, "1 0 -> 1: 0>1,2,3\n2 1 -> 2: 0>1,2,3\n2 1 -> 3: 0>1,2,3\n");
    assert_int_equal(plan.n_bundles, 1);
    assert_int_equal(plan.bundles[0].message, 0);
    assert_int_equal(plan.edges[0].volume, 9);
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
}

/* Two classes and a payload of its own share combined messages, not bundles. Another rank's class
 * of the same number is another payload. */
static void test_mixed_classes(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {CLASSED(0, 1, 1, 7),  CLASSED(0, 2, 1, 3),
                                                CLASSED(0, 3, 1, 7),  CLASSED(0, 4, 1, 3),
                                                CLASSED(0, 5, 1, -1), CLASSED(1, 3, 1, 7)};
    const int32_t stops[] = {1, 1, /* */ 1, 2, /* */ 1, 3, /* */ 1, 4, /* */ 1, 5, /* */ 1, 3};
    check_example(6, entries, N_OF(entries), 2, stops, 2,
                  "1 0 -> 1: 0>1,3 0>2,4 0>5\n2 1 -> 2: 0>2,4\n2 1 -> 3: 0>1,3 1>3\n"
                  "2 1 -> 4: 0>2,4\n2 1 -> 5: 0>5\n");
}

/* A class of one message is an ordinary message, and so are those without any class. */
static void test_classes_of_one(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {CLASSED(0, 1, 1, 0), CLASSED(0, 2, 1, 1),
                                                CLASSED(0, 3, 1, -1), CLASSED(0, 4, 1, -1)};
    check_example(5, entries, N_OF(entries), 1, (const int32_t[]){1, 2, 3, 4}, 1,
                  "1 0 -> 1: 0>1\n1 0 -> 2: 0>2\n1 0 -> 3: 0>3\n1 0 -> 4: 0>4\n");
}

/* The route to 1 is direct in wave 2; the one to 2 passes 1 in wave 1: from there it is taken. */
static void test_earlier_arrival_is_taken(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {CLASSED(0, 1, 1, 0), CLASSED(0, 2, 1, 0)};
    check_example(3, entries, 2, 2, (const int32_t[]){0, 1, /* */ 1, 2}, 2,
                  "1 0 -> 1: 0>1,2\n2 1 -> 2: 0>1,2\n");
}

/* 1 is reached over 3 first, then earlier from 0 itself: it changes its parent, and 3, which has
 * nobody left to serve, gets nothing. */
static void test_new_parent(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {CLASSED(0, 1, 1, 0), CLASSED(0, 2, 1, 0)};
    check_example(4, entries, 2, 3, (const int32_t[]){3, 1, 1, /* */ 1, 1, 2}, 2,
                  "1 0 -> 1: 0>1,2\n2 1 -> 2: 0>1,2\n");
}

/* The same with two ranks in a row that have become useless, beside one that still serves. */
static void test_dead_freight_is_pruned(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {CLASSED(0, 1, 1, 0), CLASSED(0, 2, 1, 0),
                                                CLASSED(0, 5, 1, 0)};
    const int32_t stops[] = {3, 4, 1, /* */ 1, 1, 2, /* */ 3, 5, 5};
    check_example(6, entries, 3, 3, stops, 3,
                  "1 0 -> 1: 0>1,2,5\n1 0 -> 3: 0>1,2,5\n2 3 -> 5: 0>1,2,5\n3 1 -> 2: 0>1,2,5\n");
    const int32_t useless[] = {3, 4, 1, /* */ 1, 1, 2, /* */ 1, 1, 5};
    check_example(6, entries, 3, 3, useless, 2,
                  "1 0 -> 1: 0>1,2,5\n2 1 -> 2: 0>1,2,5\n2 1 -> 5: 0>1,2,5\n");
}

/* A route that joins the tree where it was reached earlier than by the route itself. */
static void test_later_route_joins(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {CLASSED(0, 1, 1, 0), CLASSED(0, 2, 1, 0)};
    check_example(4, entries, 2, 3, (const int32_t[]){1, 1, 1, /* */ 3, 1, 2}, 2,
                  "1 0 -> 1: 0>1,2\n2 1 -> 2: 0>1,2\n");
}

static void test_unfitting_routes(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 1), MESSAGE(1, 2, 1)};
    struct cpl_pattern pattern = make_pattern(3, entries, 2);
    struct cpl_pattern other = make_pattern(3, entries, 1);
    struct cpl_routes routes;
    struct cpl_plan plan;
    struct cpl_error error = {""};
    assert_int_equal(cpl_routes_init(&pattern, 2, &routes, &error), CPL_OK);
    assert_int_equal(cpl_plan_build(&other, &routes, &plan, &error), CPL_ERR_ARG);
    assert_non_null(strstr(error.text, "routes of 2 messages do not fit a pattern of 1"));
    for (int32_t wrong = -1; wrong <= 3; wrong += 4) {
        routes.stops[0] = wrong;
        assert_int_equal(cpl_plan_build(&pattern, &routes, &plan, &error), CPL_ERR_ARG);
        assert_non_null(strstr(error.text, "which is no rank"));
    }
    routes.stops[0] = 0;
    routes.stops[3] = 0;
    assert_int_equal(cpl_plan_build(&pattern, &routes, &plan, &error), CPL_ERR_ARG);
    assert_string_equal(error.text, "message 1 ends at rank 0 instead of 2");
    cpl_routes_free(&routes);
    cpl_pattern_free(&other);
    cpl_pattern_free(&pattern);
}

static void test_dump(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {CLASSED(0, 1, 3, 0), CLASSED(0, 2, 3, 0),
                                                MESSAGE(2, 1, 7)};
    struct cpl_pattern pattern = make_pattern(3, entries, N_OF(entries));
    struct cpl_plan plan = make_plan(&pattern, 2, (const int32_t[]){2, 1, /* */ 2, 2, /* */ 2, 1});
    char expected[512];
    snprintf(expected, sizeof expected,
             "# carpool plan 1\nranks 3 waves 2 bundles 2 edges 2 segments 3\n"
             "pattern %016llx plan %016llx\n1 0 -> 2: 0>1,2\n2 2 -> 1: 0>1,2 2>1\n",
             (unsigned long long)plan.pattern_fingerprint, (unsigned long long)plan.fingerprint);
    char *text = dump_text(&plan);
    assert_string_equal(text, expected);
    free(text);
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
}

static void test_dump_cannot_be_written(void **state)
{
    (void)state;
    struct cpl_pattern pattern = make_pattern(2, NULL, 0);
    struct cpl_plan plan = make_plan(&pattern, 1, (const int32_t[]){0});
    struct cpl_error error = {""};
    FILE *unwritable = fopen("/dev/null", "r");
    assert_non_null(unwritable);
    assert_int_equal(cpl_plan_dump(&plan, unwritable, &error), CPL_ERR_IO);
    assert_non_null(strstr(error.text, "cannot write the plan: "));
    fclose(unwritable);
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
}

/* Whatever the routes, the plan keeps every invariant (make_random_plan checks it), and building it
 * again gives the same one. */
static void test_random_routes(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct cpl_pattern pattern = random_pattern(seed, 60);
        int32_t n_waves = 1 + (int32_t)(seed % 7);
        struct cpl_plan plan = make_random_plan(&pattern, n_waves, seed);
        struct cpl_plan again = make_random_plan(&pattern, n_waves, seed);
        assert_true(plan.fingerprint == again.fingerprint);
        assert_true(plan.n_waves <= n_waves);
        cpl_plan_free(&again);
        cpl_plan_free(&plan);
        cpl_pattern_free(&pattern);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_messages),
        cmocka_unit_test(test_direct),
        cmocka_unit_test(test_order_of_sending),
        cmocka_unit_test(test_shared_route),
        cmocka_unit_test(test_loops_are_cut),
        cmocka_unit_test(test_early_arrival),
        cmocka_unit_test(test_empty_waves_are_dropped),
        cmocka_unit_test(test_tree_of_copies),
        cmocka_unit_test(test_mixed_classes),
        cmocka_unit_test(test_classes_of_one),
        cmocka_unit_test(test_earlier_arrival_is_taken),
        cmocka_unit_test(test_new_parent),
        cmocka_unit_test(test_dead_freight_is_pruned),
        cmocka_unit_test(test_later_route_joins),
        cmocka_unit_test(test_unfitting_routes),
        cmocka_unit_test(test_dump),
        cmocka_unit_test(test_dump_cannot_be_written),
        cmocka_unit_test(test_random_routes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
