/* The bound on the modelled time (lower_bound.h, cpl_bound_time; the model is the chain model's,
 * plan_chain.c). There is only one plan of one wave, direct, whose time is known: the bound is
 * that, or, if less, what every plan of more waves takes. In these ranks pack and unpack all that
 * they send and receive, and what follows is the largest of:
 *
 * Rank. All bundles of a rank leave it, all that are for it come to it: a combined message at
 * least in each direction, a segment each, and the bytes, which keep its processor busy where they
 * stay in the node, and travel on its wire meanwhile where they go by the network; of the best
 * division both take as long. Before the first of what comes there are an overhead of sending and
 * a latency, behind the last of what goes a latency and an overhead of receiving. Where it is for
 * another node, or comes from there, these are the network's: either the rank itself sends it
 * there, or a relay does later, which takes longer.
 *
 * Node. Bundles for other nodes leave the node, bundles from other nodes come in, at least once
 * each: the bytes on the node's port, or on its ranks' wires if these shared them evenly, after an
 * overhead and a latency, before an overhead. Where ranks share cores, the work of all its ranks on
 * these.
 *
 * (Of what is divided in parts each part is a bundle; who has to reach whom, below, does not depend
 * on parts.)
 *
 * Reach. As many ranks as the rank with most destinations has must come to know something of it,
 * by messages that each carry something; see lower_bound_reach.h. The same holds for the rank with
 * most sources, with time reversed: it takes in messages one after the other, and whoever sent one
 * has received others before. A relay has received what it sends, but may unpack later. */
#include "planner/lower_bound.h"

#include "planner/plan.h"
#include "planner/plan/lower_bound_reach.h"
#include "planner/routes.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define ROUNDING 1e-9 /* the model adds up in another order */

/* What a combined message with one segment takes, with packing and unpacking it. */
struct prices {
    double send_us; /* without its segments */
    double recv_us;
    double head_us; /* from the first work on it until it is there */
    double tail_us; /* from the end of the sender's work on it */
};

/* What has to go or come; a payload for several destinations counts once for its owner and once for
 * each node. */
struct side {
    int64_t n;      /* bundles */
    double bytes;   /* of them */
    double work_us; /* what packing or unpacking them takes */
};

struct traffic {
    struct side out, in;         /* all */
    struct side out_far, in_far; /* for and from other nodes */
};

struct bounds {
    const struct cpl_pattern *pattern;
    const struct cpl_machine *machine;
    double unit_bytes;
    double segment_us; /* at least, of a segment; of parts 0 */
    struct prices inside, network;
    double inside_us_per_byte;
    double network_us_per_byte;
    struct traffic *rank;
    struct traffic *node; /* only what is far */
    int32_t *n_on_node;
    int64_t *n_in;       /* rank -> sources */
    int64_t *out_remote; /* rank -> destinations on other nodes */
    int64_t *in_remote;
    int64_t *seen; /* node -> the last payload that was found to be for it */
    int64_t n_payloads;
};

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static struct prices prices_of(const struct bounds *b, enum cpl_link_class class_)
{
    const struct cpl_link_cost *link = cpl_machine_edge_cost(b->machine, class_);
    double combined_us = b->machine->costs.combined_ns * 1e-3;
    double send_us = link->send_us + combined_us, recv_us = link->recv_us + combined_us;
    return (struct prices){.send_us = send_us,
                           .recv_us = recv_us,
                           .head_us = send_us + b->segment_us + link->latency_us,
                           .tail_us = link->latency_us + recv_us + b->segment_us};
}

static struct prices cheapest(struct prices a, struct prices b)
{
    return (struct prices){.send_us = smaller(a.send_us, b.send_us),
                           .recv_us = smaller(a.recv_us, b.recv_us),
                           .head_us = smaller(a.head_us, b.head_us),
                           .tail_us = smaller(a.tail_us, b.tail_us)};
}

static void find_prices(struct bounds *b)
{
    const struct cpl_machine *machine = b->machine;
    b->segment_us = b->pattern->pairs ? 0 : machine->costs.segment_ns * 1e-3;
    b->network = prices_of(b, CPL_LINK_NETWORK);
    b->inside = cheapest(prices_of(b, CPL_LINK_SOCKET), prices_of(b, CPL_LINK_NODE));
    b->inside_us_per_byte = smaller(cpl_machine_edge_cost(machine, CPL_LINK_SOCKET)->ns_per_byte,
                                    cpl_machine_edge_cost(machine, CPL_LINK_NODE)->ns_per_byte) *
                            1e-3;
    b->network_us_per_byte = machine->costs.link[CPL_LINK_NETWORK].ns_per_byte * 1e-3;
}

