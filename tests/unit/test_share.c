/* Tests of message sharing (strategy_share.c, share_*.h): the thesis's worked examples, one small
 * pattern for each case of pairing, Phase II on a hub, a cycle of waiting messages, and properties
 * on random patterns. Figures count ranks from 1, the tests from 0. */
#include "planner/plan.h"
#include "planner/share/share_friend.h"
#include "planner/share/share_phase1.h"
#include "planner/share/share_phase2.h"
#include "planner/strategies/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_OF(array) ((int32_t)(sizeof(array) / sizeof *(array)))
#define END         (-1)
#define MOST_DESTS  10

/* The parameters of share: 1, 2 and stay. */
enum { PHASE1 = 1, BOTH = 2, STAY = 3 };

/* A send set; ends with END. */
struct send_set {
    int32_t dst[MOST_DESTS + 1];
};

static struct cpl_pattern build(int32_t n_ranks, const struct cpl_pattern_entry *entries,
                                int64_t n_entries)
{
    struct cpl_pattern pattern;
    struct cpl_error error = {""};
    if (cpl_pattern_build(n_ranks, entries, n_entries, &pattern, &error))
        fail_msg("%s", error.text);
    return pattern;
}

/* A pattern of n_ranks ranks, of which the first n_sets have the send sets. */
static struct cpl_pattern build_sets(int32_t n_ranks, const struct send_set *sets, int32_t n_sets)
{
    struct cpl_pattern_entry entries[64];
    int64_t n = 0;
    for (int32_t src = 0; src < n_sets; src++) {
        for (const int32_t *dst = sets[src].dst; *dst != END; dst++)
            entries[n++] = (struct cpl_pattern_entry){src, *dst, 1, -1};
    }
    return build(n_ranks, entries, n);
}

static uint32_t next_random(uint32_t *random)
{
    *random = *random * 1664525U + 1013904223U;
    return *random >> 8;
}

/* Every rank sends to each other one with its own chance of up to most_percent. */
static struct cpl_pattern build_random(int32_t n_ranks, uint32_t most_percent, uint32_t seed)
{
    struct cpl_pattern_entry *entries =
        malloc(sizeof *entries * (size_t)n_ranks * (size_t)n_ranks + 1);
    assert_non_null(entries);
    int64_t n = 0;
    for (int32_t src = 0; src < n_ranks; src++) {
        uint32_t percent = next_random(&seed) % (most_percent + 1);
        for (int32_t dst = 0; dst < n_ranks; dst++) {
            if (next_random(&seed) % 100 < percent)
                entries[n++] = (struct cpl_pattern_entry){src, dst, 1 + dst % 3, -1};
        }
    }
    struct cpl_pattern pattern = build(n_ranks, entries, n);
    free(entries);
    return pattern;
}

static int64_t message_of(const struct cpl_pattern *pattern, int32_t src, int32_t dst)
{
    for (int64_t m = pattern->first[src]; m < pattern->first[src + 1]; m++) {
        if (pattern->dst[m] == dst)
            return m;
    }
    fail_msg("no message %d -> %d", (int)src, (int)dst);
    return -1;
}

/* Message src -> dst goes over via. */
struct shared {
    int32_t src;
    int32_t dst;
    int32_t via;
};

/* Runs Phase I, compares with what is to be shared; nothing else is. */
static void check_phase1(const struct cpl_pattern *pattern, const struct shared *shared,
                         int32_t n_shared)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    int32_t *sender = CPL_ARENA_ARRAY(&arena, int32_t, pattern->n_messages);
    int32_t *expected = CPL_ARENA_ARRAY(&arena, int32_t, pattern->n_messages);
    assert_non_null(sender);
    assert_non_null(expected);
    for (int32_t src = 0; src < pattern->n_ranks; src++) {
        for (int64_t m = pattern->first[src]; m < pattern->first[src + 1]; m++)
            expected[m] = src;
    }
    for (int32_t i = 0; i < n_shared; i++)
        expected[message_of(pattern, shared[i].src, shared[i].dst)] = shared[i].via;
    assert_int_equal(cpl_share_phase1(pattern, &arena, sender), CPL_OK);
    for (int64_t m = 0; m < pattern->n_messages; m++)
        assert_int_equal(sender[m], expected[m]);
    cpl_arena_free(&arena);
}

