/* The chain model (plan.h, cpl_plan_chain_cost): ranks that send and receive without any barrier
 * between the waves, simulated event by event (machine.h has the parameters; LogGP).
 *
 * A rank has one processor. It sends its edges in the plan's order; the next one as soon as all its
 * bundles are there. When that one has to wait, the rank takes in what arrives, in the order of
 * arrival. So a rank's history changes only when a message arrives, and a heap of arrivals is all
 * that there is to keep: each is taken in, then everything is sent that it has made ready. Of
 * arrivals at the same time the edge of the lower number is first.
 *
 * Inside a node a processor copies the bytes at each end. Between nodes a rank's bytes follow each
 * other on the way out of it and on the way into it. What the ranks of a node share is not
 * simulated but counted: the exchange takes no less than the bytes of the busiest network interface
 * need after one latency, and no less than the processor time of a node's ranks divided by its
 * cores, where these are fewer; a rank there that had to wait for a message pays a switch.
 * O(segments + edges log edges). */
#include "plan_internal.h"

#include <stdbool.h>
#include <string.h>

struct arrival {
    double us;
    int64_t edge;
};

struct rank_state {
    double clock_us;    /* when its processor is free */
    double busy_us;     /* what it has worked in all */
    double out_free_us; /* when its way out to other nodes is free */
    double in_free_us;
    int64_t next;     /* its next out-edge in chain.out */
    int32_t progress; /* segments of that one that are known to be there */
};

struct chain {
    const struct cpl_plan *plan;
    const struct cpl_machine *machine;
    double unit_bytes;
    int64_t *out_first; /* rank -> its out-edges in out, in the plan's order */
    int64_t *out;
    int64_t *source; /* segment -> the edge that brings its bundle to the sender, -1: its own */
    uint8_t *taken;  /* edge -> its receiver has taken it in */
    struct rank_state *rank;
    struct arrival *heap; /* of messages on their way, the first to arrive on top */
    int64_t n_heap;
};

static bool sooner(const struct arrival *a, const struct arrival *b)
{
    return a->us < b->us || (!(a->us > b->us) && a->edge < b->edge);
}

static void push(struct chain *c, struct arrival arrival)
{
    int64_t at = c->n_heap++;
    for (; at > 0 && sooner(&arrival, &c->heap[(at - 1) / 2]); at = (at - 1) / 2)
        c->heap[at] = c->heap[(at - 1) / 2];
    c->heap[at] = arrival;
}

