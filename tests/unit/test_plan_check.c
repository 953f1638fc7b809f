/* Tests of the checker of plans (plan.h, cpl_plan_check): each invariant broken once, then many
 * random changes, each of which must be found or be proved to have made another valid plan. */
#include "planner/plan/plan_internal.h"
#include "planner/routes.h"
#include "plans.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A pattern with a class, and its plan:
 *
 *   edge 0: 1 0 -> 1: 0>1,2,3       bundles 0: 0>1,2,3 (class)   dests 1 2 3
 *   edge 1: 1 4 -> 1: 4>0 4>1               1: 1>2                     2
 *   edge 2: 2 1 -> 2: 0>1,2,3 1>2           2: 4>0                     0
 *   edge 3: 2 1 -> 0: 4>0                   3: 4>1                     1
 *   edge 4: 3 2 -> 3: 0>1,2,3 */
static void make_base(struct cpl_pattern *pattern, struct cpl_plan *plan)
{
    static const struct cpl_pattern_entry entries[] = {CLASSED(0, 1, 4, 0), CLASSED(0, 2, 4, 0),
                                                       CLASSED(0, 3, 4, 0), MESSAGE(1, 2, 5),
                                                       MESSAGE(4, 0, 6),    MESSAGE(4, 1, 7)};
    static const int32_t stops[] = {1, 1, 1, /* */ 1, 2, 2, /* */ 1, 2, 3,
                                    1, 2, 2, /* */ 1, 0, 0, /* */ 1, 1, 1};
    *pattern = make_pattern(5, entries, N_OF(entries));
    *plan = make_plan(pattern, 3, stops);
}

static void test_base(void **state)
{
    (void)state;
    struct cpl_pattern pattern;
    struct cpl_plan plan;
    make_base(&pattern, &plan);
    assert_edges(&plan, "1 0 -> 1: 0>1,2,3\n1 4 -> 1: 4>0 4>1\n2 1 -> 2: 0>1,2,3 1>2\n"
                        "2 1 -> 0: 4>0\n3 2 -> 3: 0>1,2,3\n");
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
}

typedef void change(struct cpl_plan *plan);

/* The changed base must be refused with a text that contains the expected one. The fingerprint is
 * that of the changed plan, so that it is not what gives it away. */
static void check_refused(change *change_plan, const char *expected)
{
    struct cpl_pattern pattern;
    struct cpl_plan plan;
    struct cpl_error error = {""};
    make_base(&pattern, &plan);
    change_plan(&plan);
    plan.fingerprint = cpl_plan_compute_fingerprint(&plan);
    assert_int_equal(cpl_plan_check(&plan, &pattern, &error), CPL_ERR_BROKEN);
    if (!strstr(error.text, expected))
        fail_msg("\"%s\" does not say \"%s\"", error.text, expected);
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
}

/* Sends bundle 0 from 2 to 3 in the wave in which 2 gets it. */
static void send_too_early(struct cpl_plan *plan)
{
    plan->edges[4].wave = 2;
    plan->n_waves = 2;
}

static void send_what_is_not_held(struct cpl_plan *plan)
{
    plan->edges[4].from = 4;
}

static void test_causal(void **state)
{
    (void)state;
    check_refused(send_too_early, "causal: a bundle is sent on before it arrived: "
                                  "edge 2 -> 3 in wave 2");
    check_refused(send_what_is_not_held, "causal: a bundle is sent on before it arrived");
}

static void send_back(struct cpl_plan *plan)
{
    plan->edges[4].to = 0;
}

static void send_twice(struct cpl_plan *plan)
{
    plan->edges[4].to = 1;
}

static void test_tree(void **state)
{
    (void)state;
    check_refused(send_back, "tree: arrives twice or at its owner: bundle of rank 0 (message 0) "
                             "at rank 0");
    check_refused(send_twice, "tree: arrives twice or at its owner: bundle of rank 0 (message 0) "
                              "at rank 1");
}

