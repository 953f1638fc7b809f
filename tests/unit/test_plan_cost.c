/* Tests of a plan's figures and modelled time with barriers (plan.h, cpl_plan_measure and
 * cpl_plan_cost), computed by hand. The costs are powers of two and halves, so that sums are exact.
 */
#include "plain_machine.h"
#include "planner/plan.h"
#include "plans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Lists of 1, 2 and 2 items take 0.1 us an item at each end, one of 9 no more than a segment. */
static void test_items(void **state)
{
    (void)state;
    const struct cpl_pattern_entry few[] = {MESSAGE(0, 1, 1), CLASSED(0, 1, 2, 0),
                                            CLASSED(0, 2, 2, 0)};
    const struct cpl_pattern_entry many[] = {MESSAGE(0, 1, 1), CLASSED(0, 1, 9, 0)};
    struct cpl_machine machine = make_machine(3, 1);
    machine.costs.item_ns = 100;
    struct cpl_plan plan = plan_direct(3, few, N_OF(few));
    check_cost(&plan, &machine, 256 + 2 * 64 + 0.5);
    cpl_plan_free(&plan);
    plan = plan_direct(3, many, N_OF(many));
    check_cost(&plan, &machine, 256 + 128 + 0.6);
    cpl_plan_free(&plan);
    cpl_machine_free(&machine);
}

static void test_no_edges(void **state)
{
    (void)state;
    struct cpl_plan plan = plan_direct(2, NULL, 0);
    struct cpl_machine machine = make_machine(2, 1);
    check_cost(&plan, &machine, 0);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

/* One message of 6 bytes: latency, the receiver's overhead (the larger), its segment, inside a node
 * its bytes; between nodes these are on their way meanwhile and count when they take longer. */
static void test_link_classes(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 6)};
    const int64_t one_node[] = {0, 0};
    const int32_t sockets[] = {0, 1};
    struct cpl_plan plan = plan_direct(2, entries, 1);
    struct cpl_machine machine = make_machine(2, 2);
    check_cost(&plan, &machine, 16 + 2 + 0.5 + 6);
    cpl_machine_free(&machine);
    assert_int_equal(cpl_machine_from_places(2, one_node, sockets, NULL, 0, &machine, NULL),
                     CPL_OK);
    machine.costs = plain_costs;
    check_cost(&plan, &machine, 32 + 8 + 0.5 + 12);
    cpl_machine_free(&machine);
    machine = make_machine(2, 1);
    check_cost(&plan, &machine, 256 + 128 + 0.5);
    machine.costs.link[CPL_LINK_NETWORK].ns_per_byte = 40000; /* a rank's own wire is slow */
    check_cost(&plan, &machine, 256 + 240);
    machine.costs.node_ns_per_byte = 80000; /* the node's interface is the slower one */
    check_cost(&plan, &machine, 256 + CPL_WAVE_NODE * 480);
    machine.costs.link[CPL_LINK_NETWORK].send_us = 1024; /* the sender is the busier one */
    check_cost(&plan, &machine, 256 + 1024 + 0.5);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

/* With lanes the same inside a node, by their costs; between nodes nothing changes. */
static void test_lanes(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 6)};
    const int64_t one_node[] = {0, 0};
    const int32_t sockets[] = {0, 1};
    struct cpl_plan plan = plan_direct(2, entries, 1);
    struct cpl_machine machine = make_machine(2, 2);
    machine.lanes = true;
    check_cost(&plan, &machine, 4 + 0.5 + 0.5 + 1.5);
    struct cpl_machine without = cpl_machine_without_lanes(&machine);
    check_cost(&plan, &without, 16 + 2 + 0.5 + 6);
    cpl_machine_free(&machine);
    assert_int_equal(cpl_machine_from_places(2, one_node, sockets, NULL, 0, &machine, NULL),
                     CPL_OK);
    machine.costs = plain_costs;
    machine.lanes = true;
    check_cost(&plan, &machine, 8 + 2 + 0.5 + 3);
    cpl_machine_free(&machine);
    machine = make_machine(2, 1);
    machine.lanes = true;
    check_cost(&plan, &machine, 256 + 128 + 0.5);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

/* Ranks 0, 1 and 2 share a node, 3 is on another: 2 sends 2 messages by lanes and 1 by MPI, and
 * receives 1 by MPI. */
static void test_metrics_of_lanes(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(2, 0, 1), MESSAGE(2, 1, 1),
                                                MESSAGE(2, 3, 1), MESSAGE(3, 2, 1)};
    struct cpl_plan plan = plan_direct(4, entries, N_OF(entries));
    struct cpl_machine machine = make_machine(4, 3);
    struct cpl_metrics metrics;
    assert_int_equal(cpl_plan_measure(&plan, &machine, 1, &metrics, NULL), CPL_OK);
    assert_int_equal(metrics.mpi_max, 3);
    assert_true(metrics.lanes_avg == 0);
    machine.lanes = true;
    assert_int_equal(cpl_plan_measure(&plan, &machine, 1, &metrics, NULL), CPL_OK);
    assert_int_equal(metrics.mpi_max, 1);
    assert_int_equal(metrics.sends_max, 3);
    assert_true(metrics.lanes_avg == 2.0 / 4);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

