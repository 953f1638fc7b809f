/* Tests of the chain model (plan.h, cpl_plan_chain_cost): by hand, and against a naive
 * simulation. */
#include "plain_machine.h"
#include "planner/plan.h"
#include "planner/plan/plan_internal.h"
#include "plans.h"
#include "random_pattern.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The plan's time by the chain model with units of one byte is us, but for rounding. */
static void check_chain(const struct cpl_plan *plan, const struct cpl_machine *machine, double us)
{
    double got = -1;
    struct cpl_error error = {""};
    assert_int_equal(cpl_plan_chain_cost(plan, machine, 1, &got, &error), CPL_OK);
    if (fabs(got - us) > 1e-7 * (1 + us))
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
    check_chain(&plan, &machine, (1 + 6) + 16 + (2 + 6));
    cpl_machine_free(&machine);
    assert_int_equal(cpl_machine_from_places(2, one_node, sockets, NULL, 0, &machine, NULL),
                     CPL_OK);
    machine.costs = plain_costs;
    check_chain(&plan, &machine, (4 + 12) + 32 + (8 + 12));
    cpl_machine_free(&machine);
    machine = make_machine(2, 1);
    check_chain(&plan, &machine, 64 + 24 + 256 + 128);
    machine.costs.node_ns_per_byte = 100000; /* the node's interface is the slower one */
    check_chain(&plan, &machine, 64 + 600 + 256 + 128);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

/* The same by lanes, where there are any: inside the node. */
static void test_chain_lanes(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 6)};
    struct cpl_plan plan = plan_direct(2, entries, 1);
    struct cpl_machine machine = make_machine(2, 2);
    machine.lanes = true;
    check_chain(&plan, &machine, (0.25 + 1.5) + 4 + (0.5 + 1.5));
    machine.socket[1] = 1;
    check_chain(&plan, &machine, (1 + 3) + 8 + (2 + 3));
    cpl_machine_free(&machine);
    machine = make_machine(2, 1);
    machine.lanes = true;
    check_chain(&plan, &machine, 64 + 24 + 256 + 128);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

/* 0 -> 2 with 2 segments of 8 bytes, then 2 -> 1 with 2 segments of 10 bytes, before 2 unpacks what
 * is its own. Then packing has a price for a message and for its bytes. */
static void test_chain_of_two(void **state)
{
    (void)state;
    struct cpl_plan plan = plan_shared();
    struct cpl_machine machine = make_machine(3, 3);
    struct cpl_metrics metrics;
    check_chain(&plan, &machine, (1 + 1 + 8) + 16 + (2 + 8) + (1 + 1 + 10) + 16 + (2 + 1 + 10));
    assert_int_equal(cpl_plan_measure(&plan, &machine, 1, &metrics, NULL), CPL_OK);
    assert_true(metrics.modelled_us == 77);
    machine.costs.combined_ns = 3000;
    machine.costs.packed_ns_per_byte = 1000;
    check_chain(&plan, &machine, 77 + 3 * 3 + (8 + 10 + 10));
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
    check_chain(&plan, &machine, (1.5 + 16 + 2) + 1.5 + 16 + 2.5);
    cpl_plan_free(&plan);
    plan = make_plan(&pattern, 2, (const int32_t[]){1, 2, /* */ 3, 3});
    check_chain(&plan, &machine, (1.5 + 16 + 2) + 1.5 + 16 + 2.5);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
}

/* Two messages arrive at the same time, one is taken in after the other. What is to be sent on for
 * the first one waits for both. */
static void test_chain_receives_in_turn(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 2, 0), MESSAGE(1, 2, 0)};
    struct cpl_plan plan = plan_direct(3, entries, N_OF(entries));
    struct cpl_machine machine = make_machine(3, 3);
    check_chain(&plan, &machine, 1 + 16 + 2 + 2);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);

    const struct cpl_pattern_entry sent_on[] = {MESSAGE(0, 3, 0), MESSAGE(1, 2, 0)};
    struct cpl_pattern pattern = make_pattern(4, sent_on, N_OF(sent_on));
    plan = make_plan(&pattern, 2, (const int32_t[]){2, 3, /* */ 2, 2});
    machine = make_machine(4, 4);
    check_chain(&plan, &machine, 1.5 + 16 + (2 + 2) + 1.5 + 16 + 2.5);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
}

