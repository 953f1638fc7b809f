/* The chain model (plan.h, cpl_plan_chain_cost): ranks that send and receive without any barrier
 * between the waves, simulated event by event (machine.h has the parameters; LogGP).
 *
 * A rank has one processor. It starts with the edges that wait for nothing, in the plan's order.
 * Then, whenever it is free, it receives all messages that have arrived; for each in turn it sends
 * the edges that waited only for that message, and unpacks its own segments, as the executor does
 * (shim/carry/executor.c); a sender packs all segments of a message, but for a plan of one wave.
 * Inside a node a processor copies the bytes at each end. Between nodes messages share the ports of
 * the sender's and the receiver's node: each message under way gets the same part of a port.
 * Messages out of a rank, and those into a rank, follow each other. A message that finds all of
 * these free is slowed down only by the slowest. Of equal events at the same time the lower number
 * comes first.
 *
 * Cores that the ranks of a node share are not simulated but counted: where a node has fewer cores
 * than ranks, the exchange takes at least the processor time of its ranks divided by its cores; a
 * rank there that had to wait for a message pays a switch. O(segments + edges log edges). */
#include "planner/plan/plan_internal.h"

#include "planner/base/heap.h"

#include <stdbool.h>
#include <string.h>

enum happening {
    STARTS,     /* an edge's bytes reach the ports of both nodes */
    IS_THROUGH, /* a port has served the first of its edges */
    IS_THERE,   /* an edge has arrived */
    WAKES,      /* a rank takes in what has arrived */
};

/* An event. In a port: an edge is through when the port has served each of its edges `at` bytes. */
struct event {
    double at;      /* microseconds; in a port bytes */
    int64_t number; /* of an edge, of a port, or of a rank */
    enum happening what;
    int32_t version; /* of a port's state: another one has made the event void */
};

struct heap {
    struct event *event; /* the first one on top */
    int64_t n;
};

/* One direction of a node's way to the network. All edges in it are served alike. */
struct port {
    double bytes; /* bytes that the port has served an edge which was there since the port was last
                     empty */
    double us;    /* as of then */
    int32_t version;
    struct heap edges; /* the next that will be through on top */
};

struct rank_state {
    double clock_us; /* when its processor is free */
    double busy_us;  /* what it has worked in all */
    double out_us;   /* when its wire to the network is free, out and in */
    double in_us;
    int64_t arrived; /* first of the arrived edges that the rank has not received, a list by
                        c->next; -1: none */
};

/* An out-edge that waits for an in-edge, in a list of all that do. */
struct feed {
    int64_t edge;
    int64_t next; /* in chain.feeds; -1: the last */
};

/* The most events of an edge: one for each port that it joined, even if void, and one for its
 * arrival. */
#define EVENTS_OF_AN_EDGE 3

struct chain {
    const struct cpl_plan *plan;
    const struct cpl_machine *machine;
    double unit_bytes;
    struct feed *feeds;
    int64_t n_feeds;
    int64_t *first_feed; /* edge -> the first that waits for it, in feeds; -1: none */
    int32_t *missing;    /* edge -> edges that its sender still waits for */
    int8_t *n_through;   /* edge -> ports that it has passed, of two */
    double *out_us;      /* edge -> when its bytes have left its sender */
    int64_t *next;       /* edge -> the next that has arrived at the same rank; -1: none */
    struct rank_state *rank;
    struct port *port; /* of node j: 2 j out, 2 j + 1 in */
    struct heap heap;
};

static bool sooner(const struct event *a, const struct event *b)
{
    if (a->at < b->at || a->at > b->at)
        return a->at < b->at;
    return a->what != b->what ? a->what < b->what : a->number < b->number;
}

CPL_HEAP(events, struct event, sooner)

static void push(struct heap *heap, struct event event)
{
    events_push(heap->event, heap->n++, event);
}

static struct event pop(struct heap *heap)
{
    return events_pop(heap->event, heap->n--);
}