static struct arrival pop(struct chain *c)
{
    struct arrival top = c->heap[0], last = c->heap[--c->n_heap];
    int64_t at = 0;
    for (int64_t child = 1; child < c->n_heap; child = 2 * at + 1) {
        child += child + 1 < c->n_heap && sooner(&c->heap[child + 1], &c->heap[child]);
        if (!sooner(&c->heap[child], &last))
            break;
        c->heap[at] = c->heap[child];
        at = child;
    }
    c->heap[at] = last;
    return top;
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

/* brings[b]: the edge that brought bundle b to the last rank that was looked at and got it. */
static void find_sources(struct chain *c, const int64_t *in_first, const int64_t *in,
                         int64_t *brings)
{
    const struct cpl_plan *plan = c->plan;
    for (int64_t b = 0; b < plan->n_bundles; b++)
        brings[b] = -1;
    for (int32_t i = 0; i < plan->n_ranks; i++) {
        for (int64_t k = in_first[i]; k < in_first[i + 1]; k++) {
            const struct cpl_edge *edge = &plan->edges[in[k]];
            for (int32_t s = 0; s < edge->n_segments; s++)
                brings[plan->segments[edge->first_segment + s]] = in[k];
        }
        for (int64_t k = c->out_first[i]; k < c->out_first[i + 1]; k++) {
            const struct cpl_edge *edge = &plan->edges[c->out[k]];
            for (int32_t s = 0; s < edge->n_segments; s++) {
                int64_t by = brings[plan->segments[edge->first_segment + s]];
                bool here = by >= 0 && plan->edges[by].to == i;
                c->source[edge->first_segment + s] = here ? by : -1;
            }
        }
    }
}

static enum cpl_status prepare(struct chain *c, struct cpl_arena *arena)
{
    const struct cpl_plan *plan = c->plan;
    int64_t *in_first = CPL_ARENA_ARRAY(arena, int64_t, (size_t)plan->n_ranks + 2);
    int64_t *in = CPL_ARENA_ARRAY(arena, int64_t, plan->n_edges);
    int64_t *brings = CPL_ARENA_ARRAY(arena, int64_t, plan->n_bundles);
    c->out_first = CPL_ARENA_ARRAY(arena, int64_t, (size_t)plan->n_ranks + 2);
    c->out = CPL_ARENA_ARRAY(arena, int64_t, plan->n_edges);
    c->source = CPL_ARENA_ARRAY(arena, int64_t, plan->n_segments);
    c->taken = CPL_ARENA_ARRAY(arena, uint8_t, plan->n_edges);
    c->rank = CPL_ARENA_ARRAY(arena, struct rank_state, plan->n_ranks);
    c->heap = CPL_ARENA_ARRAY(arena, struct arrival, plan->n_edges);
    if (!in_first || !in || !brings || !c->out_first || !c->out || !c->source || !c->taken ||
        !c->rank || !c->heap)
        return CPL_ERR_NOMEM;
    group_edges(plan, true, in_first, in);
    group_edges(plan, false, c->out_first, c->out);
    find_sources(c, in_first, in, brings);
    for (int32_t i = 0; i < plan->n_ranks; i++)
        c->rank[i].next = c->out_first[i];
    return CPL_OK;
}

static enum cpl_link_class link_class(const struct chain *c, const struct cpl_edge *edge)
{
    return cpl_machine_link(c->machine, edge->from, edge->to);
}

/* Time of an edge's bytes over its link, at one end. */
static double bytes_us(const struct chain *c, const struct cpl_edge *edge)
{
    return (double)edge->volume * c->unit_bytes *
           c->machine->costs.link[link_class(c, edge)].ns_per_byte * 1e-3;
}

/* Processor time at one end of an edge whose overhead there is overhead_us. */
static double end_us(const struct chain *c, const struct cpl_edge *edge, double overhead_us)
{
    double copy_us = link_class(c, edge) == CPL_LINK_NETWORK ? 0 : bytes_us(c, edge);
    return overhead_us + cpl_plan_segments_us(c->plan, edge, &c->machine->costs) + copy_us;
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

static bool has_all(const struct chain *c, struct rank_state *rank, const struct cpl_edge *edge)
{
    for (; rank->progress < edge->n_segments; rank->progress++) {
        int64_t source = c->source[edge->first_segment + rank->progress];
        if (source >= 0 && !c->taken[source])
            return false;
    }
    return true;
}

static void send_ready(struct chain *c, int32_t i)
{
    struct rank_state *rank = &c->rank[i];
    for (; rank->next < c->out_first[i + 1]; rank->next++, rank->progress = 0) {
        int64_t e = c->out[rank->next];
        const struct cpl_edge *edge = &c->plan->edges[e];
        const struct cpl_link_cost *link = &c->machine->costs.link[link_class(c, edge)];
        if (!has_all(c, rank, edge))
            return;
        work(rank, end_us(c, edge, link->send_us));
        double left_us = rank->clock_us;
        if (link_class(c, edge) == CPL_LINK_NETWORK) {
            left_us = later(left_us, rank->out_free_us) + bytes_us(c, edge);
            rank->out_free_us = left_us;
        }
        push(c, (struct arrival){left_us + link->latency_us, e});
    }
}

static void take_in(struct chain *c, struct arrival arrival)
{
    const struct cpl_edge *edge = &c->plan->edges[arrival.edge];
    struct rank_state *rank = &c->rank[edge->to];
    double there_us = arrival.us;
    if (link_class(c, edge) == CPL_LINK_NETWORK) {
        there_us = later(there_us, rank->in_free_us + bytes_us(c, edge));
        rank->in_free_us = there_us;
    }
    if (there_us > rank->clock_us) {
        rank->clock_us = there_us;
        if (c->machine->cores_per_node > 0)
            work(rank, c->machine->costs.switch_us);
    }
    work(rank, end_us(c, edge, c->machine->costs.link[link_class(c, edge)].recv_us));
    c->taken[arrival.edge] = 1;
}

/* What the nodes need at least for what their ranks share. */
static enum cpl_status shared_us(const struct chain *c, struct cpl_arena *arena, double *us)
{
    const struct cpl_machine *machine = c->machine;
    double *out = CPL_ARENA_ARRAY(arena, double, machine->n_nodes);
    double *in = CPL_ARENA_ARRAY(arena, double, machine->n_nodes);
    double *busy_us = CPL_ARENA_ARRAY(arena, double, machine->n_nodes);
    if (!out || !in || !busy_us)
        return CPL_ERR_NOMEM;
    for (int64_t e = 0; e < c->plan->n_edges; e++) {
        const struct cpl_edge *edge = &c->plan->edges[e];
        if (link_class(c, edge) != CPL_LINK_NETWORK)
            continue;
        out[machine->node[edge->from]] += (double)edge->volume * c->unit_bytes;
        in[machine->node[edge->to]] += (double)edge->volume * c->unit_bytes;
    }
    for (int32_t i = 0; i < machine->n_ranks; i++)
        busy_us[machine->node[i]] += c->rank[i].busy_us;
    *us = 0;
    for (int32_t k = 0; k < machine->n_nodes; k++) {
        double bytes = later(out[k], in[k]);
        if (bytes > 0)
            *us = later(*us, machine->costs.link[CPL_LINK_NETWORK].latency_us +
                                 bytes * machine->costs.node_ns_per_byte * 1e-3);
        if (machine->cores_per_node > 0)
            *us = later(*us, busy_us[k] / machine->cores_per_node);
    }
    return CPL_OK;
}

static void simulate(struct chain *c)
{
    for (int32_t i = 0; i < c->plan->n_ranks; i++)
        send_ready(c, i);
    while (c->n_heap > 0) {
        struct arrival arrival = pop(c);
        take_in(c, arrival);
        send_ready(c, c->plan->edges[arrival.edge].to);
    }
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
    enum cpl_status status = prepare(&c, &arena);
    if (!status)
        simulate(&c);
    if (!status)
        status = shared_us(&c, &arena, &us);
    for (int32_t i = 0; i < plan->n_ranks && !status; i++)
        us = later(us, c.rank[i].clock_us);
    cpl_arena_free(&arena);
    if (status)
        return cpl_fail_memory(error, "the chain model");
    *microseconds = us;
    return CPL_OK;
}
