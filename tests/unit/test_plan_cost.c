/* Tests of a plan's figures and modelled times (plan.h, cpl_plan_measure, cpl_plan_cost and
 * cpl_plan_chain_cost), computed by hand. The costs are powers of two and halves, so that sums are
 * exact. */
#include "plan.h"
#include "plans.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Microseconds: a message inside a socket is 1 to send, 2 to receive, 16 on the way, 1 a byte, and
 * so on outwards; a segment is half a microsecond at each end; switching ranks is free. */
static const struct cpl_costs plain_costs = {
    .link = {[CPL_LINK_SOCKET] = {1, 2, 16, 1000},
             [CPL_LINK_NODE] = {4, 8, 32, 2000},
             [CPL_LINK_NETWORK] = {64, 128, 256, 4000}},
    .node_ns_per_byte = 1000,
    .segment_ns = 500,
};

static struct cpl_machine make_machine(int32_t n_ranks, int32_t ranks_per_node)
{
    struct cpl_machine machine;
    assert_int_equal(cpl_machine_init(n_ranks, ranks_per_node, &machine, NULL), CPL_OK);
    machine.costs = plain_costs;
    return machine;
}

/* The plan's modelled time with units of one byte is exactly us. */
static void check_cost(struct cpl_plan *plan, struct cpl_machine *machine, double us)
{
    double got = -1;
    struct cpl_error error = {""};
    assert_int_equal(cpl_plan_cost(plan, machine, 1, &got, &error), CPL_OK);
    if (got < us || got > us)
        fail_msg("%.10g us instead of %.10g", got, us);
}

/* The direct plan of the entries. */
static struct cpl_plan plan_direct(int32_t n_ranks, const struct cpl_pattern_entry *entries,
                                   int64_t n_entries)
{
    struct cpl_pattern pattern = make_pattern(n_ranks, entries, n_entries);
    struct cpl_plan plan = make_plan(&pattern, 1, pattern.dst);
    cpl_pattern_free(&pattern);
    return plan;
}

/* 0 sends 3 units to 1 and, over 2, 5 units to 2; 2 sends 7 units to 1. */
static struct cpl_plan plan_shared(void)
{
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 3), MESSAGE(0, 2, 5),
                                                MESSAGE(2, 1, 7)};
    struct cpl_pattern pattern = make_pattern(3, entries, N_OF(entries));
    struct cpl_plan plan = make_plan(&pattern, 2, (const int32_t[]){2, 1, /* */ 2, 2, /* */ 2, 1});
    cpl_pattern_free(&pattern);
    return plan;
}

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
    check_cost(&plan, &machine, 256 + 480);
    machine.costs.link[CPL_LINK_NETWORK].send_us = 512; /* the sender is the busier one */
    check_cost(&plan, &machine, 256 + 512 + 0.5);
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

/* Two ranks of a node send 4 bytes each: its interface has to carry 8. */
static void test_shared_interface(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 2, 4), MESSAGE(1, 3, 4)};
    struct cpl_plan plan = plan_direct(4, entries, N_OF(entries));
    struct cpl_machine machine = make_machine(4, 2);
    check_cost(&plan, &machine, 256 + 128 + 0.5);
    machine.costs.node_ns_per_byte = 20000;
    check_cost(&plan, &machine, 256 + 8 * 20);
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

/* The plan's time by the chain model with units of one byte is exactly us. */
static void check_chain(const struct cpl_plan *plan, const struct cpl_machine *machine, double us)
{
    double got = -1;
    struct cpl_error error = {""};
    assert_int_equal(cpl_plan_chain_cost(plan, machine, 1, &got, &error), CPL_OK);
    if (got < us || got > us)
        fail_msg("%.10g us instead of %.10g", got, us);
}