/* Between nodes bytes follow each other out of a rank and into a rank. */
static void test_chain_on_the_wire(void **state)
{
    (void)state;
    const struct cpl_pattern_entry out[] = {MESSAGE(0, 1, 50), MESSAGE(0, 2, 60)};
    const struct cpl_pattern_entry in[] = {MESSAGE(0, 2, 50), MESSAGE(1, 2, 50)};
    struct cpl_machine machine = make_machine(3, 1);
    struct cpl_plan plan = plan_direct(3, out, N_OF(out));
    check_chain(&plan, &machine, 64 + 200 + 240 + 256 + 128);
    cpl_plan_free(&plan);
    plan = plan_direct(3, in, N_OF(in));
    check_chain(&plan, &machine, 64 + 200 + 256 + 200 + 128);
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
    check_chain(&plan, &machine, 1 + 16 + 2);
    machine.costs.link[CPL_LINK_SOCKET].latency_us = 1;
    check_chain(&plan, &machine, 4 * (1 + 2));
    machine.cores_per_node = 2;
    machine.costs.switch_us = 10;
    check_chain(&plan, &machine, 4 * (1 + 10 + 2) / 2);
    machine.cores_per_node = 4;
    check_chain(&plan, &machine, 1 + 1 + 10 + 2);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

/* Two messages of 8 bytes, sent at the same time, share both ports, of 10 us a byte, and arrive
 * together; with a third one of 2 bytes they take as long as all their bytes do. */
static void test_chain_shares_ports(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 3, 8), MESSAGE(1, 4, 8),
                                                MESSAGE(2, 5, 2)};
    struct cpl_plan plan = plan_direct(6, entries, 2);
    struct cpl_machine machine = make_machine(6, 3);
    machine.costs.node_ns_per_byte = 10000;
    check_chain(&plan, &machine, 64 + 256 + 16 * 10 + 128);
    cpl_plan_free(&plan);
    plan = plan_direct(6, entries, N_OF(entries));
    check_chain(&plan, &machine, 64 + 256 + 18 * 10 + 128);
    cpl_machine_free(&machine);
    cpl_plan_free(&plan);
}

#define NAIVE_RANKS 12

enum naive_stage { UNSENT, STARTING, SHARING, THERE, TAKEN };

/* The chain model again for ranks with a core each, in the simplest way: everything is looked for
 * everywhere. */
struct naive {
    const struct cpl_plan *plan;
    const struct cpl_machine *machine;
    double clock[NAIVE_RANKS], out[NAIVE_RANKS], in[NAIVE_RANKS]; /* of ranks */
    enum naive_stage stage[4000];                                 /* of each edge */
    double time[4000];             /* when it starts, or is there; when it has left its sender */
    double nothing;                /* bytes or microseconds that may come from rounding */
    int n_sharing[NAIVE_RANKS][2]; /* edges in the ports of each node, out and in */
    double left[4000][2];          /* bytes that it still has to share the ports for, out and in */
};

/* What packing takes, or what a receiver unpacks of it. */
static double naive_packing(const struct naive *n, const struct cpl_edge *edge, int receives)
{
    double us = 3;
    for (int32_t s = 0; s < edge->n_segments; s++) {
        const struct cpl_bundle *b = &n->plan->bundles[n->plan->segments[edge->first_segment + s]];
        int is_packed = !receives;
        for (int32_t d = 0; d < b->n_dests; d++)
            is_packed |= n->plan->dests[b->first_dest + d] == edge->to;
        us += is_packed * (0.5 + 0.25 * (double)b->volume);
    }
    return n->plan->n_waves > 1 ? us : 0;
}