/* Groups edge numbers by one end: first[i] .. first[i + 1] - 1 of grouped are rank i's. */
static void group_edges(const struct cpl_plan *plan, bool by_receiver, int64_t *first,
                        int64_t *grouped)
{
    int64_t *next = first + 1; /* shifted by one while filling, so that first ends up right */
    for (int64_t e = 0; e < plan->n_edges; e++)
        next[(by_receiver ? plan->edges[e].to : plan->edges[e].from) + 1]++;
    for (int32_t i = 0; i < plan->n_ranks; i++)
        next[i + 1] += next[i];
    for (int64_t e = 0; e < plan->n_edges; e++)
        grouped[next[by_receiver ? plan->edges[e].to : plan->edges[e].from]++] = e;
}

/* Edge e of rank i waits for every edge that brings i one of its bundles; by[b] is the edge that
 * brought bundle b to the last rank that was looked at, waits[k] the last edge that waits for k. */
static void find_feeds(struct chain *c, int64_t e, int32_t i, const int64_t *by, int64_t *waits)
{
    const struct cpl_plan *plan = c->plan;
    const struct cpl_edge *edge = &plan->edges[e];
    for (int32_t s = 0; s < edge->n_segments; s++) {
        int64_t source = by[plan->segments[edge->first_segment + s]];
        if (source < 0 || plan->edges[source].to != i || waits[source] == e)
            continue;
        waits[source] = e;
        c->feeds[c->n_feeds] = (struct feed){e, c->first_feed[source]};
        c->first_feed[source] = c->n_feeds++;
        c->missing[e]++;
    }
}

/* Finds which edges wait for which. Lists are filled from the front, so from the last edge on. */
static enum cpl_status find_all_feeds(struct chain *c, const int64_t *out_first, const int64_t *out,
                                      struct cpl_arena *scratch)
{
    const struct cpl_plan *plan = c->plan;
    int64_t *in_first = CPL_ARENA_ARRAY(scratch, int64_t, (size_t)plan->n_ranks + 2);
    int64_t *in = CPL_ARENA_ARRAY(scratch, int64_t, plan->n_edges);
    int64_t *by = CPL_ARENA_ARRAY(scratch, int64_t, plan->n_bundles);
    int64_t *waits = CPL_ARENA_ARRAY(scratch, int64_t, plan->n_edges);
    if (!in_first || !in || !by || !waits)
        return CPL_ERR_NOMEM;
    group_edges(plan, true, in_first, in);
    for (int64_t b = 0; b < plan->n_bundles; b++)
        by[b] = -1;
    for (int64_t e = 0; e < plan->n_edges; e++)
        waits[e] = c->first_feed[e] = -1;
    for (int32_t i = 0; i < plan->n_ranks; i++) {
        for (int64_t k = in_first[i]; k < in_first[i + 1]; k++) {
            const struct cpl_edge *edge = &plan->edges[in[k]];
            for (int32_t s = 0; s < edge->n_segments; s++)
                by[plan->segments[edge->first_segment + s]] = in[k];
        }
        for (int64_t k = out_first[i + 1]; k > out_first[i]; k--)
            find_feeds(c, out[k - 1], i, by, waits);
    }
    return CPL_OK;
}

static enum cpl_link_class link_class(const struct chain *c, const struct cpl_edge *edge)
{
    return cpl_machine_link(c->machine, edge->from, edge->to);
}

static double edge_bytes(const struct chain *c, const struct cpl_edge *edge)
{
    return (double)edge->volume * c->unit_bytes;
}

static double packing_us(const struct chain *c, const struct cpl_edge *edge, bool sends)
{
    const struct cpl_plan *plan = c->plan;
    const struct cpl_costs *costs = &c->machine->costs;
    double us = costs->combined_ns * 1e-3, volume = 0;
    if (plan->n_waves == 1)
        return 0;
    for (int32_t s = 0; s < edge->n_segments; s++) {
        const struct cpl_bundle *bundle = &plan->bundles[plan->segments[edge->first_segment + s]];
        if (!sends && !cpl_plan_is_dest(plan, bundle, edge->to))
            continue;
        us += cpl_segment_us(costs, plan->has_parts, (double)bundle->volume);
        volume += (double)bundle->volume;
    }
    return us + volume * c->unit_bytes * costs->packed_ns_per_byte * 1e-3;
}

