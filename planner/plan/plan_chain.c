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
#include "planner/plan/chain_events.h"
#include "planner/plan/plan_internal.h"

#include "planner/base/heap.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* What happens, in the order in which it does when it is at the same time. */
enum happening {
    STARTS,     /* an edge's bytes reach the ports of both nodes */
    IS_THROUGH, /* a port has served the first of its edges */
    IS_THERE,   /* an edge has arrived */
    WAKES,      /* a rank takes in what has arrived */
};

/* An edge in a port: it is through when the port has served each of its edges so many bytes. */
struct passing {
    double bytes;
    int32_t edge;
};

/* One direction of a node's way to the network. All edges in it are served alike. */
struct port {
    double bytes;          /* bytes that the port has served an edge which was there since the port
                              was last empty */
    double us;             /* as of then */
    double through_us;     /* when it will be through with its first edge; INFINITY: it is empty */
    double event_us;       /* of its event, at this time or earlier; INFINITY: there is none */
    struct passing *edges; /* the next that will be through on top */
    int32_t n;
};

struct rank_state {
    double clock_us; /* when its processor is free */
    double busy_us;  /* what it has worked in all */
    double left_us;  /* what it still has to work */
    double out_us;   /* when its wire to the network is free, out and in */
    double in_us;
    int32_t arrived; /* first of the arrived edges that the rank has not received, a list by
                        `next`; -1: none */
};

/* An out-edge that waits for an in-edge, in a list of all that do. */
struct feed {
    int32_t edge;
    int32_t next; /* in chain.feeds; -1: the last */
};

/* All that an event has to know of an edge, in one line of the cache. */
struct chain_edge {
    int32_t from, to;
    double bytes;
    double send_us;     /* processor time of its sender */
    double recv_us;     /* of its receiver, before all that has arrived is received */
    double unpack_us;   /* and after that */
    double out_us;      /* when its bytes have left its sender */
    int32_t first_feed; /* the first that waits for it, in chain.feeds; -1: none */
    int32_t missing;    /* edges that its sender still waits for */
    int32_t next;       /* the next that has arrived at the same rank; -1: none */
    int8_t n_through;   /* ports that it has passed, of two */
    int8_t class_;      /* enum cpl_link_class */
};

/* The most events of an edge at once: one of its own, and one for each port that it joined. */
#define EVENTS_OF_AN_EDGE 3
#define MOST_EDGES        (INT32_MAX / 8)

/* Relative error of what ranks have left to do, which is counted down. */
#define ROUNDING 1e-9

struct chain {
    const struct cpl_plan *plan;
    const struct cpl_machine *machine;
    double unit_bytes;
    double limit_us;  /* the exchange is given up when it must take longer */
    int64_t n_events; /* played */
    bool is_over;     /* it has been given up */
    struct feed *feeds;
    int32_t n_feeds;
    struct chain_edge *edge;
    struct rank_state *rank;
    struct port *port; /* of node j: 2 j out, 2 j + 1 in */
    struct cpl_events events;
};

static bool passes_sooner(const struct passing *a, const struct passing *b)
{
    if (a->bytes < b->bytes || a->bytes > b->bytes)
        return a->bytes < b->bytes;
    return a->edge < b->edge;
}

CPL_HEAP(passings, struct passing, passes_sooner)

static void push(struct chain *c, double at, enum happening what, int32_t number)
{
    cpl_events_push(&c->events, (struct cpl_event){at, what, number});
}

/* Groups edge numbers by one end: first[i] .. first[i + 1] - 1 of grouped are rank i's. */
static void group_edges(const struct cpl_plan *plan, bool by_receiver, int32_t *first,
                        int32_t *grouped)
{
    int32_t *next = first + 1; /* shifted by one while filling, so that first ends up right */
    for (int64_t e = 0; e < plan->n_edges; e++)
        next[(by_receiver ? plan->edges[e].to : plan->edges[e].from) + 1]++;
    for (int32_t i = 0; i < plan->n_ranks; i++)
        next[i + 1] += next[i];
    for (int64_t e = 0; e < plan->n_edges; e++)
        grouped[next[by_receiver ? plan->edges[e].to : plan->edges[e].from]++] = (int32_t)e;
}

