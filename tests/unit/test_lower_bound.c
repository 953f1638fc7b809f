/* Tests of the lower bounds (lower_bound.h): examples by hand, all two-wave plans of small
 * patterns, and the plans of all strategies for random ones. */
#include "planner/lower_bound.h"
#include "planner/routes.h"
#include "planner/strategy.h"
#include "plans.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int64_t bound_messages(const struct cpl_pattern *pattern)
{
    int64_t messages = -1;
    struct cpl_error error = {""};
    if (cpl_bound_two_waves(pattern, &messages, &error))
        fail_msg("%s", error.text);
    return messages;
}

static double bound_us(const struct cpl_pattern *pattern, const struct cpl_machine *machine)
{
    double us = -1;
    struct cpl_error error = {""};
    if (cpl_bound_time(pattern, machine, 8, &us, &error))
        fail_msg("%s", error.text);
    return us;
}

/* The pattern of all pairs (i, j) with i < n_sources, i != j. */
static struct cpl_pattern all_pairs(int32_t n_ranks, int32_t n_sources)
{
    struct cpl_pattern_entry entries[32 * 32];
    int64_t n = 0;
    for (int32_t i = 0; i < n_sources; i++)
        for (int32_t j = 0; j < n_ranks; j++)
            if (i != j)
                entries[n++] = (struct cpl_pattern_entry)MESSAGE(i, j, 1);
    return make_pattern(n_ranks, entries, n);
}

static void check_all_pairs(int32_t n_ranks, int32_t n_sources, int64_t messages)
{
    struct cpl_pattern pattern = all_pairs(n_ranks, n_sources);
    assert_int_equal(bound_messages(&pattern), messages);
    cpl_pattern_free(&pattern);
}

/* One source: with M first-wave edges and M sends of each it reaches M + M M ranks, and may not use
 * its second wave. All to all of q x q ranks: q - 1 in each wave, which a grid attains. */
static void test_two_waves_by_hand(void **state)
{
    (void)state;
    check_all_pairs(5, 0, 0);
    check_all_pairs(2, 1, 1);
    check_all_pairs(3, 1, 1);
    check_all_pairs(7, 1, 2);
    check_all_pairs(8, 1, 3);
    check_all_pairs(13, 1, 3);
    check_all_pairs(4, 4, 2);
    check_all_pairs(9, 9, 4);
    check_all_pairs(16, 16, 6);
    check_all_pairs(25, 25, 8);
}

/* The bound of the transposed pattern is the same. */
static void test_two_waves_transposed(void **state)
{
    (void)state;
    int n_large = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct cpl_pattern pattern = random_pattern(seed, 80);
        struct cpl_pattern_entry *entries =
            test_calloc((size_t)pattern.n_messages + 1, sizeof *entries);
        int64_t n = 0;
        for (int32_t i = 0; i < pattern.n_ranks; i++)
            for (int64_t m = pattern.first[i]; m < pattern.first[i + 1]; m++)
                entries[n++] = (struct cpl_pattern_entry)MESSAGE(pattern.dst[m], i, 1);
        struct cpl_pattern transposed = make_pattern(pattern.n_ranks, entries, n);
        assert_int_equal(bound_messages(&pattern), bound_messages(&transposed));
        n_large += bound_messages(&pattern) > 3;
        test_free(entries);
        cpl_pattern_free(&transposed);
        cpl_pattern_free(&pattern);
    }
    assert_true(n_large > 30);
}

/* Sets routes by the relay of every message: the digits of code. */
static void set_relays(struct cpl_routes *routes, int32_t n_ranks, int64_t code)
{
    for (int64_t m = 0; m < routes->n_messages; m++, code /= n_ranks)
        cpl_routes_of(routes, m)[0] = (int32_t)(code % n_ranks);
}

static int64_t busiest(const struct cpl_plan *plan)
{
    int64_t sends[RANDOM_PATTERN_MOST_RANKS] = {0}, recvs[RANDOM_PATTERN_MOST_RANKS] = {0},
            most = 0;
    for (int64_t e = 0; e < plan->n_edges; e++) {
        int64_t sent = ++sends[plan->edges[e].from], received = ++recvs[plan->edges[e].to];
        most = sent > most ? sent : most;
        most = received > most ? received : most;
    }
    return most;
}

/* The best of all plans in which every message takes at most two waves. */
struct best {
    int64_t messages;
    double us;
};

static struct best try_all(const struct cpl_pattern *pattern, const struct cpl_machine *machine)
{
    struct best best = {INT64_MAX, 1e300};
    struct cpl_routes routes;
    int64_t n_codes = 1;
    assert_int_equal(cpl_routes_init(pattern, 2, &routes, NULL), CPL_OK);
    for (int64_t m = 0; m < pattern->n_messages; m++)
        n_codes *= pattern->n_ranks;
    for (int64_t code = 0; code < n_codes; code++) {
        struct cpl_plan plan;
        double us;
        set_relays(&routes, pattern->n_ranks, code);
        assert_int_equal(cpl_plan_build(pattern, &routes, &plan, NULL), CPL_OK);
        assert_int_equal(cpl_plan_cost(&plan, machine, 8, &us, NULL), CPL_OK);
        best.messages = busiest(&plan) < best.messages ? busiest(&plan) : best.messages;
        best.us = us < best.us ? us : best.us;
        cpl_plan_free(&plan);
    }
    cpl_routes_free(&routes);
    return best;
}