static struct cpl_routes route(const struct cpl_pattern *pattern, int32_t parameter)
{
    struct cpl_strategy_input input = {.pattern = pattern, .unit_bytes = 8};
    struct cpl_routes routes;
    struct cpl_error error = {""};
    if (cpl_strategy_share.route(&input, &(struct cpl_strategy_numbers){1, {parameter}}, &routes,
                                 &error))
        fail_msg("%s", error.text);
    return routes;
}

/* Builds and checks the plan of a share strategy. */
static struct cpl_plan make_plan(const struct cpl_pattern *pattern, int32_t parameter)
{
    struct cpl_routes routes = route(pattern, parameter);
    struct cpl_plan plan;
    struct cpl_error error = {""};
    if (cpl_plan_build(pattern, &routes, &plan, &error) || cpl_plan_check(&plan, pattern, &error))
        fail_msg("%s", error.text);
    cpl_routes_free(&routes);
    return plan;
}

static int32_t segments_of(const struct cpl_plan *plan, int32_t from, int32_t to, int32_t wave)
{
    for (int64_t e = 0; e < plan->n_edges; e++) {
        const struct cpl_edge *edge = &plan->edges[e];
        if (edge->from == from && edge->to == to && edge->wave == wave)
            return edge->n_segments;
    }
    return 0;
}

/* The most different ranks that one rank sends to. */
static int64_t largest_set(const struct cpl_plan *plan)
{
    int64_t largest = 0;
    for (int32_t rank = 0; rank < plan->n_ranks; rank++) {
        bool *seen = calloc((size_t)plan->n_ranks, sizeof *seen);
        int64_t n = 0;
        assert_non_null(seen);
        for (int64_t e = 0; e < plan->n_edges; e++) {
            if (plan->edges[e].from == rank) {
                n += !seen[plan->edges[e].to];
                seen[plan->edges[e].to] = true;
            }
        }
        free(seen);
        largest = n > largest ? n : largest;
    }
    return largest;
}

/* Section 4.2.2: 100 and 80 messages with 10 or 40 in common; odd sums round down; never below 0.
 */
static void test_alpha(void **state)
{
    (void)state;
    assert_int_equal(cpl_share_alpha(100, 80, 10), 10);
    assert_int_equal(cpl_share_alpha(100, 80, 40), 30);
    assert_int_equal(cpl_share_alpha(100, 80, 20), 20);
    assert_int_equal(cpl_share_alpha(100, 80, 21), 20);
    assert_int_equal(cpl_share_alpha(6, 6, 6), 3);
    assert_int_equal(cpl_share_alpha(6, 6, 1), 0);
    assert_int_equal(cpl_share_alpha(3, 9, 2), 0);
    assert_int_equal(cpl_share_alpha(5, 5, 0), 0);
}

/* Figure 2.3: m14 rides in M13, then in M34. */
static void test_figure_2_3(void **state)
{
    (void)state;
    const struct send_set sets[] = {{{1, 2, 3, END}}, {{END}}, {{3, 4, END}}};
    const struct shared shared[] = {{0, 3, 2}};
    struct cpl_pattern pattern = build_sets(5, sets, N_OF(sets));
    check_phase1(&pattern, shared, N_OF(shared));
    struct cpl_plan shared_plan = make_plan(&pattern, PHASE1);
    assert_int_equal(shared_plan.n_waves, 2);
    assert_int_equal(shared_plan.n_edges, 4);
    assert_int_equal(segments_of(&shared_plan, 0, 2, 1), 2);
    assert_int_equal(segments_of(&shared_plan, 2, 3, 2), 2);
    assert_int_equal(segments_of(&shared_plan, 0, 1, 2), 1);
    assert_int_equal(segments_of(&shared_plan, 2, 4, 2), 1);
    cpl_plan_free(&shared_plan);
    cpl_pattern_free(&pattern);
}