static void drop_last_edge(struct cpl_plan *plan)
{
    plan->n_edges--;
    plan->n_segments--;
}

static void drop_last_bundle(struct cpl_plan *plan)
{
    plan->n_bundles--;
    plan->n_dests--;
    plan->n_segments--; /* of edge 1, whose last segment it is */
    memmove(plan->segments + 2, plan->segments + 3, 4 * sizeof *plan->segments);
    plan->edges[1].n_segments--;
    plan->edges[1].volume -= 7;
    for (int64_t e = 2; e < plan->n_edges; e++)
        plan->edges[e].first_segment--;
}

static void address_a_stranger(struct cpl_plan *plan)
{
    plan->dests[3] = 3; /* 1 has no message for 3 */
}

/* 4>1 in two bundles, in place of 4>0. */
static void deliver_twice(struct cpl_plan *plan)
{
    plan->bundles[2].message = 5;
    plan->bundles[2].volume = 7;
    plan->bundles[3].message = 6;
    plan->dests[4] = 1;
    plan->edges[1].volume = 14;
    plan->edges[3].volume = 7;
}

static void leave_out_a_destination(struct cpl_plan *plan)
{
    plan->bundles[3].n_dests = 0;
    plan->n_dests--;
}

static void lose_the_owner(struct cpl_plan *plan)
{
    plan->bundles[1].owner = 5;
}

static void test_complete(void **state)
{
    (void)state;
    check_refused(drop_last_edge, "complete: a destination is not reached: bundle of rank 0 "
                                  "(message 0) at rank 3");
    check_refused(drop_last_bundle, "complete: 5 of 6 messages are in bundles");
    check_refused(address_a_stranger, "complete: no message, or one in two bundles: bundle of "
                                      "rank 1 (message 3) at rank 3");
    check_refused(deliver_twice, "complete: no message, or one in two bundles: bundle of rank 4");
    check_refused(leave_out_a_destination, "complete: a bundle without destination or owner");
    check_refused(lose_the_owner, "complete: a bundle without destination or owner");
}

/* Two messages in one bundle when the pattern gives them different payloads, and when it has no
 * classes at all. */
static void test_different_payloads(void **state)
{
    (void)state;
    const struct cpl_pattern_entry same[] = {CLASSED(0, 1, 1, 0), CLASSED(0, 2, 1, 0)};
    const struct cpl_pattern_entry other[] = {CLASSED(0, 1, 1, 0), CLASSED(0, 2, 1, 1)};
    const struct cpl_pattern_entry own[] = {CLASSED(0, 1, 1, -1), CLASSED(0, 2, 1, 0)};
    const struct cpl_pattern_entry none[] = {MESSAGE(0, 1, 1), MESSAGE(0, 2, 1)};
    const struct cpl_pattern_entry *changed[] = {other, own, none};
    struct cpl_pattern pattern = make_pattern(3, same, 2);
    struct cpl_plan plan = make_plan(&pattern, 1, (const int32_t[]){1, 2});
    for (int k = 0; k < 3; k++) {
        struct cpl_error error = {""};
        struct cpl_pattern different = make_pattern(3, changed[k], 2);
        assert_int_equal(cpl_plan_check(&plan, &different, &error), CPL_ERR_BROKEN);
        assert_string_equal(error.text, "complete: messages of different payload: bundle of rank 0 "
                                        "(message 0) at rank 2");
        cpl_pattern_free(&different);
    }
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
}