/* Random patterns of 2 to 4 ranks with at most 7 messages: the bounds hold, and are often equal to
 * the best. */
static void test_all_small_plans(void **state)
{
    (void)state;
    uint64_t random = 1;
    int n_equal = 0, n_tried = 0;
    while (n_tried < 60) {
        struct cpl_pattern_entry entries[7];
        int32_t n_ranks = 2 + random_below(&random, 3);
        for (int k = 0; k < 7; k++)
            entries[k] = (struct cpl_pattern_entry){
                random_below(&random, n_ranks), random_below(&random, n_ranks),
                random_below(&random, 2) * random_below(&random, 10000),
                random_below(&random, 3) - 1};
        struct cpl_pattern pattern = make_pattern(n_ranks, entries, 7);
        struct cpl_machine machine;
        assert_int_equal(cpl_machine_init(n_ranks, 1 + random_below(&random, 2), &machine, NULL),
                         CPL_OK);
        struct best best = try_all(&pattern, &machine);
        int64_t messages = bound_messages(&pattern);
        assert_true(messages <= best.messages);
        assert_true(bound_us(&pattern, &machine) <= best.us * (1 + 1e-12));
        n_equal += messages == best.messages;
        n_tried += 1;
        cpl_machine_free(&machine);
        cpl_pattern_free(&pattern);
    }
    assert_true(n_equal > 20);
}

/* A machine with everything drawn: places, links, even networks cheaper than nodes. */
static struct cpl_machine draw_machine(int32_t n_ranks, uint64_t *random)
{
    struct cpl_machine machine;
    int64_t node[RANDOM_PATTERN_MOST_RANKS];
    int32_t socket[RANDOM_PATTERN_MOST_RANKS];
    int32_t n_nodes = 1 + random_below(random, n_ranks);
    for (int32_t i = 0; i < n_ranks; i++) {
        node[i] = random_below(random, n_nodes);
        socket[i] = random_below(random, 2);
    }
    assert_int_equal(cpl_machine_from_places(n_ranks, node, socket, NULL, random_below(random, 3),
                                             &machine, NULL),
                     CPL_OK);
    for (int link = 0; link < CPL_N_LINKS; link++)
        machine.costs.link[link] =
            (struct cpl_link_cost){random_below(random, 20) * 0.1, random_below(random, 20) * 0.1,
                                   random_below(random, 30) * 0.1, random_below(random, 20) * 0.01};
    machine.costs.node_ns_per_byte = random_below(random, 10) * 0.01;
    machine.costs.segment_ns = random_below(random, 20);
    machine.lanes = random_below(random, 2);
    return machine;
}

/* No strategy's plan and no random one takes less than the bound; none of at most two waves has a
 * busiest rank below it. */
static void check_plan(const struct cpl_pattern *pattern, const struct cpl_machine *machine,
                       struct cpl_plan *plan)
{
    double us;
    assert_int_equal(cpl_plan_cost(plan, machine, 8, &us, NULL), CPL_OK);
    if (us * (1 + 1e-12) < bound_us(pattern, machine))
        fail_msg("%.10g us, below %.10g", us, bound_us(pattern, machine));
    if (plan->n_waves <= 2)
        assert_true(busiest(plan) >= bound_messages(pattern));
    cpl_plan_free(plan);
}

static void test_strategies(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 150; seed++) {
        uint64_t random = seed;
        struct cpl_pattern pattern = random_pattern(seed, 60);
        struct cpl_machine machine = draw_machine(pattern.n_ranks, &random);
        struct cpl_strategy_input input = {&pattern, &machine, 8, 10};
        struct cpl_strategy_list list;
        cpl_strategy_candidates(&input, &list);
        for (size_t k = 0; k < list.n; k++) {
            struct cpl_plan plan;
            enum cpl_status status = cpl_strategy_plan(&input, &list.choice[k], &plan, NULL);
            assert_true(status == CPL_OK || status == CPL_ERR_UNFIT);
            if (!status)
                check_plan(&pattern, &machine, &plan);
        }
        for (int32_t waves = 1; waves <= 4; waves++) {
            struct cpl_plan plan = make_random_plan(&pattern, waves, seed);
            check_plan(&pattern, &machine, &plan);
        }
        cpl_machine_free(&machine);
        cpl_pattern_free(&pattern);
    }
}

static void check_time(const struct cpl_pattern_entry *entries, int64_t n, int32_t ranks_per_node,
                       double us)
{
    struct cpl_pattern pattern = make_pattern(4, entries, n);
    struct cpl_machine machine;
    assert_int_equal(cpl_machine_init(4, ranks_per_node, &machine, NULL), CPL_OK);
    machine.costs = (struct cpl_costs){.link = {[CPL_LINK_SOCKET] = {1, 2, 16, 125},
                                                [CPL_LINK_NODE] = {1, 2, 16, 125},
                                                [CPL_LINK_NETWORK] = {64, 128, 256, 500}},
                                       .node_ns_per_byte = 1000,
                                       .segment_ns = 500};
    double got = bound_us(&pattern, &machine);
    if (got < us || got > us)
        fail_msg("%.10g us instead of %.10g", got, us);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
}

