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

static double bound_us(const struct cpl_pattern *pattern, const struct cpl_machine *machine,
                       double unit_bytes)
{
    double us = -1;
    struct cpl_error error = {""};
    if (cpl_bound_time(pattern, machine, unit_bytes, &us, &error))
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

static struct best try_all(const struct cpl_pattern *pattern, const struct cpl_machine *machine,
                           double unit_bytes)
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
        assert_int_equal(cpl_plan_chain_cost(&plan, machine, unit_bytes, &us, NULL), CPL_OK);
        best.messages = busiest(&plan) < best.messages ? busiest(&plan) : best.messages;
        best.us = us < best.us ? us : best.us;
        cpl_plan_free(&plan);
    }
    cpl_routes_free(&routes);
    return best;
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
    for (int link = CPL_LINK_SOCKET; link <= CPL_LINK_NODE; link++)
        machine.costs.lane[link] = (struct cpl_link_cost){
            random_below(random, 20) * 0.02, random_below(random, 20) * 0.02,
            random_below(random, 30) * 0.02, random_below(random, 20) * 0.01};
    machine.costs.node_ns_per_byte = random_below(random, 10) * 0.01;
    machine.costs.segment_ns = random_below(random, 20);
    machine.costs.combined_ns = random_below(random, 100);
    machine.costs.packed_ns_per_byte = random_below(random, 3) * 0.05;
    machine.costs.item_ns = random_below(random, 3);
    machine.lanes = random_below(random, 2);
    return machine;
}

static double draw_unit(uint64_t *random)
{
    static const double units[] = {0.5, 8, 100, 4096, 1e6};
    return units[random_below(random, 5)];
}

/* Random patterns of 2 to 4 ranks with at most 7 messages, on random machines: the bounds hold, and
 * are often near the best. */
static void test_all_small_plans(void **state)
{
    (void)state;
    uint64_t random = 1;
    int n_equal = 0, n_equal_us = 0, n_waves_us = 0;
    for (int n_tried = 0; n_tried < 120; n_tried++) {
        struct cpl_pattern_entry entries[7];
        int32_t n_ranks = 2 + random_below(&random, 3), n = 7;
        for (int k = 0; k < n; k++)
            entries[k] = (struct cpl_pattern_entry){
                random_below(&random, n_ranks), random_below(&random, n_ranks),
                random_below(&random, 2) * random_below(&random, 1000),
                random_below(&random, 3) - 1};
        struct cpl_pattern pattern = make_pattern(n_ranks, entries, n);
        struct cpl_machine machine = draw_machine(n_ranks, &random);
        double unit_bytes = draw_unit(&random);
        struct best best = try_all(&pattern, &machine, unit_bytes);
        int64_t messages = bound_messages(&pattern);
        double us = bound_us(&pattern, &machine, unit_bytes);
        assert_true(messages <= best.messages);
        if (us > best.us * (1 + 1e-12))
            fail_msg("%.10g us, below %.10g", best.us, us);
        n_equal += messages == best.messages;
        n_equal_us += us > 0.999 * best.us;
        n_waves_us += us > 0.8 * best.us && us < 0.999 * best.us;
        cpl_machine_free(&machine);
        cpl_pattern_free(&pattern);
    }
    assert_true(n_equal > 90);
    assert_true(n_equal_us > 15);
    assert_true(n_waves_us > 10);
}

/* No strategy's plan and no random one takes less than the bound; none of at most two waves has a
 * busiest rank below it. */
static void check_plan(const struct cpl_strategy_input *input, struct cpl_plan *plan, double bound)
{
    double us;
    assert_int_equal(cpl_plan_chain_cost(plan, input->machine, input->unit_bytes, &us, NULL),
                     CPL_OK);
    if (us * (1 + 1e-12) < bound)
        fail_msg("%.10g us, below %.10g", us, bound);
    if (plan->n_waves <= 2)
        assert_true(busiest(plan) >= bound_messages(input->pattern));
    cpl_plan_free(plan);
}

/* What MPI does takes no less either. */
static void check_mpi(const struct cpl_strategy_input *input, double bound)
{
    struct cpl_metrics mpi;
    assert_int_equal(cpl_strategy_measure_mpi(input, &mpi, NULL), CPL_OK);
    assert_true(mpi.modelled_us * (1 + 1e-12) >= bound);
}

