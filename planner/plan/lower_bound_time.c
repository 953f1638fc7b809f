/* The bound on the modelled time (lower_bound.h, cpl_bound_time; the model is cpl_plan_cost's: a
 * wave takes as long as its busiest rank, waves add up). The largest of four bounds:
 *
 * Rank. All bundles of a rank leave it, all that are for it come to it, whatever the waves: a
 * latency, an overhead for sending and for receiving, a segment each; and, of what goes and what
 * comes the larger, the bytes. These keep its processor busy where they stay in the node, and
 * travel at the same time where they go by the network: of the best division both take as long.
 *
 * Node. Bundles for other nodes leave the node, bundles from other nodes come in, at least once
 * each: one of its ranks has the latency of the network and an overhead, or, if more, what the
 * bytes take on the node's interface, or on its ranks' if these shared them evenly.
 *
 * (Of what is divided in parts each part is a bundle; who has to reach whom, below, does not depend
 * on parts.)
 *
 * Reach. In a wave that takes t a rank sends at most a(t) = (t - l) / o messages, l and o being the
 * smallest latency and overhead (with a segment), so the ranks that know something of a source
 * become at most 1 + a(t) times as many. In the end destinations + 1 ranks must know something.
 * The product of 1 + a(t) over n waves of a given sum is largest when they are equal.
 *
 * Remote reach. In the same wave a rank sends at most b(t) = (t - L) / O messages to other nodes,
 * by the network's L and O. Let h of the ranks of the source's node know something of it, and r
 * others: after the wave these are at most h (1 + a) and r (1 + a) + h b, so that r / h grows by at
 * most b / (1 + a), which is concave in t. In the end r is at most the product of 1 + a over all
 * waves, times the sum of b / (1 + a) over the waves with network messages; with m of these and n
 * others it is largest when each kind has equal times: m b (1 + a)^(m - 1) times (1 + a)^n. For
 * each m and n the least time is found by bisection, the best division between the kinds by
 * narrowing, which the function permits since its logarithm is concave.
 *
 * Both reaches look at up to 24 waves of a kind. That is enough: a wave that adds a rank takes at
 * least l + o (L + O), hence has 1 + a >= 2 (b >= 1), so that of any longer plan one wave with
 * network messages and 24 others, were they the only ones, would permit 2^24 ranks, which is the
 * largest number there may be, in less time. Both hold for receiving too, with time reversed. */
#include "planner/lower_bound.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define MOST_WAVES 24
#define STEPS      60   /* of a bisection */
#define ROUNDING   1e-9 /* what narrowing may miss, relatively */

/* Smallest prices in the machine, and those of the network. */
struct prices {
    double latency_us;
    double send_us; /* with a segment */
    double recv_us;
    double segment_us;
};

/* What has to leave and come in, of one rank or node; a payload for several destinations counts
 * once for its owner and once for each node. */
struct traffic {
    int64_t n_out, n_in; /* bundles */
    double out, in;      /* their units of volume */
    double items_us;     /* what packing and unpacking lists of items takes a rank */
};