/* Sending, the way, receiving; inside a node both ends copy the bytes. */
static void test_chain_links(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 6)};
    const int64_t one_node[] = {0, 0};
    const int32_t sockets[] = {0, 1};
    struct cpl_plan plan = plan_direct(2, entries, 1);
    struct cpl_machine machine = make_machine(2, 2);
    check_chain(&plan, &machine, (1 + 0.5 + 6) + 16 + (2 + 0.5 + 6));
    cpl_machine_free(&machine);
    assert_int_equal(cpl_machine_from_places(2, one_node, sockets, NULL, 0, &machine, NULL),
                     CPL_OK);
    machine.costs = plain_costs;
    check_chain(&plan, &machine, (4 + 0.5 + 12) + 32 + (8 + 0.5 + 12));
    cpl_machine_free(&machine);
    machine = make_machine(2, 1);
    check_chain(&plan, &machine, 64.5 + 24 + 256 + 128.5);
    machine.costs.node_ns_per_byte = 100000; /* the node's interface is the slower one */
    check_chain(&plan, &machine, 64.5 + 600 + 256 + 128.5);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

/* 0 -> 2 with 2 segments of 8 bytes, then 2 -> 1 with 2 segments of 10 bytes. */
static void test_chain_of_two(void **state)
{
    (void)state;
    struct cpl_plan plan = plan_shared();
    struct cpl_machine machine = make_machine(3, 3);
    struct cpl_metrics metrics;
    check_chain(&plan, &machine, (1 + 1 + 8) + 16 + (2 + 1 + 8) + (1 + 1 + 10) + 16 + (2 + 1 + 10));
    assert_int_equal(cpl_plan_measure(&plan, &machine, 1, &metrics, NULL), CPL_OK);
    assert_true(metrics.modelled_us == 78);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

/* 0 -> 1 in wave 2 does not wait for 2 -> 3 in wave 1. */
static void test_chain_without_barrier(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 6), MESSAGE(2, 3, 20)};
    struct cpl_pattern pattern = make_pattern(4, entries, N_OF(entries));
    struct cpl_plan plan = make_plan(&pattern, 2, (const int32_t[]){0, 1, /* */ 3, 3});
    struct cpl_machine machine = make_machine(4, 4);
    check_cost(&plan, &machine, (16 + 2.5 + 20) + (16 + 2.5 + 6));
    check_chain(&plan, &machine, 21.5 + 16 + 22.5);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
}

/* 1's own message to 3 leaves at once, in whatever wave it is, and does not wait for what 1 sends
 * on for 0. */
static void test_chain_sends_what_is_ready(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 2, 0), MESSAGE(1, 3, 0)};
    struct cpl_pattern pattern = make_pattern(4, entries, N_OF(entries));
    struct cpl_plan plan = make_plan(&pattern, 2, (const int32_t[]){1, 2, /* */ 1, 3});
    struct cpl_machine machine = make_machine(4, 4);
    check_chain(&plan, &machine, (1.5 + 16 + 2.5) + 1.5 + 16 + 2.5);
    cpl_plan_free(&plan);
    plan = make_plan(&pattern, 2, (const int32_t[]){1, 2, /* */ 3, 3});
    check_chain(&plan, &machine, (1.5 + 16 + 2.5) + 1.5 + 16 + 2.5);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
}

/* Two messages arrive at the same time, one is taken in after the other. */
static void test_chain_receives_in_turn(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 2, 0), MESSAGE(1, 2, 0)};
    struct cpl_plan plan = plan_direct(3, entries, N_OF(entries));
    struct cpl_machine machine = make_machine(3, 3);
    check_chain(&plan, &machine, 1.5 + 16 + 2.5 + 2.5);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

/* Between nodes bytes follow each other out of a rank and into a rank. */
static void test_chain_on_the_wire(void **state)
{
    (void)state;
    const struct cpl_pattern_entry out[] = {MESSAGE(0, 1, 50), MESSAGE(0, 2, 60)};
    const struct cpl_pattern_entry in[] = {MESSAGE(0, 2, 50), MESSAGE(1, 2, 50)};
    struct cpl_machine machine = make_machine(3, 1);
    struct cpl_plan plan = plan_direct(3, out, N_OF(out));
    check_chain(&plan, &machine, 64.5 + 200 + 240 + 256 + 128.5);
    cpl_plan_free(&plan);
    plan = plan_direct(3, in, N_OF(in));
    check_chain(&plan, &machine, 64.5 + 200 + 256 + 200 + 128.5);
    cpl_plan_free(&plan);
    cpl_machine_free(&machine);
}