static void add(struct side *side, double bytes, double work_us)
{
    side->n++;
    side->bytes += bytes;
    side->work_us += work_us;
}

/* One payload of rank i with the volume, for the destinations of n messages. */
static void add_payload(struct bounds *b, int32_t i, const int64_t *messages, size_t n,
                        int64_t volume)
{
    const int32_t *node = b->machine->node;
    const struct cpl_costs *costs = &b->machine->costs;
    bool leaves = false;
    double bytes = (double)volume * b->unit_bytes;
    double us = cpl_segment_us(costs, b->pattern->pairs != NULL, (double)volume) +
                bytes * costs->packed_ns_per_byte * 1e-3;
    b->n_payloads++;
    add(&b->rank[i].out, bytes, us);
    for (size_t k = 0; k < n; k++) {
        int32_t dst = b->pattern->dst[messages[k]];
        add(&b->rank[dst].in, bytes, us);
        if (node[dst] == node[i])
            continue;
        leaves = true;
        add(&b->rank[dst].in_far, bytes, us);
        if (b->seen[node[dst]] != b->n_payloads) {
            b->seen[node[dst]] = b->n_payloads;
            add(&b->node[node[dst]].in_far, bytes, us);
        }
    }
    if (leaves) {
        add(&b->rank[i].out_far, bytes, us);
        add(&b->node[node[i]].out_far, bytes, us);
    }
}

struct classed {
    int32_t class_;
    int64_t message;
};

static int compare_classed(const void *a, const void *b)
{
    const struct classed *x = a, *y = b;
    if (x->class_ != y->class_)
        return x->class_ < y->class_ ? -1 : 1;
    return (x->message > y->message) - (x->message < y->message);
}

/* Adds rank i's payloads. row and messages have room for all of its messages. */
static void add_rank(struct bounds *b, int32_t i, struct classed *row, int64_t *messages)
{
    const struct cpl_pattern *p = b->pattern;
    size_t n = 0;
    for (int64_t m = p->first[i]; m < p->first[i + 1]; m++)
        if (p->payload_class && p->payload_class[m] >= 0)
            row[n++] = (struct classed){p->payload_class[m], m};
        else
            add_payload(b, i, &m, 1, p->volume[m]);
    qsort(row, n, sizeof *row, compare_classed);
    for (size_t k = 0; k < n; k++)
        messages[k] = row[k].message;
    for (size_t k = 0, end; k < n; k = end) {
        for (end = k + 1; end < n && row[end].class_ == row[k].class_; end++)
            ;
        add_payload(b, i, messages + k, end - k, p->volume[messages[k]]);
    }
}

/* Counts who reaches whom, and whom on other nodes. */
static void count_ends(struct bounds *b)
{
    const struct cpl_pattern *pairs = cpl_pattern_pairs(b->pattern);
    const int32_t *node = b->machine->node;
    for (int32_t i = 0; i < pairs->n_ranks; i++)
        for (int64_t m = pairs->first[i]; m < pairs->first[i + 1]; m++) {
            int32_t dst = pairs->dst[m];
            b->n_in[dst]++;
            b->out_remote[i] += node[dst] != node[i];
            b->in_remote[dst] += node[dst] != node[i];
        }
}

static enum cpl_status count_traffic(struct bounds *b, struct cpl_arena *arena)
{
    int32_t n_ranks = b->pattern->n_ranks, n_nodes = b->machine->n_nodes;
    int64_t longest = cpl_pattern_most_sends(b->pattern);
    struct classed *row = CPL_ARENA_ARRAY(arena, struct classed, longest);
    int64_t *messages = CPL_ARENA_ARRAY(arena, int64_t, longest);
    b->n_in = CPL_ARENA_ARRAY(arena, int64_t, n_ranks);
    b->rank = CPL_ARENA_ARRAY(arena, struct traffic, n_ranks);
    b->out_remote = CPL_ARENA_ARRAY(arena, int64_t, n_ranks);
    b->in_remote = CPL_ARENA_ARRAY(arena, int64_t, n_ranks);
    b->node = CPL_ARENA_ARRAY(arena, struct traffic, n_nodes);
    b->n_on_node = CPL_ARENA_ARRAY(arena, int32_t, n_nodes);
    b->seen = CPL_ARENA_ARRAY(arena, int64_t, n_nodes);
    if (!row || !messages || !b->rank || !b->n_in || !b->out_remote || !b->in_remote || !b->node ||
        !b->n_on_node || !b->seen)
        return CPL_ERR_NOMEM;
    for (int32_t i = 0; i < n_ranks; i++) {
        b->n_on_node[b->machine->node[i]]++;
        add_rank(b, i, row, messages);
    }
    count_ends(b);
    return CPL_OK;
}