/* The edges into a rank, numbered among all edges grouped by receiver. */
struct inward {
    int32_t begin, end; /* their numbers */
    const int32_t *edge;
    int32_t *by;    /* bundle -> number of the edge that brought it to the last rank that was looked
                       at and that it came to; -1: to none */
    int32_t *waits; /* number -> the last edge that waits for it; -1: none */
};

/* Edge e waits for every edge into its sender that brings one of its bundles. */
static void find_feeds(struct chain *c, int32_t e, const struct inward *in)
{
    const struct cpl_edge *edge = &c->plan->edges[e];
    const int32_t *segments = c->plan->segments + edge->first_segment;
    for (int32_t s = 0; s < edge->n_segments; s++) {
        int32_t k = in->by[segments[s]];
        if (k < in->begin || k >= in->end || in->waits[k] == e)
            continue;
        in->waits[k] = e;
        struct chain_edge *source = &c->edge[in->edge[k]];
        c->feeds[c->n_feeds] = (struct feed){e, source->first_feed};
        source->first_feed = c->n_feeds++;
        c->edge[e].missing++;
    }
}

/* Finds which edges wait for which. Lists are filled from the front, so from the last edge on. */
static enum cpl_status find_all_feeds(struct chain *c, const int32_t *out_first, const int32_t *out,
                                      struct cpl_arena *scratch)
{
    const struct cpl_plan *plan = c->plan;
    int32_t *in_first = CPL_ARENA_ARRAY(scratch, int32_t, (size_t)plan->n_ranks + 2);
    int32_t *edges = CPL_ARENA_ARRAY(scratch, int32_t, plan->n_edges);
    struct inward in = {.edge = edges,
                        .by = CPL_ARENA_ARRAY(scratch, int32_t, plan->n_bundles),
                        .waits = CPL_ARENA_ARRAY(scratch, int32_t, plan->n_edges)};
    if (!in_first || !edges || !in.by || !in.waits)
        return CPL_ERR_NOMEM;
    group_edges(plan, true, in_first, edges);
    memset(in.by, -1, (size_t)plan->n_bundles * sizeof *in.by);
    memset(in.waits, -1, (size_t)plan->n_edges * sizeof *in.waits);
    for (int32_t i = 0; i < plan->n_ranks; i++) {
        in.begin = in_first[i];
        in.end = in_first[i + 1];
        if (in.begin == in.end || out_first[i] == out_first[i + 1])
            continue;
        for (int32_t k = in.begin; k < in.end; k++) {
            const struct cpl_edge *edge = &plan->edges[edges[k]];
            for (int32_t s = 0; s < edge->n_segments; s++)
                in.by[plan->segments[edge->first_segment + s]] = k;
        }
        for (int32_t k = out_first[i + 1]; k > out_first[i]; k--)
            find_feeds(c, out[k - 1], &in);
    }
    return CPL_OK;
}

/* What packing or unpacking takes: count[n] microseconds for n segments without their bytes. */
struct packing {
    const double *count;
    const int32_t *only_dest; /* bundle -> its destination; -1: it has several */
};

/* Processor time for packing an edge's segments, or for unpacking those that are for its receiver.
 */
static double packing_us(const struct chain *c, const struct packing *packing,
                         const struct cpl_edge *edge, bool sends)
{
    const struct cpl_plan *plan = c->plan;
    const struct cpl_costs *costs = &c->machine->costs;
    double us = costs->combined_ns * 1e-3;
    int64_t volume = 0;
    int32_t n = 0;
    if (plan->n_waves == 1)
        return 0;
    if (sends && !plan->has_parts)
        return packing->count[edge->n_segments] +
               (double)edge->volume * c->unit_bytes * costs->packed_ns_per_byte * 1e-3;
    for (int32_t s = 0; s < edge->n_segments; s++) {
        int32_t b = plan->segments[edge->first_segment + s], only = packing->only_dest[b];
        const struct cpl_bundle *bundle = &plan->bundles[b];
        if (!sends && only != edge->to && (only >= 0 || !cpl_plan_is_dest(plan, bundle, edge->to)))
            continue;
        if (plan->has_parts)
            us += cpl_segment_us(costs, true, (double)bundle->volume);
        volume += bundle->volume;
        n++;
    }
    return (plan->has_parts ? us : packing->count[n]) +
           (double)volume * c->unit_bytes * costs->packed_ns_per_byte * 1e-3;
}