/* Figures 4.1 and 4.2, and case 1: three messages each, and one to each other. */
static void test_figure_4_2(void **state)
{
    (void)state;
    const struct send_set sets[] = {{{2, 3, 4, 5, 6, 7, END}}, {{2, 3, 4, 5, 6, 7, END}}};
    const struct shared shared[] = {{0, 2, 1}, {0, 3, 1}, {0, 4, 1},
                                    {1, 5, 0}, {1, 6, 0}, {1, 7, 0}};
    struct cpl_pattern pattern = build_sets(8, sets, N_OF(sets));
    check_phase1(&pattern, shared, N_OF(shared));
    struct cpl_plan shared_plan = make_plan(&pattern, PHASE1);
    assert_int_equal(shared_plan.n_edges, 8);
    assert_int_equal(segments_of(&shared_plan, 0, 1, 1), 3);
    assert_int_equal(segments_of(&shared_plan, 1, 0, 1), 3);
    for (int32_t dst = 2; dst <= 7; dst++)
        assert_int_equal(segments_of(&shared_plan, dst < 5 ? 1 : 0, dst, 2), 2);
    cpl_plan_free(&shared_plan);
    cpl_pattern_free(&pattern);
}

static void check_friend(struct cpl_share_friend_finder *finder, int32_t rank, int32_t mate,
                         int32_t n_common)
{
    struct cpl_share_friend found;
    assert_int_equal(cpl_share_friend_take(finder, rank, &found), CPL_OK);
    assert_int_equal(found.rank, mate);
    if (mate >= 0)
        assert_int_equal(found.n_common, n_common);
}

/* Figures 4.3 to 4.5: P0 and P3 of four that all send to all have two messages in common. */
static void test_figure_4_4(void **state)
{
    (void)state;
    const struct send_set sets[] = {
        {{1, 2, 3, END}}, {{0, 2, 3, END}}, {{0, 1, 3, END}}, {{0, 1, 2, END}}};
    struct cpl_pattern pattern = build_sets(4, sets, N_OF(sets));
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_share_friend_finder finder;
    assert_int_equal(cpl_share_friend_init(&finder, &pattern, &arena), CPL_OK);
    check_friend(&finder, 2, 0, 2);
    check_friend(&finder, 0, 1, 2);
    check_friend(&finder, 0, 3, 2); /* the pair of 0 and 2 is used up */
    check_friend(&finder, 0, -1, 0);
    cpl_arena_free(&arena);
    cpl_pattern_free(&pattern);
}

static int32_t naive_common(const struct cpl_pattern *pattern, int32_t a, int32_t b)
{
    int32_t n = 0;
    for (int64_t i = pattern->first[a]; i < pattern->first[a + 1]; i++) {
        for (int64_t j = pattern->first[b]; j < pattern->first[b + 1]; j++)
            n += pattern->dst[i] == pattern->dst[j];
    }
    return n;
}

/* All friends of a rank in order, by asking for the best of those that are left. */
static void check_all_friends(const struct cpl_pattern *pattern, int32_t rank)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_share_friend_finder finder;
    int32_t *n_common = CPL_ARENA_ARRAY(&arena, int32_t, pattern->n_ranks);
    assert_non_null(n_common);
    for (int32_t other = 0; other < pattern->n_ranks; other++)
        n_common[other] = other == rank ? 0 : naive_common(pattern, rank, other);
    assert_int_equal(cpl_share_friend_init(&finder, pattern, &arena), CPL_OK);
    for (;;) {
        int32_t best = 0;
        for (int32_t other = 1; other < pattern->n_ranks; other++) {
            if (n_common[other] > n_common[best])
                best = other;
        }
        if (n_common[best] == 0)
            break;
        check_friend(&finder, rank, best, n_common[best]);
        n_common[best] = 0;
    }
    check_friend(&finder, rank, -1, 0);
    check_friend(&finder, rank, -1, 0);
    cpl_arena_free(&arena);
}