/* The least time for bytes of which some keep a processor busy that has busy_us to do besides, and
 * the others travel meanwhile. */
static double divided_us(const struct bounds *b, int32_t i, double busy_us, double bytes)
{
    double inside_us = bytes * b->inside_us_per_byte, network_us = bytes * b->network_us_per_byte;
    if (b->machine->n_nodes == 1)
        return busy_us + inside_us;
    if (b->n_on_node[b->machine->node[i]] == 1 || network_us <= busy_us)
        return larger(busy_us, network_us);
    return network_us * (busy_us + inside_us) / (network_us + inside_us);
}

/* The cheapest of the links that rank i has. */
static struct prices prices_for(const struct bounds *b, int32_t i)
{
    if (b->machine->n_nodes == 1)
        return b->inside;
    return b->n_on_node[b->machine->node[i]] == 1 ? b->network : cheapest(b->inside, b->network);
}

/* One direction of rank i. */
static double side_us(const struct bounds *b, int32_t i, const struct side *side, double work_us,
                      double way_us)
{
    return side->n > 0 ? divided_us(b, i, work_us + side->work_us, side->bytes) + way_us : 0;
}

static double work_us(const struct prices *any, const struct traffic *t)
{
    return (t->out.n > 0 ? any->send_us + t->out.work_us : 0) +
           (t->in.n > 0 ? any->recv_us + t->in.work_us : 0);
}

static double rank_us(const struct bounds *b, int32_t i)
{
    const struct traffic *t = &b->rank[i];
    const struct prices any = prices_for(b, i), *network = &b->network;
    double out_us = side_us(b, i, &t->out, any.send_us, any.tail_us);
    double in_us = side_us(b, i, &t->in, any.recv_us, any.head_us);
    double far_out_us = side_us(b, i, &t->out_far, network->send_us, network->tail_us);
    double far_in_us = side_us(b, i, &t->in_far, network->recv_us, network->head_us);
    double both_us = divided_us(b, i, work_us(&any, t), larger(t->out.bytes, t->in.bytes));
    return larger(larger(larger(out_us, in_us), larger(far_out_us, far_in_us)), both_us);
}

/* What goes out of or into node k. */
static double port_us(const struct bounds *b, int32_t k, const struct side *side)
{
    double us_per_byte =
        larger(b->machine->costs.node_ns_per_byte * 1e-3, b->network_us_per_byte / b->n_on_node[k]);
    return side->n > 0
               ? b->network.head_us + side->bytes * us_per_byte + b->network.recv_us + b->segment_us
               : 0;
}

/* The work of each node's ranks on its cores, at most. */
static double cores_us(const struct bounds *b)
{
    const struct cpl_machine *machine = b->machine;
    double most_us = 0;
    for (int32_t k = 0; k < machine->n_nodes && machine->cores_per_node > 0; k++)
        b->node[k].out.work_us = 0;
    for (int32_t i = 0; i < machine->n_ranks && machine->cores_per_node > 0; i++) {
        const struct prices any = prices_for(b, i);
        double *node_us = &b->node[machine->node[i]].out.work_us;
        *node_us += work_us(&any, &b->rank[i]);
        most_us = larger(most_us, *node_us / machine->cores_per_node);
    }
    return most_us;
}

/* Messages that go the one way, as the ranks see it that are on the side where all comes from or
 * goes to. */
static struct cpl_reach_messages messages_out(const struct bounds *b, const struct prices *prices)
{
    double each_us = prices->send_us + b->segment_us;
    double way_us = prices->tail_us - b->segment_us - b->machine->costs.combined_ns * 1e-3;
    return (struct cpl_reach_messages){each_us, each_us, way_us};
}

static struct cpl_reach_messages messages_in(const struct bounds *b, const struct prices *prices)
{
    double recv_us = prices->recv_us - b->machine->costs.combined_ns * 1e-3;
    return (struct cpl_reach_messages){prices->recv_us + b->segment_us, recv_us, prices->head_us};
}