struct bounds {
    const struct cpl_pattern *pattern;
    const struct cpl_machine *machine;
    double unit_bytes;
    struct prices any;
    struct prices network;
    double inside_us_per_byte; /* INFINITY: there is no link inside a node */
    double network_us_per_byte;
    struct traffic *rank;
    struct traffic *node;
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

/* Segments that are lists of items are priced one by one. */
static struct prices prices_of(const struct bounds *b, enum cpl_link_class class_)
{
    const struct cpl_machine *machine = b->machine;
    const struct cpl_link_cost *link = cpl_machine_edge_cost(machine, class_);
    double segment_us = b->pattern->pairs ? 0 : machine->costs.segment_ns * 1e-3;
    return (struct prices){.latency_us = link->latency_us,
                           .send_us = link->send_us + segment_us,
                           .recv_us = link->recv_us + segment_us,
                           .segment_us = segment_us};
}

static struct prices cheapest(struct prices a, struct prices b)
{
    return (struct prices){.latency_us = smaller(a.latency_us, b.latency_us),
                           .send_us = smaller(a.send_us, b.send_us),
                           .recv_us = smaller(a.recv_us, b.recv_us),
                           .segment_us = a.segment_us};
}

/* Only links that there are count: inside nodes when one has two ranks, between when there are two.
 */
static void find_prices(struct bounds *b)
{
    const struct cpl_machine *machine = b->machine;
    b->network = prices_of(b, CPL_LINK_NETWORK);
    b->any = cheapest(prices_of(b, CPL_LINK_SOCKET), prices_of(b, CPL_LINK_NODE));
    b->inside_us_per_byte = smaller(cpl_machine_edge_cost(machine, CPL_LINK_SOCKET)->ns_per_byte,
                                    cpl_machine_edge_cost(machine, CPL_LINK_NODE)->ns_per_byte) *
                            1e-3;
    b->network_us_per_byte =
        machine->n_nodes > 1 ? machine->costs.link[CPL_LINK_NETWORK].ns_per_byte * 1e-3 : INFINITY;
    if (machine->n_nodes == machine->n_ranks) {
        b->any = b->network;
        b->inside_us_per_byte = INFINITY;
    }
    if (machine->n_nodes > 1)
        b->any = cheapest(b->any, b->network);
}

/* One payload of rank i with the volume, for the destinations of n messages. */
static void add_payload(struct bounds *b, int32_t i, const int64_t *messages, size_t n,
                        int64_t volume)
{
    const int32_t *node = b->machine->node;
    bool leaves = false;
    double items_us =
        b->pattern->pairs ? cpl_segment_us(&b->machine->costs, true, (double)volume) : 0;
    b->n_payloads++;
    b->rank[i].items_us += items_us;
    b->rank[i].n_out++;
    b->rank[i].out += (double)volume;
    for (size_t k = 0; k < n; k++) {
        int32_t dst = b->pattern->dst[messages[k]];
        b->rank[dst].n_in++;
        b->rank[dst].in += (double)volume;
        b->rank[dst].items_us += items_us;
        if (node[dst] == node[i])
            continue;
        leaves = true;
        if (b->seen[node[dst]] != b->n_payloads) {
            b->seen[node[dst]] = b->n_payloads;
            b->node[node[dst]].n_in++;
            b->node[node[dst]].in += (double)volume;
        }
    }
    b->node[node[i]].n_out += leaves;
    b->node[node[i]].out += leaves ? (double)volume : 0;
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
static double divided_us(const struct bounds *b, double busy_us, double bytes)
{
    if (!(bytes > 0))
        return busy_us;
    double inside_us = bytes * b->inside_us_per_byte, network_us = bytes * b->network_us_per_byte;
    if (isinf(network_us))
        return busy_us + inside_us;
    if (isinf(inside_us) || network_us <= busy_us)
        return larger(busy_us, network_us);
    return network_us * (busy_us + inside_us) / (network_us + inside_us);
}

static double rank_us(const struct bounds *b, const struct traffic *t)
{
    double us = 0;
    if (t->n_out + t->n_in == 0)
        return 0;
    if (t->n_out > 0)
        us += b->any.send_us + (double)(t->n_out - 1) * b->any.segment_us;
    if (t->n_in > 0)
        us += b->any.recv_us + (double)(t->n_in - 1) * b->any.segment_us;
    return divided_us(b, us + t->items_us, larger(t->out, t->in) * b->unit_bytes) +
           b->any.latency_us;
}

static double node_us(const struct bounds *b, const struct traffic *t, int32_t n_ranks)
{
    double us_per_byte =
        larger(cpl_wave_node_ns(&b->machine->costs) * 1e-3, b->network_us_per_byte / n_ranks);
    double out = larger(b->network.send_us, t->out * b->unit_bytes * us_per_byte);
    double in = larger(b->network.recv_us, t->in * b->unit_bytes * us_per_byte);
    double us = larger(t->n_out > 0 ? out : 0, t->n_in > 0 ? in : 0);
    return t->n_out + t->n_in > 0 ? b->network.latency_us + us : 0;
}

/* 1 + a(us): by how much the ranks that know something can grow in a wave. */
static double growth(double us, double latency_us, double overhead_us)
{
    return us > latency_us ? 1 + (us - latency_us) / overhead_us : 1;
}

/* The least time in which one rank can let n others know, all links being the cheapest. */
static double reach_us(double latency_us, double overhead_us, int64_t n)
{
    double least = INFINITY;
    for (int waves = 1; waves <= MOST_WAVES && n > 0; waves++) {
        double ranks = pow((double)n + 1, 1.0 / waves);
        least = smaller(least, waves * (latency_us + (ranks - 1) * overhead_us));
    }
    return n > 0 ? least : 0;
}

/* Links as one end of them sees it. */
struct ends {
    double latency_us, overhead_us;         /* the cheapest */
    double network_us, network_overhead_us; /* of the network */
};

/* Most ranks of other nodes that can know when m waves with network messages take far_us together
 * and n without take near_us. */
static double most_remote(const struct ends *e, int m, int n, double far_us, double near_us)
{
    double far = growth(far_us / m, e->latency_us, e->overhead_us);
    double near = n > 0 ? growth(near_us / n, e->latency_us, e->overhead_us) : 1;
    double sent = growth(far_us / m, e->network_us, e->network_overhead_us) - 1;
    return m * sent * pow(far, m - 1) * pow(near, n);
}

/* The same for the best division of us. */
static double most_remote_in(const struct ends *e, int m, int n, double us)
{
    double low = m * e->network_us, high = us - n * e->latency_us;
    if (low >= high)
        return 0;
    for (int step = 0; step < STEPS && n > 0; step++) {
        double a = low + (high - low) / 3, b = high - (high - low) / 3;
        if (most_remote(e, m, n, a, us - a) < most_remote(e, m, n, b, us - b))
            low = a;
        else
            high = b;
    }
    return most_remote(e, m, n, high, us - high);
}

/* The least time, not beyond `enough`, in which n ranks of other nodes can know. */
static double remote_reach_us(const struct ends *e, int m, int n_near, int64_t n, double enough)
{
    double low = 0, high = enough;
    if (most_remote_in(e, m, n_near, high) < (double)n)
        return enough;
    for (int step = 0; step < STEPS; step++) {
        double us = (low + high) / 2;
        if (most_remote_in(e, m, n_near, us) < (double)n)
            low = us;
        else
            high = us;
    }
    return low;
}

static double all_reach_us(const struct ends *e, int64_t n, int64_t n_remote)
{
    if (!(e->overhead_us > 0) || !(e->network_overhead_us > 0))
        return 0; /* any number of messages at once */
    double us = reach_us(e->latency_us, e->overhead_us, n);
    if (n_remote == 0)
        return us;
    /* A time that suffices: all by the network in one wave. */
    double least = e->network_us + (double)n_remote * e->network_overhead_us;
    for (int m = 1; m <= MOST_WAVES && m * e->network_us < least; m++)
        for (int n_near = 0; n_near <= MOST_WAVES; n_near++) {
            if (m * e->network_us + n_near * e->latency_us >= least)
                break;
            least = remote_reach_us(e, m, n_near, n_remote, least);
        }
    return larger(us, least * (1 - ROUNDING));
}

static double reach_bound(const struct bounds *b)
{
    const struct prices *any = &b->any, *network = &b->network;
    const struct ends sending = {any->latency_us, any->send_us, network->latency_us,
                                 network->send_us};
    const struct ends receiving = {any->latency_us, any->recv_us, network->latency_us,
                                   network->recv_us};
    int64_t n_out = 0, n_in = 0, out_remote = 0, in_remote = 0;
    for (int32_t i = 0; i < b->pattern->n_ranks; i++) {
        int64_t n = cpl_pattern_sends(cpl_pattern_pairs(b->pattern), i);
        n_out = n > n_out ? n : n_out;
        n_in = b->n_in[i] > n_in ? b->n_in[i] : n_in;
        out_remote = b->out_remote[i] > out_remote ? b->out_remote[i] : out_remote;
        in_remote = b->in_remote[i] > in_remote ? b->in_remote[i] : in_remote;
    }
    return larger(all_reach_us(&sending, n_out, out_remote),
                  all_reach_us(&receiving, n_in, in_remote));
}

enum cpl_status cpl_bound_time(const struct cpl_pattern *pattern, const struct cpl_machine *machine,
                               double unit_bytes, double *microseconds, struct cpl_error *error)
{
    if (machine->n_ranks != pattern->n_ranks)
        return cpl_fail(error, CPL_ERR_ARG, "a machine of %d ranks for a pattern of %d",
                        machine->n_ranks, pattern->n_ranks);
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct bounds b = {.pattern = pattern, .machine = machine, .unit_bytes = unit_bytes};
    if (count_traffic(&b, &arena)) {
        cpl_arena_free(&arena);
        return cpl_fail_memory(error, "the lower bound");
    }
    find_prices(&b);
    double us = reach_bound(&b);
    for (int32_t i = 0; i < pattern->n_ranks; i++)
        us = larger(us, rank_us(&b, &b.rank[i]));
    for (int32_t k = 0; k < machine->n_nodes; k++)
        us = larger(us, node_us(&b, &b.node[k], b.n_on_node[k]));
    cpl_arena_free(&arena);
    *microseconds = us;
    return CPL_OK;
}