/* Sparse and dense columns, sums over 255, several batches. */
static void test_friends_agree_with_a_scan(void **state)
{
    (void)state;
    const int32_t n_ranks[] = {1, 2, 16, 17, 65, 420};
    const uint32_t percent[] = {4, 30, 100};
    for (int32_t i = 0; i < N_OF(n_ranks); i++) {
        for (int32_t k = 0; k < N_OF(percent); k++) {
            struct cpl_pattern pattern = build_random(n_ranks[i], percent[k], (uint32_t)(7 + k));
            check_all_friends(&pattern, 0);
            check_all_friends(&pattern, n_ranks[i] / 2);
            cpl_pattern_free(&pattern);
        }
    }
}

/* Case 2: 0 gives 3 and 4 to 1. Then 2 is the most loaded and meets 0: its message to 3 follows to
 * 1; with four messages each now, 0 gives the one to 8 to 2. */
static void test_case_2(void **state)
{
    (void)state;
    const struct send_set sets[] = {
        {{3, 4, 5, 6, 7, 8, END}}, {{3, 4, 9, END}}, {{3, 8, 10, 11, 12, END}}};
    const struct shared shared[] = {{0, 3, 1}, {0, 4, 1}, {2, 3, 1}, {0, 8, 2}};
    struct cpl_pattern pattern = build_sets(13, sets, N_OF(sets));
    check_phase1(&pattern, shared, N_OF(shared));
    cpl_pattern_free(&pattern);
}

/* Case 3: 0 gives 3 and 4 to 1 and stays the most loaded. Its friend 2 lets its message to 3 follow
 * to 1 and gets the one to 5. */
static void test_case_3(void **state)
{
    (void)state;
    const struct send_set sets[] = {
        {{3, 4, 5, 6, 7, 8, 9, END}}, {{3, 4, 10, END}}, {{3, 5, 11, END}}};
    const struct shared shared[] = {{0, 3, 1}, {0, 4, 1}, {2, 3, 1}, {0, 5, 2}};
    struct cpl_pattern pattern = build_sets(12, sets, N_OF(sets));
    check_phase1(&pattern, shared, N_OF(shared));
    cpl_pattern_free(&pattern);
}

/* Case 4: 0 gives 5, 7, 8 to 1; 2 gives 4, 12, 13, 14 to 3. Then 0 and 2 meet: 0's message to 4
 * follows to 3, 2's to 5 follows to 1, and 6 is left to 2. */
static void test_case_4(void **state)
{
    (void)state;
    const struct send_set sets[] = {{{4, 5, 6, 7, 8, 9, 10, 11, END}},
                                    {{5, 7, 8, END}},
                                    {{4, 5, 6, 12, 13, 14, 15, 16, END}},
                                    {{4, 12, 13, 14, END}}};
    const struct shared shared[] = {{0, 5, 1},  {0, 7, 1},  {0, 8, 1}, {2, 4, 3}, {2, 12, 3},
                                    {2, 13, 3}, {2, 14, 3}, {0, 4, 3}, {2, 5, 1}, {0, 6, 2}};
    struct cpl_pattern pattern = build_sets(17, sets, N_OF(sets));
    check_phase1(&pattern, shared, N_OF(shared));
    cpl_pattern_free(&pattern);
}

/* Algorithm 3: 0 sends 3 and 4 over 1, so it goes on sending to 1 itself, though 2 could. */
static void test_group_is_kept(void **state)
{
    (void)state;
    const struct send_set sets[] = {{{1, 3, 4, 5, 6, 7, 8, END}}, {{3, 4, END}}, {{1, 5, END}}};
    const struct shared shared[] = {{0, 3, 1}, {0, 4, 1}, {0, 5, 2}};
    struct cpl_pattern pattern = build_sets(9, sets, N_OF(sets));
    check_phase1(&pattern, shared, N_OF(shared));
    cpl_pattern_free(&pattern);
}