static void test_unit_bytes(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 6)};
    struct cpl_plan plan = plan_direct(2, entries, 1);
    struct cpl_machine machine = make_machine(2, 2);
    double us = 0;
    assert_int_equal(cpl_plan_cost(&plan, &machine, 8, &us, NULL), CPL_OK);
    assert_true(us == 16 + 2 + 0.5 + 48);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

/* Wave 1: rank 2 takes 2 segments of 8 bytes. Wave 2: rank 1 takes 2 segments of 10 bytes. */
static void test_waves_add_up(void **state)
{
    (void)state;
    struct cpl_plan plan = plan_shared();
    struct cpl_machine machine = make_machine(3, 3);
    check_cost(&plan, &machine, (16 + 2 + 1 + 8) + (16 + 2 + 1 + 10));
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

/* Rank 2 receives from 0 and 1 of its node and from 3 of another: overheads add up, the longest
 * latency counts once, bytes inside the node keep it busy. */
static void test_busiest_rank(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 2, 3), MESSAGE(1, 2, 4),
                                                MESSAGE(3, 2, 5)};
    struct cpl_plan plan = plan_direct(4, entries, N_OF(entries));
    struct cpl_machine machine = make_machine(4, 3);
    check_cost(&plan, &machine, 256 + (2 + 0.5 + 3) + (2 + 0.5 + 4) + (128 + 0.5));
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

/* What a rank sends to other nodes and what it receives go at the same time: the larger counts. */
static void test_both_directions(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 3), MESSAGE(1, 0, 5)};
    struct cpl_plan plan = plan_direct(2, entries, N_OF(entries));
    struct cpl_machine machine = make_machine(2, 1);
    check_cost(&plan, &machine, 256 + (64 + 0.5) + (128 + 0.5));
    machine.costs.link[CPL_LINK_NETWORK].ns_per_byte = 100000;
    check_cost(&plan, &machine, 256 + 5 * 100);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

/* Two ranks of a node send 4 bytes each: its port has to carry 8. */
static void test_shared_interface(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 2, 4), MESSAGE(1, 3, 4)};
    struct cpl_plan plan = plan_direct(4, entries, N_OF(entries));
    struct cpl_machine machine = make_machine(4, 2);
    check_cost(&plan, &machine, 256 + 128 + 0.5);
    machine.costs.node_ns_per_byte = 20000;
    check_cost(&plan, &machine, 256 + CPL_WAVE_NODE * 8 * 20);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

/* A ring of 4 on one node: each rank is busy for 1 + 2 + 2 segments. With one core they take turns,
 * which counts once it exceeds what the busiest rank needs by itself. */
static void test_shared_cores(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 0), MESSAGE(1, 2, 0),
                                                MESSAGE(2, 3, 0), MESSAGE(3, 0, 0)};
    struct cpl_plan plan = plan_direct(4, entries, N_OF(entries));
    struct cpl_machine machine = make_machine(4, 4);
    check_cost(&plan, &machine, 16 + 4);
    machine.cores_per_node = 1;
    check_cost(&plan, &machine, 16 + 4);
    machine.costs.link[CPL_LINK_SOCKET].latency_us = 1;
    check_cost(&plan, &machine, 4 * 4);
    machine.cores_per_node = 2;
    check_cost(&plan, &machine, 4 * 4 / 2);
    machine.costs.switch_us = 10;
    check_cost(&plan, &machine, 4 * (4 + 10) / 2.0);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

/* Ranks without anything to do need no core. */
static void test_idle_ranks(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 0)};
    struct cpl_plan plan = plan_direct(8, entries, 1);
    struct cpl_machine machine = make_machine(8, 8);
    machine.cores_per_node = 1;
    machine.costs.switch_us = 100;
    check_cost(&plan, &machine, (1 + 0.5 + 100) + (2 + 0.5 + 100));
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