/* A destination is reached, and somebody else too, who neither wants nor forwards. */
static void test_in_vain(void **state)
{
    (void)state;
    const struct cpl_pattern_entry two[] = {CLASSED(0, 1, 1, 0), CLASSED(0, 2, 1, 0)};
    struct cpl_pattern pattern = make_pattern(3, two, 2);
    struct cpl_pattern smaller = make_pattern(3, two, 1);
    struct cpl_plan plan = make_plan(&pattern, 1, (const int32_t[]){1, 2});
    struct cpl_error error = {""};
    plan.bundles[0].n_dests = 1;
    plan.n_dests = 1;
    assert_int_equal(cpl_plan_check(&plan, &smaller, &error), CPL_ERR_BROKEN);
    assert_string_equal(error.text,
                        "complete: carried in vain: bundle of rank 0 (message 0) at rank 2");
    cpl_plan_free(&plan);
    cpl_pattern_free(&smaller);
    cpl_pattern_free(&pattern);
}

static void double_an_edge(struct cpl_plan *plan)
{
    plan->edges[3].to = 2;
}

static void swap_edges(struct cpl_plan *plan)
{
    plan->edges[0].from = 4;
    plan->edges[1].from = 0;
}

static void send_to_oneself(struct cpl_plan *plan)
{
    plan->edges[0].to = 0;
}

static void wave_zero(struct cpl_plan *plan)
{
    plan->edges[0].wave = 0;
}

static void wave_beyond(struct cpl_plan *plan)
{
    plan->edges[4].wave = 4;
}

static void send_from_nowhere(struct cpl_plan *plan)
{
    plan->edges[0].from = -1;
}

static void send_to_nowhere(struct cpl_plan *plan)
{
    plan->edges[0].to = 5;
}

static void empty_an_edge(struct cpl_plan *plan)
{
    plan->edges[4].n_segments = 0;
    plan->edges[4].volume = 0;
    plan->n_segments--;
}

/* 1 sends to 0, which has nothing left to send, before 2, which has to send on to 3. */
static void swap_sends(struct cpl_plan *plan)
{
    static const int32_t segments[] = {2, 0, 1};
    struct cpl_edge first = plan->edges[2];
    plan->edges[2] = plan->edges[3];
    plan->edges[3] = first;
    plan->edges[2].first_segment = 3;
    plan->edges[3].first_segment = 4;
    memcpy(plan->segments + 3, segments, sizeof segments);
}

static void test_combined(void **state)
{
    (void)state;
    check_refused(double_an_edge, "combined: doubled or out of order: edge 1 -> 2 in wave 2");
    check_refused(swap_edges, "combined: doubled or out of order: edge 0 -> 1 in wave 1");
    static change *const invalid[] = {send_to_oneself,   wave_zero,       wave_beyond,
                                      send_from_nowhere, send_to_nowhere, empty_an_edge};
    for (int64_t k = 0; k < N_OF(invalid); k++)
        check_refused(invalid[k], "combined: not a combined message between two ranks");
}

static void swap_segments(struct cpl_plan *plan)
{
    plan->segments[1] = 3;
    plan->segments[2] = 2;
}

static void unknown_segment(struct cpl_plan *plan)
{
    plan->segments[0] = 4;
}

static void negative_segment(struct cpl_plan *plan)
{
    plan->segments[0] = -1;
}

static void wrong_edge_volume(struct cpl_plan *plan)
{
    plan->edges[1].volume++;
}

static void wrong_bundle_volume(struct cpl_plan *plan)
{
    plan->bundles[2].volume++;
    plan->edges[1].volume++;
    plan->edges[3].volume++;
}

static void wrong_message(struct cpl_plan *plan)
{
    plan->bundles[0].message = 1;
}

static void gap_in_segments(struct cpl_plan *plan)
{
    plan->edges[1].first_segment++;
}

static void too_many_segments(struct cpl_plan *plan)
{
    plan->edges[4].n_segments++;
}

static void segments_left_over(struct cpl_plan *plan)
{
    plan->n_edges--;
}

static void gap_in_dests(struct cpl_plan *plan)
{
    plan->bundles[1].first_dest++;
}

static void too_many_dests(struct cpl_plan *plan)
{
    plan->bundles[3].n_dests = INT32_MAX;
}

static void dests_out_of_order(struct cpl_plan *plan)
{
    plan->dests[0] = 2;
    plan->dests[1] = 1;
}