/* Phase II of a pattern whose messages have the senders; compares the ranks inside the ways. */
static void check_phase2(const struct cpl_pattern *pattern, const int32_t *sender, int32_t most_via,
                         const int32_t *expected, int64_t n_expected, int64_t largest)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_share_sets send_sets;
    struct cpl_share_ways ways;
    assert_int_equal(cpl_share_sets_build(pattern, sender, &arena, &send_sets), CPL_OK);
    assert_int_equal(cpl_share_phase2(&send_sets, most_via, &arena, &ways), CPL_OK);
    assert_int_equal(ways.largest_load, largest);
    assert_int_equal(send_sets.n_edges * ways.most_via, n_expected);
    assert_memory_equal(ways.via, expected, (size_t)n_expected * sizeof *expected);
    cpl_arena_free(&arena);
}

/* Phase II on one rank that sends to eight, nothing handed on. First 2, 3, 4, 5 go over 1 (1 itself
 * is passed over), then 6 and 7 over 2: the rank sends to 2 itself again. Then 1 is the most
 * loaded, with nothing but what it was given. */
static void test_hub(void **state)
{
    (void)state;
    const struct send_set sets[] = {{{1, 2, 3, 4, 5, 6, 7, 8, END}}};
    const int32_t sender[8] = {0};
    const int32_t expected[] = {-1, -1, 1, 1, 1, 2, 2, -1};
    struct cpl_pattern pattern = build_sets(9, sets, N_OF(sets));
    check_phase2(&pattern, sender, 1, expected, N_OF(expected), 4);
    struct cpl_plan shared_plan = make_plan(&pattern, STAY);
    assert_int_equal(shared_plan.n_waves, 2);
    assert_int_equal(shared_plan.n_edges, 8);
    assert_int_equal(segments_of(&shared_plan, 0, 1, 1), 4);
    assert_int_equal(segments_of(&shared_plan, 0, 2, 1), 3);
    assert_int_equal(segments_of(&shared_plan, 0, 8, 2), 1);
    cpl_plan_free(&shared_plan);
    cpl_pattern_free(&pattern);
}

/* One rank sends to all 63 others. Where nothing is handed on, the first who is given half of that
 * keeps it. */
static void test_hub_hands_on(void **state)
{
    (void)state;
    struct cpl_pattern_entry entries[63];
    for (int32_t k = 0; k < N_OF(entries); k++)
        entries[k] = (struct cpl_pattern_entry){0, k + 1, 1, -1};
    struct cpl_pattern pattern = build(64, entries, N_OF(entries));
    struct cpl_plan handed_on = make_plan(&pattern, BOTH);
    struct cpl_plan stayed = make_plan(&pattern, STAY);
    assert_int_equal(largest_set(&stayed), 30);
    assert_true(3 * largest_set(&handed_on) < largest_set(&stayed));
    assert_true(handed_on.n_waves > 2);
    cpl_plan_free(&handed_on);
    cpl_plan_free(&stayed);
    cpl_pattern_free(&pattern);
}

/* No way has more ranks inside than it may, ends early, or comes to a rank twice. */
static void check_ways(const struct cpl_share_sets *sets, const struct cpl_share_ways *ways,
                       int32_t most_via)
{
    assert_in_range(ways->most_via, 1, most_via);
    for (int32_t rank = 0; rank < sets->n_ranks; rank++) {
        for (int64_t edge = sets->first[rank]; edge < sets->first[rank + 1]; edge++) {
            const int32_t *via = ways->via + edge * ways->most_via;
            bool ended = false;
            for (int32_t n = 0; n < ways->most_via; n++) {
                assert_true(!ended || via[n] < 0);
                ended |= via[n] < 0;
                assert_true(via[n] < sets->n_ranks && via[n] != rank && via[n] != sets->to[edge]);
                for (int32_t k = 0; k < n; k++)
                    assert_true(via[n] < 0 || via[n] != via[k]);
            }
        }
    }
}