/* Nothing; one message inside a node (the receiver is the busier one); a rank that gets a message
 * and sends three; one between nodes; two for another node, whose bytes take less and more than an
 * overhead on the interface. A payload for two ranks of another node needs to go there once. */
static void test_time_by_hand(void **state)
{
    (void)state;
    const struct cpl_pattern_entry one[] = {MESSAGE(0, 1, 6)};
    const struct cpl_pattern_entry hub[] = {MESSAGE(0, 1, 6), MESSAGE(0, 2, 8), MESSAGE(0, 3, 9),
                                            MESSAGE(3, 0, 1)};
    const struct cpl_pattern_entry two[] = {MESSAGE(0, 2, 6), MESSAGE(1, 3, 6)};
    const struct cpl_pattern_entry more[] = {MESSAGE(0, 2, 12), MESSAGE(1, 3, 12)};
    const struct cpl_pattern_entry far[] = {MESSAGE(0, 1, 128)};
    const struct cpl_pattern_entry same[] = {CLASSED(0, 2, 6, 1), CLASSED(0, 3, 6, 1)};
    check_time(one, 0, 4, 0);
    check_time(one, 1, 4, 16 + 2 + 0.5 + 6);
    check_time(hub, 4, 4, 16 + (1 + 1.5) + (2 + 0.5) + 23);
    check_time(one, 1, 1, 256 + 128 + 0.5);
    check_time(two, 2, 2, 256 + 128 + 0.5);
    check_time(same, 2, 2, 256 + 128 + 0.5);
    check_time(more, 2, 2, 256 + CPL_WAVE_NODE * 192);
    check_time(far, 1, 1, 256 + CPL_WAVE_NODE * 128 * 8);
}

/* One rank to 63 others on one node, messages without bytes. The best is three waves of three sends
 * and a receive; the bound leaves out the receives and is three waves of three sends. */
static void test_reach(void **state)
{
    (void)state;
    struct cpl_pattern_entry entries[63];
    for (int32_t j = 0; j < 63; j++)
        entries[j] = (struct cpl_pattern_entry)MESSAGE(0, j + 1, 0);
    struct cpl_pattern pattern = make_pattern(64, entries, 63);
    struct cpl_machine machine;
    assert_int_equal(cpl_machine_init(64, 64, &machine, NULL), CPL_OK);
    machine.costs.segment_ns = 0;
    machine.costs.link[CPL_LINK_SOCKET] = (struct cpl_link_cost){1, 0, 2, 0};
    machine.costs.link[CPL_LINK_NODE] = machine.costs.link[CPL_LINK_SOCKET];
    double us = bound_us(&pattern, &machine);
    assert_true(us > 15 - 1e-9 && us < 15 + 1e-9);
    cpl_machine_free(&machine);
    /* Each on a node of its own: the same by the network. */
    assert_int_equal(cpl_machine_init(64, 1, &machine, NULL), CPL_OK);
    machine.costs.segment_ns = 0;
    machine.costs.link[CPL_LINK_NETWORK] = (struct cpl_link_cost){1, 0, 2, 0};
    double alone_us = bound_us(&pattern, &machine);
    assert_true(alone_us > 15 - 1e-9 && alone_us < 15 + 1e-9);
    cpl_machine_free(&machine);
    /* With nodes of 8 a message between nodes costs more, and 56 of the ranks need one or are
     * behind one. */
    assert_int_equal(cpl_machine_init(64, 8, &machine, NULL), CPL_OK);
    machine.costs.segment_ns = 0;
    machine.costs.link[CPL_LINK_SOCKET] = (struct cpl_link_cost){1, 0, 2, 0};
    machine.costs.link[CPL_LINK_NODE] = machine.costs.link[CPL_LINK_SOCKET];
    machine.costs.link[CPL_LINK_NETWORK] = (struct cpl_link_cost){4, 0, 8, 0};
    double far_us = bound_us(&pattern, &machine);
    assert_true(far_us > us + 3);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
}

static void test_other_machine(void **state)
{
    (void)state;
    struct cpl_pattern pattern = make_pattern(3, NULL, 0);
    struct cpl_machine machine;
    struct cpl_error error = {""};
    double us = -7;
    assert_int_equal(cpl_machine_init(4, 4, &machine, NULL), CPL_OK);
    assert_int_equal(cpl_bound_time(&pattern, &machine, 8, &us, &error), CPL_ERR_ARG);
    assert_string_equal(error.text, "a machine of 4 ranks for a pattern of 3");
    assert_true(us == -7);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_waves_by_hand), cmocka_unit_test(test_two_waves_transposed),
        cmocka_unit_test(test_all_small_plans),   cmocka_unit_test(test_strategies),
        cmocka_unit_test(test_time_by_hand),      cmocka_unit_test(test_reach),
        cmocka_unit_test(test_other_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