static void last_dests_out_of_order(struct cpl_plan *plan)
{
    plan->dests[1] = 3;
    plan->dests[2] = 2;
}

static void test_canonical(void **state)
{
    (void)state;
    check_refused(swap_segments, "canonical: segments out of order: edge 4 -> 1 in wave 1");
    check_refused(unknown_segment, "canonical: a segment is no bundle");
    check_refused(negative_segment, "canonical: a segment is no bundle");
    check_refused(wrong_edge_volume, "canonical: wrong volume: edge 4 -> 1 in wave 1");
    check_refused(wrong_bundle_volume, "canonical: wrong message or volume");
    check_refused(wrong_message, "canonical: wrong message or volume");
    check_refused(swap_sends, "canonical: not in the order of sending: edge 1 -> 2 in wave 2");
    check_refused(gap_in_segments, "canonical: segments do not follow each other");
    check_refused(too_many_segments, "canonical: segments do not follow each other");
    check_refused(segments_left_over, "canonical: segments without an edge");
    check_refused(gap_in_dests, "canonical: destinations do not follow each other");
    check_refused(too_many_dests, "canonical: destinations do not follow each other");
    check_refused(dests_out_of_order, "canonical: wrong message or volume");
    check_refused(last_dests_out_of_order, "canonical: destinations out of order");
}

static void test_fingerprints(void **state)
{
    (void)state;
    struct cpl_pattern pattern;
    struct cpl_plan plan;
    struct cpl_error error = {""};
    make_base(&pattern, &plan);
    plan.fingerprint ^= 1;
    assert_int_equal(cpl_plan_check(&plan, &pattern, &error), CPL_ERR_BROKEN);
    assert_string_equal(error.text, "canonical: wrong plan fingerprint");
    plan.fingerprint ^= 1;
    assert_int_equal(cpl_plan_check(&plan, &pattern, &error), CPL_OK);
    plan.pattern_fingerprint ^= 1;
    plan.fingerprint = cpl_plan_compute_fingerprint(&plan);
    assert_int_equal(cpl_plan_check(&plan, &pattern, &error), CPL_ERR_BROKEN);
    assert_string_equal(error.text, "canonical: the plan is of another pattern");
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
}

static void test_other_patterns(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 1), MESSAGE(1, 2, 1)};
    const struct cpl_pattern_entry heavier[] = {MESSAGE(0, 1, 1), MESSAGE(1, 2, 2)};
    const struct cpl_pattern_entry elsewhere[] = {MESSAGE(0, 1, 1), MESSAGE(1, 0, 1)};
    struct cpl_pattern pattern = make_pattern(3, entries, 2);
    struct cpl_plan plan = make_plan(&pattern, 1, (const int32_t[]){1, 2});
    struct cpl_pattern other[] = {make_pattern(4, entries, 2), make_pattern(3, heavier, 2),
                                  make_pattern(3, elsewhere, 2), make_pattern(3, entries, 1)};
    const char *expected[] = {"a plan of 3 ranks for a pattern of 4", "canonical: wrong message",
                              "complete: no message", "complete: no message"};
    for (int64_t k = 0; k < N_OF(other); k++) {
        struct cpl_error error = {""};
        assert_int_equal(cpl_plan_check(&plan, &other[k], &error), CPL_ERR_BROKEN);
        assert_non_null(strstr(error.text, expected[k]));
        assert_int_equal(cpl_plan_check(&plan, &other[k], NULL), CPL_ERR_BROKEN);
        cpl_pattern_free(&other[k]);
    }
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base),
        cmocka_unit_test(test_causal),
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_complete),
        cmocka_unit_test(test_different_payloads),
        cmocka_unit_test(test_in_vain),
        cmocka_unit_test(test_combined),
        cmocka_unit_test(test_canonical),
        cmocka_unit_test(test_fingerprints),
        cmocka_unit_test(test_other_patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