/* The send sets after Phase I count what is carried for others, and every edge once. */
static void test_sets_after_phase1(void **state)
{
    (void)state;
    const struct send_set sets[] = {{{1, 2, 3, END}}, {{3, END}}, {{1, 3, END}}};
    const int32_t sender[] = {0, 0, 1, 1, 2, 1}; /* 0 -> 3 and 2 -> 3 over 1 */
    const int64_t first[] = {0, 2, 3, 4, 4};
    const int32_t to[] = {1, 2, 3, 1};
    struct cpl_pattern pattern = build_sets(4, sets, N_OF(sets));
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_share_sets send_sets;
    assert_int_equal(cpl_share_sets_build(&pattern, sender, &arena, &send_sets), CPL_OK);
    assert_int_equal(send_sets.n_edges, 4);
    assert_memory_equal(send_sets.first, first, sizeof first);
    assert_memory_equal(send_sets.to, to, sizeof to);
    assert_int_equal(send_sets.carried_first[1], 0);
    assert_int_equal(send_sets.carried_first[2], 2);
    assert_int_equal(send_sets.carried[0], 2);
    assert_int_equal(send_sets.carried[1], 5);
    assert_int_equal(cpl_share_sets_find(&send_sets, 0, 2), 1);
    assert_int_equal(cpl_share_sets_find(&send_sets, 0, 3), -1);
    assert_int_equal(cpl_share_sets_find(&send_sets, 3, 0), -1);
    cpl_arena_free(&arena);
    cpl_pattern_free(&pattern);
}

/* Whether one combined message per pair of ranks would have to wait for itself: an edge waits for
 * those by which its segments arrive. */
static bool has_cycle(const struct cpl_pattern *pattern, const struct shared *shared,
                      int32_t n_shared)
{
    enum { N = 5 };
    bool waits[N * N][N * N] = {{false}};
    assert_int_equal(pattern->n_ranks, N);
    for (int32_t i = 0; i < n_shared; i++)
        waits[shared[i].via * N + shared[i].dst][shared[i].src * N + shared[i].via] = true;
    for (int32_t k = 0; k < N * N; k++) {
        for (int32_t i = 0; i < N * N; i++) {
            for (int32_t j = 0; j < N * N; j++)
                waits[i][j] |= waits[i][k] && waits[k][j];
        }
    }
    bool found = false;
    for (int32_t i = 0; i < N * N; i++)
        found |= waits[i][i];
    return found;
}

/* M(0,1) carries 0's message to 4, so M(1,4) waits for it; that carries 1's message to 0, so M(4,0)
 * waits; that carries 4's message to 1, so M(0,1) waits for itself. In two waves it works. */
static void test_cycle_becomes_waves(void **state)
{
    (void)state;
    const struct send_set sets[] = {
        {{1, 4, END}}, {{0, 3, 4, END}}, {{3, 4, END}}, {{END}}, {{0, 1, 3, END}}};
    const struct shared shared[] = {{0, 4, 1}, {1, 0, 4}, {1, 3, 2},
                                    {2, 4, 1}, {4, 1, 0}, {4, 3, 2}};
    struct cpl_pattern pattern = build_sets(5, sets, N_OF(sets));
    check_phase1(&pattern, shared, N_OF(shared));
    assert_true(has_cycle(&pattern, shared, N_OF(shared)));
    struct cpl_plan shared_plan = make_plan(&pattern, PHASE1);
    assert_int_equal(shared_plan.n_waves, 2);
    assert_int_equal(segments_of(&shared_plan, 1, 4, 1), 1);
    assert_int_equal(segments_of(&shared_plan, 1, 4, 2), 3);
    cpl_plan_free(&shared_plan);
    cpl_pattern_free(&pattern);
}

/* Twice the same; every route ends at its destination; as many hops as the phases allow; a valid
 * plan, whose waves let nothing wait for itself. Returns its largest send set. */