/* A ring of 4 on one node, as in test_shared_cores. Each rank has to wait, and is switched to. */
static void test_chain_shares_cores(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 0), MESSAGE(1, 2, 0),
                                                MESSAGE(2, 3, 0), MESSAGE(3, 0, 0)};
    struct cpl_plan plan = plan_direct(4, entries, N_OF(entries));
    struct cpl_machine machine = make_machine(4, 4);
    machine.cores_per_node = 1;
    check_chain(&plan, &machine, 1.5 + 16 + 2.5);
    machine.costs.link[CPL_LINK_SOCKET].latency_us = 1;
    check_chain(&plan, &machine, 4 * (1.5 + 2.5));
    machine.cores_per_node = 2;
    machine.costs.switch_us = 10;
    check_chain(&plan, &machine, 4 * (1.5 + 10 + 2.5) / 2);
    machine.cores_per_node = 4;
    check_chain(&plan, &machine, 1.5 + 1 + 10 + 2.5);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

#define NAIVE_RANKS 12

enum naive_stage { UNSENT, LEAVING, ENTERING, THERE, TAKEN };

/* The chain model again for ranks with a core each, in the simplest way: everything is looked for
 * everywhere. */
struct naive {
    const struct cpl_plan *plan;
    const struct cpl_machine *machine;
    double clock[NAIVE_RANKS], out[NAIVE_RANKS], in[NAIVE_RANKS]; /* of ranks */
    double node_out[NAIVE_RANKS], node_in[NAIVE_RANKS];
    enum naive_stage stage[4000]; /* of each edge */
    double time[4000];            /* of its next stage */
};

static double naive_end(const struct naive *n, const struct cpl_edge *edge, double overhead)
{
    enum cpl_link_class link = cpl_machine_link(n->machine, edge->from, edge->to);
    double bytes = link == CPL_LINK_NETWORK ? 0 : (double)edge->volume;
    return overhead + edge->n_segments * 0.5 + bytes * plain_costs.link[link].ns_per_byte / 1000;
}

/* Whether the sender has the bundle. */
static int naive_holds(const struct naive *n, int64_t e, int32_t bundle)
{
    int32_t from = n->plan->edges[e].from;
    for (int64_t k = 0; k < e; k++)
        for (int32_t s = 0; s < n->plan->edges[k].n_segments; s++)
            if (n->plan->edges[k].to == from && n->stage[k] == TAKEN &&
                n->plan->segments[n->plan->edges[k].first_segment + s] == bundle)
                return 1;
    return n->plan->bundles[bundle].owner == from;
}

static int naive_ready(const struct naive *n, int64_t e)
{
    const struct cpl_edge *edge = &n->plan->edges[e];
    for (int32_t s = 0; s < edge->n_segments; s++)
        if (!naive_holds(n, e, n->plan->segments[edge->first_segment + s]))
            return 0;
    return 1;
}

static void naive_send(struct naive *n, int32_t rank)
{
    for (int64_t e = 0; e < n->plan->n_edges; e++) {
        const struct cpl_edge *edge = &n->plan->edges[e];
        if (edge->from != rank || n->stage[e] != UNSENT || !naive_ready(n, e))
            continue;
        enum cpl_link_class link = cpl_machine_link(n->machine, rank, edge->to);
        n->time[e] = n->clock[rank] += naive_end(n, edge, plain_costs.link[link].send_us);
        n->stage[e] = LEAVING;
        if (link != CPL_LINK_NETWORK) {
            n->stage[e] = THERE;
            n->time[e] += plain_costs.link[link].latency_us;
        }
    }
}

static double naive_later(double a, double b)
{
    return a > b ? a : b;
}

static void naive_leave(struct naive *n, int64_t e)
{
    const struct cpl_edge *edge = &n->plan->edges[e];
    double *out = &n->out[edge->from], *node_out = &n->node_out[n->machine->node[edge->from]];
    double bytes = (double)edge->volume;
    *out = naive_later(*out, n->time[e]) + bytes * 4;
    *node_out =
        naive_later(*node_out, n->time[e]) + bytes * n->machine->costs.node_ns_per_byte * 1e-3;
    n->time[e] = naive_later(*out, *node_out) + 256;
    n->stage[e] = ENTERING;
}