/* The times of any number of segments, and the destinations of bundles. */
static enum cpl_status prepare_packing(const struct chain *c, struct packing *packing,
                                       struct cpl_arena *scratch)
{
    const struct cpl_plan *plan = c->plan;
    int32_t most = 0;
    for (int64_t e = 0; e < plan->n_edges; e++)
        most = plan->edges[e].n_segments > most ? plan->edges[e].n_segments : most;
    double *count = CPL_ARENA_ARRAY(scratch, double, (size_t)most + 1);
    int32_t *only = CPL_ARENA_ARRAY(scratch, int32_t, plan->n_bundles);
    if (!count || !only)
        return CPL_ERR_NOMEM;
    double segment_us = cpl_segment_us(&c->machine->costs, false, 0);
    count[0] = c->machine->costs.combined_ns * 1e-3;
    for (int32_t n = 1; n <= most; n++)
        count[n] = count[n - 1] + segment_us;
    for (int64_t b = 0; b < plan->n_bundles; b++)
        only[b] = plan->bundles[b].n_dests == 1 ? plan->dests[plan->bundles[b].first_dest] : -1;
    *packing = (struct packing){count, only};
    return CPL_OK;
}

/* Writes what events have to know of the edges. */
static enum cpl_status make_edges(struct chain *c, struct cpl_arena *scratch)
{
    const struct cpl_plan *plan = c->plan;
    const struct cpl_machine *machine = c->machine;
    struct packing packing;
    if (prepare_packing(c, &packing, scratch))
        return CPL_ERR_NOMEM;
    for (int64_t e = 0; e < plan->n_edges; e++) {
        const struct cpl_edge *edge = &plan->edges[e];
        enum cpl_link_class class_ = cpl_machine_link(machine, edge->from, edge->to);
        const struct cpl_link_cost *link = cpl_machine_edge_cost(machine, class_);
        double bytes = (double)edge->volume * c->unit_bytes;
        double bytes_us = bytes * (class_ == CPL_LINK_NETWORK ? 0 : link->ns_per_byte) * 1e-3;
        struct chain_edge *made = &c->edge[e];
        *made = (struct chain_edge){.from = edge->from,
                                    .to = edge->to,
                                    .bytes = bytes,
                                    .send_us = packing_us(c, &packing, edge, true) +
                                               (link->send_us + bytes_us),
                                    .recv_us = link->recv_us + bytes_us,
                                    .unpack_us = packing_us(c, &packing, edge, false),
                                    .first_feed = -1,
                                    .class_ = (int8_t)class_};
        c->rank[edge->from].left_us += made->send_us;
        c->rank[edge->to].left_us += made->recv_us + made->unpack_us;
    }
    return CPL_OK;
}