static int64_t check_properties(const struct cpl_pattern *pattern, int32_t parameter)
{
    const int32_t most_hops[] = {[PHASE1] = 2, [BOTH] = 2 * (1 + CPL_SHARE_MOST_VIA), [STAY] = 4};
    struct cpl_routes routes = route(pattern, parameter);
    struct cpl_routes again = route(pattern, parameter);
    assert_in_range(routes.n_waves, 1, most_hops[parameter]);
    assert_int_equal(routes.n_waves, again.n_waves);
    size_t n_stops = (size_t)routes.n_messages * (size_t)routes.n_waves;
    assert_memory_equal(routes.stops, again.stops, n_stops * sizeof *routes.stops);
    for (int64_t m = 0; m < pattern->n_messages; m++)
        assert_int_equal(cpl_routes_of(&routes, m)[routes.n_waves - 1], pattern->dst[m]);
    cpl_routes_free(&routes);
    cpl_routes_free(&again);
    struct cpl_plan shared_plan = make_plan(pattern, parameter);
    assert_true(shared_plan.n_waves <= most_hops[parameter]);
    int64_t largest = largest_set(&shared_plan);
    cpl_plan_free(&shared_plan);
    return largest;
}

/* Phase II after Phase I, with and without handing on; the loads bound the plans' send sets. */
static void check_loads(const struct cpl_pattern *pattern, int64_t handed_on, int64_t stayed)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    int32_t *sender = CPL_ARENA_ARRAY(&arena, int32_t, pattern->n_messages);
    struct cpl_share_sets sets;
    struct cpl_share_ways one, more;
    assert_non_null(sender);
    assert_int_equal(cpl_share_phase1(pattern, &arena, sender), CPL_OK);
    assert_int_equal(cpl_share_sets_build(pattern, sender, &arena, &sets), CPL_OK);
    assert_int_equal(cpl_share_phase2(&sets, 1, &arena, &one), CPL_OK);
    assert_int_equal(cpl_share_phase2(&sets, CPL_SHARE_MOST_VIA, &arena, &more), CPL_OK);
    check_ways(&sets, &one, 1);
    check_ways(&sets, &more, CPL_SHARE_MOST_VIA);
    assert_true(more.largest_load <= one.largest_load);
    assert_true(more.most_via == 1 || more.largest_load < one.largest_load);
    int64_t before = 0;
    for (int32_t rank = 0; rank < sets.n_ranks; rank++)
        if (before < sets.first[rank + 1] - sets.first[rank])
            before = sets.first[rank + 1] - sets.first[rank];
    assert_true(one.largest_load <= before);
    assert_true(stayed <= one.largest_load);
    assert_true(handed_on <= more.largest_load);
    cpl_arena_free(&arena);
}

static void test_random_patterns(void **state)
{
    (void)state;
    const int32_t n_ranks[] = {1, 2, 3, 4, 7, 16, 33, 64, 130};
    const uint32_t percent[] = {0, 5, 30, 70, 100};
    for (int32_t i = 0; i < N_OF(n_ranks); i++) {
        for (int32_t k = 0; k < N_OF(percent); k++) {
            struct cpl_pattern pattern =
                build_random(n_ranks[i], percent[k], (uint32_t)(31 * i + k));
            check_properties(&pattern, PHASE1);
            int64_t stayed = check_properties(&pattern, STAY);
            check_loads(&pattern, check_properties(&pattern, BOTH), stayed);
            cpl_pattern_free(&pattern);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alpha),
        cmocka_unit_test(test_figure_2_3),
        cmocka_unit_test(test_figure_4_2),
        cmocka_unit_test(test_figure_4_4),
        cmocka_unit_test(test_friends_agree_with_a_scan),
        cmocka_unit_test(test_case_2),
        cmocka_unit_test(test_case_3),
        cmocka_unit_test(test_case_4),
        cmocka_unit_test(test_group_is_kept),
        cmocka_unit_test(test_hub),
        cmocka_unit_test(test_hub_hands_on),
        cmocka_unit_test(test_sets_after_phase1),
        cmocka_unit_test(test_cycle_becomes_waves),
        cmocka_unit_test(test_random_patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