static void naive_enter(struct naive *n, int64_t e)
{
    const struct cpl_edge *edge = &n->plan->edges[e];
    double *in = &n->in[edge->to], *node_in = &n->node_in[n->machine->node[edge->to]];
    double bytes = (double)edge->volume;
    *in = naive_later(*in + bytes * 4, n->time[e]);
    *node_in =
        naive_later(*node_in + bytes * n->machine->costs.node_ns_per_byte * 1e-3, n->time[e]);
    n->time[e] = naive_later(*in, *node_in);
    n->stage[e] = THERE;
}

static void naive_receive(struct naive *n, int64_t e)
{
    const struct cpl_edge *edge = &n->plan->edges[e];
    enum cpl_link_class link = cpl_machine_link(n->machine, edge->from, edge->to);
    n->clock[edge->to] = naive_later(n->clock[edge->to], n->time[e]) +
                         naive_end(n, edge, plain_costs.link[link].recv_us);
    n->stage[e] = TAKEN;
    naive_send(n, edge->to);
}

static int64_t naive_next(const struct naive *n)
{
    int64_t next = -1;
    for (int64_t e = 0; e < n->plan->n_edges; e++)
        if (n->stage[e] != UNSENT && n->stage[e] != TAKEN &&
            (next < 0 || n->time[e] < n->time[next]))
            next = e;
    return next;
}

static double naive_chain(const struct cpl_plan *plan, const struct cpl_machine *machine)
{
    static struct naive n;
    n = (struct naive){.plan = plan, .machine = machine};
    assert_true(plan->n_ranks <= NAIVE_RANKS && plan->n_edges <= 4000);
    for (int32_t i = 0; i < plan->n_ranks; i++)
        naive_send(&n, i);
    for (int64_t e = naive_next(&n); e >= 0; e = naive_next(&n))
        if (n.stage[e] == LEAVING)
            naive_leave(&n, e);
        else if (n.stage[e] == ENTERING)
            naive_enter(&n, e);
        else
            naive_receive(&n, e);
    double last = 0;
    for (int32_t i = 0; i < plan->n_ranks; i++)
        last = naive_later(last, n.clock[i]);
    return last;
}

static void test_chain_of_random_plans(void **state)
{
    (void)state;
    int n_with_messages = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct cpl_pattern pattern = random_pattern_undivided(seed, NAIVE_RANKS);
        struct cpl_plan plan = make_random_plan(&pattern, 1 + (int32_t)(seed % 4), seed);
        struct cpl_machine machine = make_machine(plan.n_ranks, 1 + (int32_t)(seed % 5));
        double us = 0;
        machine.costs.node_ns_per_byte = 1000 * (double)(seed % 8);
        check_chain(&plan, &machine, naive_chain(&plan, &machine));
        assert_int_equal(cpl_plan_chain_cost(&plan, &machine, 0, &us, NULL), CPL_OK);
        n_with_messages += us > 0;
        cpl_machine_free(&machine);
        cpl_plan_free(&plan);
        cpl_pattern_free(&pattern);
    }
    assert_true(n_with_messages > 100);
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
        cmocka_unit_test(test_unit_bytes),
        cmocka_unit_test(test_waves_add_up),
        cmocka_unit_test(test_busiest_rank),
        cmocka_unit_test(test_both_directions),
        cmocka_unit_test(test_shared_interface),
        cmocka_unit_test(test_shared_cores),
        cmocka_unit_test(test_idle_ranks),
        cmocka_unit_test(test_other_machine),
        cmocka_unit_test(test_chain_links),
        cmocka_unit_test(test_chain_of_two),
        cmocka_unit_test(test_chain_without_barrier),
        cmocka_unit_test(test_chain_sends_what_is_ready),
        cmocka_unit_test(test_chain_receives_in_turn),
        cmocka_unit_test(test_chain_on_the_wire),
        cmocka_unit_test(test_chain_shares_cores),
        cmocka_unit_test(test_chain_of_random_plans),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_sets_are_not_sends),
        cmocka_unit_test(test_metrics_of_copies),
        cmocka_unit_test(test_metrics_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