static double naive_end(const struct naive *n, const struct cpl_edge *edge, double overhead)
{
    enum cpl_link_class link = cpl_machine_link(n->machine, edge->from, edge->to);
    double bytes = link == CPL_LINK_NETWORK ? 0 : (double)edge->volume;
    return overhead + bytes * plain_costs.link[link].ns_per_byte / 1000;
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
        n->clock[rank] += naive_packing(n, edge, 0);
        n->time[e] = n->clock[rank] += naive_end(n, edge, plain_costs.link[link].send_us);
        n->time[e] += plain_costs.link[link].latency_us;
        n->stage[e] = link == CPL_LINK_NETWORK ? STARTING : THERE;
    }
}

static double naive_later(double a, double b)
{
    return a > b ? a : b;
}

static void naive_start(struct naive *n, int64_t e)
{
    const struct cpl_edge *edge = &n->plan->edges[e];
    double *out = &n->out[edge->from];
    *out = naive_later(*out, n->time[e]) + (double)edge->volume * 4;
    n->time[e] = *out;
    n->left[e][0] = n->left[e][1] = (double)edge->volume;
    n->stage[e] = SHARING;
}

static int32_t naive_port(const struct naive *n, int64_t e, int in)
{
    const struct cpl_edge *edge = &n->plan->edges[e];
    return n->machine->node[in ? edge->to : edge->from];
}

/* Counts the edges in each port. */
static void naive_count(struct naive *n)
{
    memset(n->n_sharing, 0, sizeof n->n_sharing);
    for (int64_t e = 0; e < n->plan->n_edges; e++)
        for (int in = 0; in < 2 && n->stage[e] == SHARING; in++)
            n->n_sharing[naive_port(n, e, in)][in] += n->left[e][in] > n->nothing;
}

/* The time that a byte of an edge takes in a port now. */
static double naive_rate(const struct naive *n, int64_t e, int in)
{
    return n->n_sharing[naive_port(n, e, in)][in] * n->machine->costs.node_ns_per_byte * 1e-3;
}

static int naive_shared(const struct naive *n, int64_t e)
{
    return n->left[e][0] <= n->nothing && n->left[e][1] <= n->nothing;
}

/* How long nothing happens to an edge that shares ports but that it shares them. */
static double naive_share_us(const struct naive *n, int64_t e)
{
    double us = INFINITY;
    for (int in = 0; in < 2; in++)
        if (n->left[e][in] > n->nothing)
            us = fmin(us, n->left[e][in] * naive_rate(n, e, in));
    return us;
}

/* Lets all edges share their ports for so long. */
static void naive_share(struct naive *n, double us)
{
    for (int64_t e = 0; e < n->plan->n_edges; e++)
        for (int in = 0; in < 2 && n->stage[e] == SHARING; in++) {
            double rate = naive_rate(n, e, in);
            n->left[e][in] = rate > 0 ? n->left[e][in] - us / rate : 0;
        }
}

static void naive_enter(struct naive *n, int64_t e, double now)
{
    const struct cpl_edge *edge = &n->plan->edges[e];
    double *in = &n->in[edge->to];
    *in = naive_later(*in + (double)edge->volume * 4, naive_later(now, n->time[e]));
    n->time[e] = *in;
    n->stage[e] = THERE;
}

/* Whether an edge is there for a rank now. */
static int naive_waits(const struct naive *n, int64_t e, int32_t rank, double now)
{
    return n->plan->edges[e].to == rank && n->stage[e] == THERE && n->time[e] <= now + n->nothing;
}

/* A rank takes in all that is there for it. */
static void naive_wake(struct naive *n, int32_t rank, double now)
{
    static int is_taken[4000];
    n->clock[rank] = naive_later(n->clock[rank], now);
    for (int64_t e = 0; e < n->plan->n_edges; e++) {
        const struct cpl_edge *edge = &n->plan->edges[e];
        is_taken[e] = naive_waits(n, e, rank, now);
        if (is_taken[e])
            n->clock[rank] += naive_end(
                n, edge, plain_costs.link[cpl_machine_link(n->machine, edge->from, rank)].recv_us);
    }
    for (int64_t e = 0; e < n->plan->n_edges; e++) {
        if (!is_taken[e])
            continue;
        n->stage[e] = TAKEN;
        naive_send(n, rank);
        n->clock[rank] += naive_packing(n, &n->plan->edges[e], 1);
    }
}