/* Processor time that MPI takes at one end of an edge. */
static double end_us(const struct chain *c, const struct cpl_edge *edge, bool sends)
{
    enum cpl_link_class class_ = link_class(c, edge);
    const struct cpl_link_cost *link = cpl_machine_edge_cost(c->machine, class_);
    double ns_per_byte = class_ == CPL_LINK_NETWORK ? 0 : link->ns_per_byte;
    return (sends ? link->send_us : link->recv_us) + edge_bytes(c, edge) * ns_per_byte * 1e-3;
}

static void work(struct rank_state *rank, double us)
{
    rank->clock_us += us;
    rank->busy_us += us;
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

static void send(struct chain *c, int64_t e)
{
    const struct cpl_edge *edge = &c->plan->edges[e];
    struct rank_state *rank = &c->rank[edge->from];
    enum cpl_link_class class_ = link_class(c, edge);
    const struct cpl_link_cost *link = cpl_machine_edge_cost(c->machine, class_);
    work(rank, packing_us(c, edge, true) + end_us(c, edge, true));
    push(&c->heap, (struct event){rank->clock_us + link->latency_us, e,
                                  class_ == CPL_LINK_NETWORK ? STARTS : IS_THERE, 0});
}

/* Adds the event at which a port, in its present state, will be through with its first edge. */
static void foresee(struct chain *c, int64_t p)
{
    struct port *port = &c->port[p];
    port->version++;
    if (port->edges.n == 0)
        return;
    double us_per_byte = c->machine->costs.node_ns_per_byte * 1e-3 * (double)port->edges.n;
    double us = port->us + (port->edges.event[0].at - port->bytes) * us_per_byte;
    push(&c->heap, (struct event){later(us, port->us), p, IS_THROUGH, port->version});
}

/* An edge's bytes reach a port. */
static void join(struct chain *c, int64_t p, int64_t e, double us)
{
    struct port *port = &c->port[p];
    double us_per_byte = c->machine->costs.node_ns_per_byte * 1e-3 * (double)port->edges.n;
    if (port->edges.n == 0)
        port->bytes = 0;
    else if (us_per_byte > 0)
        port->bytes += (us - port->us) / us_per_byte;
    port->us = us;
    push(&port->edges,
         (struct event){port->bytes + edge_bytes(c, &c->plan->edges[e]), e, IS_THROUGH, 0});
    foresee(c, p);
}

/* Bytes that find all ways free. */
static void start(struct chain *c, const struct event *event)
{
    const struct cpl_edge *edge = &c->plan->edges[event->number];
    double us = edge_bytes(c, edge) * c->machine->costs.link[CPL_LINK_NETWORK].ns_per_byte * 1e-3;
    double *out_us = &c->rank[edge->from].out_us;
    *out_us = later(event->at, *out_us) + us;
    c->out_us[event->number] = *out_us;
    join(c, 2 * (int64_t)c->machine->node[edge->from], event->number, event->at);
    join(c, 2 * (int64_t)c->machine->node[edge->to] + 1, event->number, event->at);
}

/* The last byte of an edge that is through both ports is there if the ways of its ranks are free.
 */
static void pass(struct chain *c, const struct event *event)
{
    struct port *port = &c->port[event->number];
    if (event->version != port->version)
        return;
    struct event through = pop(&port->edges);
    port->bytes = through.at;
    port->us = event->at;
    foresee(c, event->number);
    if (++c->n_through[through.number] < 2)
        return;
    const struct cpl_edge *edge = &c->plan->edges[through.number];
    double us = edge_bytes(c, edge) * c->machine->costs.link[CPL_LINK_NETWORK].ns_per_byte * 1e-3;
    double *in_us = &c->rank[edge->to].in_us;
    *in_us = later(later(event->at, c->out_us[through.number]), *in_us + us);
    push(&c->heap, (struct event){*in_us, through.number, IS_THERE, 0});
}

/* An edge has arrived; its receiver wakes if it waits, else when it looks again. */
static void arrive(struct chain *c, const struct event *event)
{
    int32_t to = c->plan->edges[event->number].to;
    struct rank_state *rank = &c->rank[to];
    if (rank->arrived < 0)
        push(&c->heap, (struct event){later(event->at, rank->clock_us), to, WAKES, 0});
    c->next[event->number] = rank->arrived;
    rank->arrived = event->number;
}

/* Merges two lists of edges, each in the order of numbers. */
static int64_t merge(struct chain *c, int64_t a, int64_t b)
{
    int64_t first = -1, *end = &first;
    while (a >= 0 && b >= 0) {
        int64_t *lower = a < b ? &a : &b;
        *end = *lower;
        end = &c->next[*lower];
        *lower = *end;
    }
    *end = a >= 0 ? a : b;
    return first;
}

/* Brings a list of edges into the order of numbers: run[k] is empty or has 2^k of them. */
static int64_t sort(struct chain *c, int64_t list)
{
    int64_t run[64], sorted = -1;
    int n = 0;
    while (list >= 0) {
        int64_t one = list;
        int k = 0;
        list = c->next[one];
        c->next[one] = -1;
        for (; k < n && run[k] >= 0; k++) {
            one = merge(c, run[k], one);
            run[k] = -1;
        }
        n = k == n ? n + 1 : n;
        run[k] = one;
    }
    for (int k = 0; k < n; k++)
        sorted = merge(c, run[k], sorted);
    return sorted;
}

/* A rank receives all edges that have arrived. For each in turn it sends the edges that waited only
 * for that one, and unpacks its own segments. */
static void wake(struct chain *c, const struct event *event)
{
    const struct cpl_edge *edges = c->plan->edges;
    struct rank_state *rank = &c->rank[event->number];
    int64_t arrived = sort(c, rank->arrived);
    rank->arrived = -1;
    if (event->at > rank->clock_us) {
        rank->clock_us = event->at;
        if (c->machine->cores_per_node > 0)
            work(rank, c->machine->costs.switch_us);
    }
    for (int64_t e = arrived; e >= 0; e = c->next[e])
        work(rank, end_us(c, &edges[e], false));
    for (int64_t e = arrived; e >= 0; e = c->next[e]) {
        for (int64_t f = c->first_feed[e]; f >= 0; f = c->feeds[f].next)
            if (--c->missing[c->feeds[f].edge] == 0)
                send(c, c->feeds[f].edge);
        work(rank, packing_us(c, &edges[e], false));
    }
}

/* The least time of the busiest node whose ranks share cores. */
static enum cpl_status cores_us(const struct chain *c, struct cpl_arena *arena, double *us)
{
    const struct cpl_machine *machine = c->machine;
    *us = 0;
    if (machine->cores_per_node <= 0)
        return CPL_OK;
    double *busy_us = CPL_ARENA_ARRAY(arena, double, machine->n_nodes);
    if (!busy_us)
        return CPL_ERR_NOMEM;
    for (int32_t i = 0; i < machine->n_ranks; i++) {
        double *node_us = &busy_us[machine->node[i]];
        *node_us += c->rank[i].busy_us;
        *us = later(*us, *node_us / machine->cores_per_node);
    }
    return CPL_OK;
}

static void simulate(struct chain *c, const int64_t *out_first, const int64_t *out)
{
    for (int32_t i = 0; i < c->plan->n_ranks; i++)
        c->rank[i].arrived = -1;
    /* all of these at first, then only what arrivals make ready: counts change below */
    for (int64_t k = 0; k < out_first[c->plan->n_ranks]; k++)
        if (c->missing[out[k]] == 0)
            send(c, out[k]);
    while (c->heap.n > 0) {
        struct event event = pop(&c->heap);
        if (event.what == STARTS)
            start(c, &event);
        else if (event.what == IS_THROUGH)
            pass(c, &event);
        else if (event.what == IS_THERE)
            arrive(c, &event);
        else
            wake(c, &event);
    }
}

/* Room for all edges that a port may have at once. */
static enum cpl_status make_ports(struct chain *c, struct cpl_arena *arena)
{
    const struct cpl_plan *plan = c->plan;
    int64_t n_ports = 2 * (int64_t)c->machine->n_nodes, n = 0;
    c->port = CPL_ARENA_ARRAY(arena, struct port, n_ports);
    struct event *edges = CPL_ARENA_ARRAY(arena, struct event, 2 * plan->n_edges);
    if (!c->port || !edges)
        return CPL_ERR_NOMEM;
    for (int64_t e = 0; e < plan->n_edges; e++) {
        c->port[2 * (int64_t)c->machine->node[plan->edges[e].from]].edges.n++;
        c->port[2 * (int64_t)c->machine->node[plan->edges[e].to] + 1].edges.n++;
    }
    for (int64_t p = 0; p < n_ports; p++) {
        c->port[p].edges.event = edges + n;
        n += c->port[p].edges.n;
        c->port[p].edges.n = 0;
    }
    return CPL_OK;
}

static enum cpl_status run(struct chain *c, struct cpl_arena *arena, double *us)
{
    const struct cpl_plan *plan = c->plan;
    int64_t *out_first = CPL_ARENA_ARRAY(arena, int64_t, (size_t)plan->n_ranks + 2);
    int64_t *out = CPL_ARENA_ARRAY(arena, int64_t, plan->n_edges);
    c->feeds = CPL_ARENA_ARRAY(arena, struct feed, plan->n_segments);
    c->first_feed = CPL_ARENA_ARRAY(arena, int64_t, plan->n_edges);
    c->missing = CPL_ARENA_ARRAY(arena, int32_t, plan->n_edges);
    c->rank = CPL_ARENA_ARRAY(arena, struct rank_state, plan->n_ranks);
    c->n_through = CPL_ARENA_ARRAY(arena, int8_t, plan->n_edges);
    c->out_us = CPL_ARENA_ARRAY(arena, double, plan->n_edges);
    c->next = CPL_ARENA_ARRAY(arena, int64_t, plan->n_edges);
    c->heap.event =
        CPL_ARENA_ARRAY(arena, struct event, EVENTS_OF_AN_EDGE * plan->n_edges + plan->n_ranks);
    if (!out_first || !out || !c->feeds || !c->first_feed || !c->missing || !c->rank ||
        !c->n_through || !c->out_us || !c->next || !c->heap.event || make_ports(c, arena))
        return CPL_ERR_NOMEM;
    group_edges(plan, false, out_first, out);
    enum cpl_status status = find_all_feeds(c, out_first, out, arena);
    if (status)
        return status;
    simulate(c, out_first, out);
    status = cores_us(c, arena, us);
    for (int32_t i = 0; i < plan->n_ranks && !status; i++)
        *us = later(*us, c->rank[i].clock_us);
    return status;
}

enum cpl_status cpl_plan_chain_cost(const struct cpl_plan *plan, const struct cpl_machine *machine,
                                    double unit_bytes, double *microseconds,
                                    struct cpl_error *error)
{
    if (machine->n_ranks != plan->n_ranks)
        return cpl_fail(error, CPL_ERR_ARG, "a machine of %d ranks for a plan of %d",
                        machine->n_ranks, plan->n_ranks);
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct chain c = {.plan = plan, .machine = machine, .unit_bytes = unit_bytes};
    double us = 0;
    enum cpl_status status = run(&c, &arena, &us);
    cpl_arena_free(&arena);
    if (status)
        return cpl_fail_memory(error, "the chain model");
    *microseconds = us;
    return CPL_OK;
}