static void test_strategies(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 150; seed++) {
        uint64_t random = seed;
        struct cpl_pattern pattern = random_pattern(seed, 60);
        struct cpl_machine machine = draw_machine(pattern.n_ranks, &random);
        struct cpl_strategy_input input = {&pattern, &machine, draw_unit(&random), 10};
        struct cpl_strategy_list list;
        double bound = bound_us(&pattern, &machine, input.unit_bytes);
        cpl_strategy_candidates(&input, &list);
        check_mpi(&input, bound);
        for (size_t k = 0; k < list.n; k++) {
            struct cpl_plan plan;
            enum cpl_status status = cpl_strategy_plan(&input, &list.choice[k], &plan, NULL);
            assert_true(status == CPL_OK || status == CPL_ERR_UNFIT);
            if (!status)
                check_plan(&input, &plan, bound);
        }
        for (int32_t waves = 1; waves <= 4; waves++) {
            struct cpl_plan plan = make_random_plan(&pattern, waves, seed);
            check_plan(&input, &plan, bound);
        }
        cpl_machine_free(&machine);
        cpl_pattern_free(&pattern);
    }
}

static void assert_us(double got, double us)
{
    if (got < us * (1 - 1e-8) || got > us * (1 + 1e-12))
        fail_msg("%.10g us instead of %.10g", got, us);
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
    assert_us(bound_us(&pattern, &machine, 8), us);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
}

/* Nothing; one message inside a node, whose bytes count at one end; a rank that gets a message and
 * sends three; one between nodes, then two, small and larger, which are best sent straight. A
 * payload for two ranks of another node needs to go there once. */
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
    check_time(one, 1, 4, (1 + 0.5) + 6 + 16 + (2 + 0.5));
    check_time(hub, 4, 4, (1 + 1.5) + 23 + 16 + (2 + 0.5));
    check_time(one, 1, 1, 64 + 256 + 48 + 128);
    check_time(two, 2, 2, 64 + 256 + 96 + 128);
    check_time(same, 2, 2, (64 + 0.5) + 256 + 48 + (128 + 0.5));
    check_time(more, 2, 2, 64 + 256 + 192 + 128);
    check_time(far, 1, 1, 64 + 256 + 1024 + 128);
}

static void check_reach(const struct cpl_pattern *pattern, int32_t ranks_per_node,
                        struct cpl_link_cost inside, struct cpl_link_cost network, double us)
{
    struct cpl_machine machine;
    assert_int_equal(cpl_machine_init(pattern->n_ranks, ranks_per_node, &machine, NULL), CPL_OK);
    machine.costs = (struct cpl_costs){.link = {inside, inside, network}};
    assert_us(bound_us(pattern, &machine, 8), us);
    cpl_machine_free(&machine);
}

/* One rank to 63 others, messages without bytes. When sending takes 1 and the way 2, f(t) = f(t -
 * 1) + f(t - 3) ranks know after t, so 60 after 12 and 88 after 13. With time reversed the same
 * holds for receiving, where all send to one. With nodes of 8 and messages between nodes that take
 * four times as long, others of the source's node know after 3, 4, 5, 6, 6, 7, 7, the first ranks
 * of other nodes after 12, 15, 16, 16, 17, ..., and each node's others as much later as in the
 * first: 35 ranks of other nodes by 21, 49 by 22. */
static void test_reach(void **state)
{
    (void)state;
    struct cpl_pattern_entry to[63], from[63];
    const struct cpl_link_cost sends = {1, 0, 2, 0}, recvs = {0, 1, 2, 0}, far = {4, 0, 8, 0};
    for (int32_t j = 0; j < 63; j++) {
        to[j] = (struct cpl_pattern_entry)MESSAGE(0, j + 1, 0);
        from[j] = (struct cpl_pattern_entry)MESSAGE(j + 1, 0, 0);
    }
    struct cpl_pattern scatter = make_pattern(64, to, 63), gather = make_pattern(64, from, 63);
    check_reach(&scatter, 64, sends, sends, 13);
    check_reach(&scatter, 1, sends, sends, 13);
    check_reach(&gather, 64, recvs, recvs, 13);
    check_reach(&gather, 1, recvs, recvs, 13);
    check_reach(&scatter, 8, sends, far, 23);
    cpl_pattern_free(&scatter);
    cpl_pattern_free(&gather);
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