static void work(struct rank_state *rank, double us)
{
    rank->clock_us += us;
    rank->busy_us += us;
    rank->left_us -= us;
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

static void send(struct chain *c, int32_t e)
{
    const struct chain_edge *edge = &c->edge[e];
    struct rank_state *rank = &c->rank[edge->from];
    enum cpl_link_class class_ = (enum cpl_link_class)edge->class_;
    work(rank, edge->send_us);
    double us = rank->clock_us + cpl_machine_edge_cost(c->machine, class_)->latency_us;
    push(c, us, class_ == CPL_LINK_NETWORK ? STARTS : IS_THERE, e);
}

/* Foresees when a port, in its present state, will be through with its first edge. Its event may
 * be earlier: then it is put off when it comes. */
static void foresee(struct chain *c, int32_t p)
{
    struct port *port = &c->port[p];
    port->through_us = INFINITY;
    if (port->n == 0)
        return;
    double us_per_byte = c->machine->costs.node_ns_per_byte * 1e-3 * (double)port->n;
    double us = port->us + (port->edges[0].bytes - port->bytes) * us_per_byte;
    port->through_us = later(us, port->us);
    if (port->through_us < port->event_us) {
        port->event_us = port->through_us;
        push(c, port->event_us, IS_THROUGH, p);
    }
}

/* An edge's bytes reach a port. */
static void join(struct chain *c, int32_t p, int32_t e, double us)
{
    struct port *port = &c->port[p];
    double us_per_byte = c->machine->costs.node_ns_per_byte * 1e-3 * (double)port->n;
    if (port->n == 0)
        port->bytes = 0;
    else if (us_per_byte > 0)
        port->bytes += (us - port->us) / us_per_byte;
    port->us = us;
    passings_push(port->edges, port->n++, (struct passing){port->bytes + c->edge[e].bytes, e});
    foresee(c, p);
}

/* What an edge takes on a rank's own wire to the network. */
static double wire_us(const struct chain *c, const struct chain_edge *edge)
{
    return edge->bytes * c->machine->costs.link[CPL_LINK_NETWORK].ns_per_byte * 1e-3;
}

/* Bytes that find all ways free. */
static void start(struct chain *c, const struct cpl_event *event)
{
    struct chain_edge *edge = &c->edge[event->number];
    double *out_us = &c->rank[edge->from].out_us;
    *out_us = later(event->at, *out_us) + wire_us(c, edge);
    edge->out_us = *out_us;
    join(c, 2 * c->machine->node[edge->from], event->number, event->at);
    join(c, 2 * c->machine->node[edge->to] + 1, event->number, event->at);
}

/* The last byte of an edge that is through both ports is there if the ways of its ranks are free.
 */
static void pass(struct chain *c, const struct cpl_event *event)
{
    struct port *port = &c->port[event->number];
    if (event->at > port->event_us || event->at < port->event_us)
        return; /* an earlier event has taken its place */
    port->event_us = INFINITY;
    if (port->through_us > event->at) {
        if (port->n > 0) {
            port->event_us = port->through_us;
            push(c, port->event_us, IS_THROUGH, event->number);
        }
        return;
    }
    struct passing through = passings_pop(port->edges, port->n--);
    port->bytes = through.bytes;
    port->us = event->at;
    foresee(c, event->number);
    struct chain_edge *edge = &c->edge[through.edge];
    if (++edge->n_through < 2)
        return;
    double *in_us = &c->rank[edge->to].in_us;
    *in_us = later(later(event->at, edge->out_us), *in_us + wire_us(c, edge));
    push(c, *in_us, IS_THERE, through.edge);
}

/* An edge has arrived; its receiver wakes if it waits, else when it looks again. */
static void arrive(struct chain *c, const struct cpl_event *event)
{
    struct chain_edge *edge = &c->edge[event->number];
    struct rank_state *rank = &c->rank[edge->to];
    if (rank->arrived < 0)
        push(c, later(event->at, rank->clock_us), WAKES, edge->to);
    edge->next = rank->arrived;
    rank->arrived = event->number;
}

/* Merges two lists of edges, each in the order of numbers. */
static int32_t merge(struct chain *c, int32_t a, int32_t b)
{
    int32_t first = -1, *end = &first;
    while (a >= 0 && b >= 0) {
        int32_t *lower = a < b ? &a : &b;
        *end = *lower;
        end = &c->edge[*lower].next;
        *lower = *end;
    }
    *end = a >= 0 ? a : b;
    return first;
}

/* Brings a list of edges into the order of numbers: run[k] is empty or has 2^k of them. */
static int32_t sort(struct chain *c, int32_t list)
{
    int32_t run[32], sorted = -1;
    int n = 0;
    while (list >= 0) {
        int32_t one = list;
        int k = 0;
        list = c->edge[one].next;
        c->edge[one].next = -1;
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

/* A rank that has waited is done no earlier than after all that it has left to do. */
static void give_up_late(struct chain *c, const struct rank_state *rank)
{
    c->is_over |= rank->clock_us + rank->left_us > c->limit_us;
}

/* A rank receives all edges that have arrived. For each in turn it sends the edges that waited only
 * for that one, and unpacks its own segments. */
static void wake(struct chain *c, const struct cpl_event *event)
{
    struct rank_state *rank = &c->rank[event->number];
    int32_t arrived = sort(c, rank->arrived);
    rank->arrived = -1;
    if (event->at > rank->clock_us) {
        rank->clock_us = event->at;
        give_up_late(c, rank);
        if (c->machine->cores_per_node > 0) {
            rank->left_us += c->machine->costs.switch_us;
            work(rank, c->machine->costs.switch_us);
        }
    }
    for (int32_t e = arrived; e >= 0; e = c->edge[e].next)
        work(rank, c->edge[e].recv_us);
    for (int32_t e = arrived; e >= 0; e = c->edge[e].next) {
        for (int32_t f = c->edge[e].first_feed; f >= 0; f = c->feeds[f].next)
            if (--c->edge[c->feeds[f].edge].missing == 0)
                send(c, c->feeds[f].edge);
        work(rank, c->edge[e].unpack_us);
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

static void simulate(struct chain *c, const int32_t *out_first, const int32_t *out)
{
    struct cpl_event event;
    for (int32_t i = 0; i < c->plan->n_ranks; i++)
        c->rank[i].arrived = -1;
    /* all of these at first, then only what arrivals make ready: counts change below */
    for (int32_t k = 0; k < out_first[c->plan->n_ranks]; k++)
        if (c->edge[out[k]].missing == 0)
            send(c, out[k]);
    while (!c->is_over && cpl_events_pop(&c->events, &event)) {
        c->n_events++;
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
    for (int64_t e = 0; e < plan->n_edges && c->port; e++) {
        const struct chain_edge *edge = &c->edge[e];
        if (edge->class_ != CPL_LINK_NETWORK)
            continue;
        c->port[2 * c->machine->node[edge->from]].n++;
        c->port[2 * c->machine->node[edge->to] + 1].n++;
        n += 2;
    }
    struct passing *edges = CPL_ARENA_ARRAY(arena, struct passing, n);
    if (!c->port || !edges)
        return CPL_ERR_NOMEM;
    for (int64_t p = 0; p < n_ports; p++) {
        struct port *port = &c->port[p];
        port->edges = edges;
        edges += port->n;
        port->n = 0;
        port->through_us = port->event_us = INFINITY;
    }
    return CPL_OK;
}

/* Whether the busiest rank alone takes too long. */
static bool is_too_busy(const struct chain *c)
{
    for (int32_t i = 0; i < c->plan->n_ranks; i++)
        if (c->rank[i].left_us > c->limit_us)
            return true;
    return false;
}

static enum cpl_status run(struct chain *c, struct cpl_arena *arena, double *us)
{
    const struct cpl_plan *plan = c->plan;
    const struct cpl_link_cost *network = &c->machine->costs.link[CPL_LINK_NETWORK];
    int64_t most = EVENTS_OF_AN_EDGE * plan->n_edges + plan->n_ranks + 2 * c->machine->n_nodes;
    c->edge = CPL_ARENA_ARRAY(arena, struct chain_edge, plan->n_edges);
    c->rank = CPL_ARENA_ARRAY(arena, struct rank_state, plan->n_ranks);
    if (!c->edge || !c->rank || make_edges(c, arena))
        return CPL_ERR_NOMEM;
    c->is_over = is_too_busy(c);
    if (c->is_over)
        return CPL_OK;
    int32_t *out_first = CPL_ARENA_ARRAY(arena, int32_t, (size_t)plan->n_ranks + 2);
    int32_t *out = CPL_ARENA_ARRAY(arena, int32_t, plan->n_edges);
    c->feeds = CPL_ARENA_ARRAY(arena, struct feed, plan->n_segments);
    if (!out_first || !out || !c->feeds || make_ports(c, arena) ||
        cpl_events_init(&c->events, (int32_t)most, network->send_us + network->latency_us, arena))
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

enum cpl_status cpl_plan_chain_below(const struct cpl_plan *plan, const struct cpl_machine *machine,
                                     double unit_bytes, double limit_us, double *microseconds,
                                     int64_t *n_events, struct cpl_error *error)
{
    if (machine->n_ranks != plan->n_ranks)
        return cpl_fail(error, CPL_ERR_ARG, "a machine of %d ranks for a plan of %d",
                        machine->n_ranks, plan->n_ranks);
    if (plan->n_edges > MOST_EDGES)
        return cpl_fail(error, CPL_ERR_ARG, "the model takes at most %d combined messages",
                        MOST_EDGES);
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct chain c = {.plan = plan,
                      .machine = machine,
                      .unit_bytes = unit_bytes,
                      .limit_us = limit_us * (1 + ROUNDING)};
    double us = 0;
    enum cpl_status status = run(&c, &arena, &us);
    cpl_arena_free(&arena);
    if (status)
        return cpl_fail_memory(error, "the chain model");
    *microseconds = c.is_over ? INFINITY : us;
    *n_events = c.n_events;
    return CPL_OK;
}

enum cpl_status cpl_plan_chain_cost(const struct cpl_plan *plan, const struct cpl_machine *machine,
                                    double unit_bytes, double *microseconds,
                                    struct cpl_error *error)
{
    int64_t n_events;
    return cpl_plan_chain_below(plan, machine, unit_bytes, INFINITY, microseconds, &n_events,
                                error);
}