/* When something happens to an edge next, if nothing else does before. */
static double naive_due(const struct naive *n, int64_t e, double now)
{
    if (n->stage[e] == UNSENT || n->stage[e] == TAKEN)
        return INFINITY;
    if (n->stage[e] == THERE)
        return naive_later(n->time[e], n->clock[n->plan->edges[e].to]);
    if (n->stage[e] == STARTING)
        return n->time[e];
    return naive_shared(n, e) ? now : now + naive_share_us(n, e);
}

/* The edge to which something happens next, and when; -1: none. Of what happens at the same time
 * ranks take in last. */
static int64_t naive_next(struct naive *n, double now, double *us)
{
    int64_t next = -1;
    naive_count(n);
    *us = INFINITY;
    for (int there = 0; there < 2; there++)
        for (int64_t e = 0; e < n->plan->n_edges; e++) {
            double due = (n->stage[e] == THERE) == there ? naive_due(n, e, now) : INFINITY;
            if (due < *us - (next < 0 ? 0 : n->nothing)) {
                next = e;
                *us = due;
            }
        }
    return next;
}

static double naive_chain(const struct cpl_plan *plan, const struct cpl_machine *machine)
{
    static struct naive n;
    n = (struct naive){.plan = plan, .machine = machine};
    assert_true(plan->n_ranks <= NAIVE_RANKS && plan->n_edges <= 4000);
    for (int32_t i = 0; i < plan->n_ranks; i++)
        naive_send(&n, i);
    double now = 0, due, last = 0;
    for (int64_t e = naive_next(&n, now, &due); e >= 0; e = naive_next(&n, now, &due)) {
        naive_share(&n, due - now);
        now = due;
        n.nothing = 1e-9 * (1 + now);
        if (n.stage[e] == STARTING)
            naive_start(&n, e);
        else if (n.stage[e] == THERE)
            naive_wake(&n, plan->edges[e].to, now);
        else if (naive_shared(&n, e))
            naive_enter(&n, e, now);
    }
    for (int32_t i = 0; i < plan->n_ranks; i++)
        last = naive_later(last, n.clock[i]);
    return last;
}

/* Times up to the limit are told, longer ones exactly or not at all. */
static void check_limits(const struct cpl_plan *plan, const struct cpl_machine *machine)
{
    static const double parts[] = {0, 0.3, 0.9, 1, 1.2};
    double us = 0;
    assert_int_equal(cpl_plan_chain_cost(plan, machine, 1, &us, NULL), CPL_OK);
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        double told_us = -1;
        int64_t n_events = -1;
        assert_int_equal(
            cpl_plan_chain_below(plan, machine, 1, parts[k] * us, &told_us, &n_events, NULL),
            CPL_OK);
        assert_true(n_events > 0 || isinf(told_us) || plan->n_edges == 0);
        if (parts[k] >= 1 || !isinf(told_us))
            assert_true(told_us >= us && told_us <= us);
        if (parts[k] == 0 && us > 0)
            assert_true(isinf(told_us));
    }
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
        machine.costs.combined_ns = 3000;
        machine.costs.packed_ns_per_byte = 250;
        check_chain(&plan, &machine, naive_chain(&plan, &machine));
        check_limits(&plan, &machine);
        assert_int_equal(cpl_plan_chain_cost(&plan, &machine, 0, &us, NULL), CPL_OK);
        n_with_messages += us > 0;
        cpl_machine_free(&machine);
        cpl_plan_free(&plan);
        cpl_pattern_free(&pattern);
    }
    assert_true(n_with_messages > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain_links),
        cmocka_unit_test(test_chain_lanes),
        cmocka_unit_test(test_chain_of_two),
        cmocka_unit_test(test_chain_without_barrier),
        cmocka_unit_test(test_chain_sends_what_is_ready),
        cmocka_unit_test(test_chain_receives_in_turn),
        cmocka_unit_test(test_chain_on_the_wire),
        cmocka_unit_test(test_chain_shares_cores),
        cmocka_unit_test(test_chain_shares_ports),
        cmocka_unit_test(test_chain_of_random_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