/* The larger of both times for n_all other ranks, n_far of other nodes, and us for the last. */
static enum cpl_status reach_us(const struct cpl_reach *reach, int64_t n_all, int64_t n_far,
                                double last_us, double *us)
{
    double all_us, far_us;
    if (cpl_reach_times(reach, n_all, n_far, &all_us, &far_us))
        return CPL_ERR_NOMEM;
    if (n_all > 0)
        *us = larger(*us, larger(all_us, far_us) + last_us);
    return CPL_OK;
}

static int64_t most(const int64_t *counts, int32_t n)
{
    int64_t largest = 0;
    for (int32_t i = 0; i < n; i++)
        largest = counts[i] > largest ? counts[i] : largest;
    return largest;
}

/* Makes *us larger where reaching takes longer. */
static enum cpl_status reach_bound(const struct bounds *b, double *us)
{
    int32_t n_ranks = b->pattern->n_ranks;
    struct cpl_reach reach = {.inside = messages_out(b, &b->inside),
                              .between = messages_out(b, &b->network),
                              .ranks_of_node = 1,
                              .n_nodes = b->machine->n_nodes};
    for (int32_t k = 0; k < b->machine->n_nodes; k++)
        if (b->n_on_node[k] > reach.ranks_of_node)
            reach.ranks_of_node = b->n_on_node[k];
    double unpack_us = b->machine->costs.combined_ns * 1e-3 + b->segment_us;
    enum cpl_status status = reach_us(&reach, cpl_pattern_most_sends(cpl_pattern_pairs(b->pattern)),
                                      most(b->out_remote, n_ranks), unpack_us, us);
    reach.inside = messages_in(b, &b->inside);
    reach.between = messages_in(b, &b->network);
    if (!status)
        status = reach_us(&reach, most(b->n_in, n_ranks), most(b->in_remote, n_ranks), 0, us);
    return status;
}

/* The least time of plans of more than one wave. */
static enum cpl_status bound_waves(struct bounds *b, double *microseconds)
{
    double us = cores_us(b);
    for (int32_t i = 0; i < b->pattern->n_ranks; i++)
        us = larger(us, rank_us(b, i));
    for (int32_t k = 0; k < b->machine->n_nodes; k++)
        us = larger(us,
                    larger(port_us(b, k, &b->node[k].out_far), port_us(b, k, &b->node[k].in_far)));
    enum cpl_status status = reach_bound(b, &us);
    *microseconds = us * (1 - ROUNDING);
    return status;
}

/* The time of the plan of one wave, by lanes or by MPI, whichever is less. */
static enum cpl_status time_direct(const struct bounds *b, double *us, struct cpl_error *error)
{
    const struct cpl_machine without = cpl_machine_without_lanes(b->machine);
    struct cpl_routes routes;
    struct cpl_plan plan;
    double mpi_us = 0;
    enum cpl_status status = cpl_routes_init(b->pattern, 1, &routes, error);
    if (status)
        return status;
    status = cpl_plan_build(b->pattern, &routes, &plan, error);
    cpl_routes_free(&routes);
    if (status)
        return status;
    status = cpl_plan_chain_cost(&plan, b->machine, b->unit_bytes, us, error);
    if (!status)
        status = cpl_plan_chain_cost(&plan, &without, b->unit_bytes, &mpi_us, error);
    *us = smaller(*us, mpi_us);
    cpl_plan_free(&plan);
    return status;
}

enum cpl_status cpl_bound_time(const struct cpl_pattern *pattern, const struct cpl_machine *machine,
                               double unit_bytes, double *microseconds, struct cpl_error *error)
{
    if (machine->n_ranks != pattern->n_ranks)
        return cpl_fail(error, CPL_ERR_ARG, "a machine of %d ranks for a pattern of %d",
                        machine->n_ranks, pattern->n_ranks);
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct bounds b = {.pattern = pattern, .machine = machine, .unit_bytes = unit_bytes};
    double direct_us = 0, waves_us = 0;
    enum cpl_status status = time_direct(&b, &direct_us, error);
    if (status)
        return status;
    find_prices(&b);
    status = count_traffic(&b, &arena);
    if (!status)
        status = bound_waves(&b, &waves_us);
    cpl_arena_free(&arena);
    if (status)
        return cpl_fail_memory(error, "the lower bound");
    *microseconds = smaller(direct_us, waves_us);
    return CPL_OK;
}