static void test_other_machine(void **state)
{
    (void)state;
    struct cpl_plan plan = plan_shared();
    struct cpl_machine machine = make_machine(4, 4);
    struct cpl_metrics metrics = {.n_waves = -7};
    struct cpl_error error = {""};
    double us = -7;
    assert_int_equal(cpl_plan_cost(&plan, &machine, 1, &us, &error), CPL_ERR_ARG);
    assert_string_equal(error.text, "a machine of 4 ranks for a plan of 3");
    assert_true(us == -7);
    assert_int_equal(cpl_plan_chain_cost(&plan, &machine, 1, &us, &error), CPL_ERR_ARG);
    assert_true(us == -7);
    assert_int_equal(cpl_plan_measure(&plan, &machine, 1, &metrics, &error), CPL_ERR_ARG);
    assert_int_equal(metrics.n_waves, -7);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

static struct cpl_metrics measure(const struct cpl_plan *plan)
{
    struct cpl_metrics metrics;
    struct cpl_machine machine = make_machine(plan->n_ranks, plan->n_ranks);
    assert_int_equal(cpl_plan_measure(plan, &machine, 1, &metrics, NULL), CPL_OK);
    cpl_machine_free(&machine);
    return metrics;
}

static void test_metrics(void **state)
{
    (void)state;
    struct cpl_plan plan = plan_shared();
    struct cpl_metrics metrics = measure(&plan);
    assert_int_equal(metrics.n_waves, 2);
    assert_int_equal(metrics.sends_max, 1);
    assert_int_equal(metrics.recvs_max, 1);
    assert_true(metrics.sends_avg == 2.0 / 3 && metrics.recvs_avg == 2.0 / 3);
    assert_int_equal(metrics.hops_max, 2);
    assert_true(metrics.hops_avg == 4.0 / 3);
    assert_true(metrics.volume_factor == 18.0 / 15);
    assert_true(metrics.waves_us == 56);
    assert_int_equal(metrics.set_max, 1);
    assert_true(metrics.set_avg == 2.0 / 3);
    cpl_plan_free(&plan);
}

/* 0 sends to 1 in both waves: two combined messages, but one rank in its send set. */
static void test_sets_are_not_sends(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 1), MESSAGE(0, 2, 1)};
    struct cpl_pattern pattern = make_pattern(3, entries, N_OF(entries));
    struct cpl_plan plan = make_plan(&pattern, 2, (const int32_t[]){0, 1, /* */ 1, 2});
    struct cpl_metrics metrics = measure(&plan);
    assert_int_equal(metrics.sends_max, 2);
    assert_int_equal(metrics.recvs_max, 2);
    assert_true(metrics.sends_avg == 1);
    assert_int_equal(metrics.set_max, 1);
    assert_true(metrics.set_avg == 2.0 / 3);
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
}

/* A payload for 1, 2 and 3 that 1 copies: hops of the destinations are depths in the tree, and of
 * 3 messages of volume 9 the plan carries 3 copies. 4 gets nothing of it: it forwards. */
static void test_metrics_of_copies(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {CLASSED(0, 1, 9, 0), CLASSED(0, 2, 9, 0),
                                                CLASSED(0, 3, 9, 0)};
    const int32_t stops[] = {1, 1, 1, /* */ 1, 2, 2, /* */ 1, 4, 3};
    struct cpl_pattern pattern = make_pattern(5, entries, N_OF(entries));
    struct cpl_plan plan = make_plan(&pattern, 3, stops);
    struct cpl_metrics metrics = measure(&plan);
    assert_int_equal(metrics.n_waves, 3);
    assert_int_equal(metrics.sends_max, 2);
    assert_int_equal(metrics.hops_max, 3);
    assert_true(metrics.hops_avg == 2);
    assert_true(metrics.volume_factor == 36.0 / 27);
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
}

static void test_metrics_of_nothing(void **state)
{
    (void)state;
    const struct cpl_pattern_entry empty[] = {MESSAGE(0, 1, 0)};
    struct cpl_plan plan = plan_direct(2, NULL, 0);
    struct cpl_metrics metrics = measure(&plan);
    assert_int_equal(metrics.n_waves, 0);
    assert_int_equal(metrics.sends_max, 0);
    assert_int_equal(metrics.hops_max, 0);
    assert_true(metrics.hops_avg == 0 && metrics.volume_factor == 1 && metrics.modelled_us == 0);
    assert_true(metrics.modelled_us == 0);
    cpl_plan_free(&plan);
    plan = plan_direct(2, empty, 1);
    metrics = measure(&plan);
    assert_int_equal(metrics.sends_max, 1);
    assert_true(metrics.volume_factor == 1);
    cpl_plan_free(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_no_edges),
        cmocka_unit_test(test_link_classes),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_metrics_of_lanes),
        cmocka_unit_test(test_unit_bytes),
        cmocka_unit_test(test_waves_add_up),
        cmocka_unit_test(test_busiest_rank),
        cmocka_unit_test(test_both_directions),
        cmocka_unit_test(test_shared_interface),
        cmocka_unit_test(test_shared_cores),
        cmocka_unit_test(test_idle_ranks),
        cmocka_unit_test(test_other_machine),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_sets_are_not_sends),
        cmocka_unit_test(test_metrics_of_copies),
        cmocka_unit_test(test_metrics_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
