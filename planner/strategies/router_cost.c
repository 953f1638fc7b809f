/* About what the plan of a router takes (router_cost.h): the model with barriers (plan_cost.c), to
 * which it adds what packing takes, that a rank cannot unpack a combined message before all of it
 * is there, and that what comes into a node at once is all there late (cpl_port_load_time).
 *
 * Messages that are looked at stand for `every` times as many; of a rank's load only as much counts
 * as is not by chance (find_mean, find_parts), or the busiest of many ranks would be the one that
 * was looked at most. Combined messages do not stand for others: one that many messages ride in is
 * seen even if few of these are. How many there are follows from how many of the rides seen in a
 * wave, and at a rank, were the first of their combined message. */
#include "planner/strategies/router_cost.h"

#include "planner/base/hash.h"
#include "planner/plan/plan_internal.h"

#include <math.h>
#include <string.h>

/* What a wave's other ranks say counts at each rank as much as so many messages seen there; what a
 * rank itself says counts beside those that are like it as much as so many of them. */
#define PRIOR 8

/* The most messages of a combined message that are told apart, times `every`. */
#define MOST_RIDERS 16

/* What was seen of a rank's messages in a wave, sent or received. */
struct end_load {
    double edges_us; /* overheads of the combined messages */
    double cargo_us;
    double net_bytes;
    double latency_us;
    int32_t n_edges, n_rides;
};

struct loads {
    const struct cpl_router_looks *looks;
    bool packs;
    struct end_load *out, *in; /* of each rank */
    int32_t *rank;             /* those of which something was seen in the wave */
    int32_t n_seen;
    struct cpl_port_load *port; /* of each node, when a wave is finished */
    int32_t *node_size;         /* ranks of each node */
    int32_t *n_with;            /* ranks that have each number of rides; 0 between uses */
    double *part_out, *part_in; /* of each number of rides, the part that is not by chance */
    uint64_t *seen;             /* combined messages by their hashes; 0: free */
    uint64_t mask;
};

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static bool is_seen(int32_t source, int32_t dst, int32_t every)
{
    uint64_t pair = (uint64_t)(uint32_t)source << 32 | (uint32_t)dst;
    return every == 1 || cpl_hash_mix(pair) % (uint64_t)every == 0;
}

enum cpl_status cpl_router_looks_init(struct cpl_router_looks *looks,
                                      const struct cpl_strategy_input *input, int32_t every,
                                      struct cpl_arena *arena)
{
    const struct cpl_pattern *p = input->pattern->pairs ? input->pattern->pairs : input->pattern;
    int64_t n = 0;
    for (int32_t i = 0; i < p->n_ranks; i++)
        for (int64_t m = p->first[i]; m < p->first[i + 1]; m++)
            n += is_seen(i, p->dst[m], every);
    *looks = (struct cpl_router_looks){.input = input,
                                       .every = every,
                                       .source = CPL_ARENA_ARRAY(arena, int32_t, n),
                                       .dst = CPL_ARENA_ARRAY(arena, int32_t, n),
                                       .bytes = CPL_ARENA_ARRAY(arena, double, n)};
    if (!looks->source || !looks->dst || !looks->bytes)
        return CPL_ERR_NOMEM;
    for (int32_t i = 0; i < p->n_ranks; i++)
        for (int64_t m = p->first[i]; m < p->first[i + 1]; m++)
            if (is_seen(i, p->dst[m], every)) {
                looks->source[looks->n] = i;
                looks->dst[looks->n] = p->dst[m];
                looks->bytes[looks->n++] = (double)p->volume[m] * input->unit_bytes;
            }
    return CPL_OK;
}

static enum cpl_status init_loads(struct loads *loads, const struct cpl_router_looks *looks,
                                  bool packs, struct cpl_arena *arena)
{
    const struct cpl_machine *machine = looks->input->machine;
    uint64_t n_seen = 64;
    while (n_seen < 2 * (uint64_t)looks->n)
        n_seen *= 2;
    *loads = (struct loads){.looks = looks,
                            .packs = packs,
                            .out = CPL_ARENA_ARRAY(arena, struct end_load, machine->n_ranks),
                            .in = CPL_ARENA_ARRAY(arena, struct end_load, machine->n_ranks),
                            .rank = CPL_ARENA_ARRAY(arena, int32_t, machine->n_ranks),
                            .port = CPL_ARENA_ARRAY(arena, struct cpl_port_load, machine->n_nodes),
                            .node_size = CPL_ARENA_ARRAY(arena, int32_t, machine->n_nodes),
                            .n_with = CPL_ARENA_ARRAY(arena, int32_t, looks->n + 1),
                            .part_out = CPL_ARENA_ARRAY(arena, double, looks->n + 1),
                            .part_in = CPL_ARENA_ARRAY(arena, double, looks->n + 1),
                            .seen = CPL_ARENA_ARRAY(arena, uint64_t, n_seen),
                            .mask = n_seen - 1};
    if (!loads->out || !loads->in || !loads->rank || !loads->port || !loads->node_size ||
        !loads->n_with || !loads->part_out || !loads->part_in || !loads->seen)
        return CPL_ERR_NOMEM;
    for (int32_t i = 0; i < machine->n_ranks; i++)
        loads->node_size[machine->node[i]]++;
    return CPL_OK;
}

/* Whether a combined message of the wave is met for the first time. */
static bool is_new(struct loads *loads, int32_t from, int32_t to)
{
    uint64_t hash = cpl_hash_mix((uint64_t)(uint32_t)from << 32 | (uint32_t)to) | 1;
    uint64_t at = hash >> 20 & loads->mask;
    while (loads->seen[at] && loads->seen[at] != hash)
        at = (at + 1) & loads->mask;
    bool new = !loads->seen[at];
    loads->seen[at] = hash;
    return new;
}

static void add_end(struct end_load *load, double edge_us, double cargo_us, double net_bytes,
                    double latency_us, bool new)
{
    load->edges_us += new ? edge_us : 0;
    load->cargo_us += cargo_us;
    load->net_bytes += net_bytes;
    load->latency_us = larger(load->latency_us, latency_us);
    load->n_edges += new;
    load->n_rides++;
}

static void touch(struct loads *loads, int32_t rank)
{
    if (!loads->out[rank].n_rides && !loads->in[rank].n_rides)
        loads->rank[loads->n_seen++] = rank;
}

/* Adds a message for dst, which goes on to rank `to`. */
static void add_ride(struct loads *loads, int32_t from, int32_t to, int32_t dst, double bytes)
{
    const struct cpl_machine *machine = loads->looks->input->machine;
    const struct cpl_costs *costs = &machine->costs;
    enum cpl_link_class class_ = cpl_machine_link(machine, from, to);
    const struct cpl_link_cost *link = cpl_machine_edge_cost(machine, class_);
    bool new = is_new(loads, from, to), leaves = class_ == CPL_LINK_NETWORK;
    double combined_us = loads->packs ? costs->combined_ns * 1e-3 : 0;
    double pack_us =
        loads->packs ? (costs->segment_ns + bytes * costs->packed_ns_per_byte) * 1e-3 : 0;
    double end_us = leaves ? 0 : bytes * link->ns_per_byte * 1e-3;
    double net_bytes = leaves ? bytes : 0;
    touch(loads, from);
    add_end(&loads->out[from], link->send_us + combined_us, end_us + pack_us, net_bytes,
            link->latency_us, new);
    touch(loads, to);
    add_end(&loads->in[to], link->recv_us + combined_us, end_us + (to == dst ? pack_us : 0),
            net_bytes, link->latency_us, new);
}

#define N_STEPS 1024

/* table[k]: combined messages for each one seen, where of the rides seen a fraction k / N_STEPS was
 * the first of a combined message. With r rides in each, of which one in `every` is seen, that
 * fraction is every/r (1 - (1 - 1/every)^r). */
static void tabulate(int32_t every, double table[N_STEPS + 1])
{
    double unseen = 1, missing = 1 - 1.0 / every;
    int k = N_STEPS;
    for (int64_t r = 1; r < (int64_t)MOST_RIDERS * every; r++) {
        unseen *= missing;
        double fraction = every * (1 - unseen) / (double)r;
        for (; k >= 0 && k >= (fraction - 1e-9) * N_STEPS; k--)
            table[k] = 1 / (1 - unseen);
    }
    for (; k >= 0; k--)
        table[k] = 1;
}

static double look_up(const double *table, double fraction)
{
    return table[(int)(fraction * N_STEPS + 0.5)];
}

/* The mean of all ranks' loads, and how much of what a rank's own differs from it is for another
 * reason than which messages were looked at: 0 (nothing) to 1. */
struct mean_load {
    double edges_us, cargo_us, net_bytes;
    double own;
    const double *part; /* of a rank that has so many rides, FEWEST_RIDES or more, the part of its
                           load that is not by chance */
};

/* Ranks of which at least so many rides were seen are judged by those that have about as many. */
#define FEWEST_RIDES 4

/* Numbers that are nearer than the root of so many variances are compared: their weights fall to
 * nothing there, so that they have the variance of chance. */
#define NEAR_DEVIATIONS 5
#define LEAST_CHANCE    0.01 /* the part of what differs that is always taken for chance */

/* Fills part[0 .. most]. By chance alone what is seen has a variance as large as its mean, but for
 * the part that is seen. Numbers as near as chance may bring them are taken to be of ranks that
 * differ around one number, by chance and by what they are; they lie as near to it then as they
 * would without chance, so that the largest is neither too large nor too small. Weighted to vary as
 * chance does, what is near has half of chance's variance if all is chance, and its mean is half
 * way to that number. */
static void find_parts(const struct loads *loads, int32_t most, double *part)
{
    for (int32_t k = 0; k <= most; k++) {
        double chance = k * (1 - 1.0 / loads->looks->every);
        double width = sqrt(NEAR_DEVIATIONS * chance), n = 0, sum = 0, squares = 0;
        part[k] = 1;
        if (k < FEWEST_RIDES || !loads->n_with[k] || width < 1)
            continue;
        for (int32_t away = -(int32_t)width; away <= width && k + away <= most; away++) {
            int32_t n_with = k + away < 0 ? 0 : loads->n_with[k + away];
            double weight = n_with * (1 - away * away / (width * width));
            n += weight;
            sum += weight * away;
            squares += weight * away * away;
        }
        double variance = squares / n - sum / n * (sum / n);
        double by_chance = variance > 0 ? chance / variance - 1 : 1;
        by_chance = by_chance < LEAST_CHANCE ? LEAST_CHANCE : by_chance < 1 ? by_chance : 1;
        double ways = (1 + by_chance) * (1 - sqrt(1 - by_chance)) / by_chance;
        part[k] = larger(0, 1 + ways * sum / (n + PRIOR) / k);
    }
}

/* All ranks of which little is seen are taken to differ alike, by chance and by what they are. */
static struct mean_load find_mean(struct loads *loads, const struct end_load *of_rank, double *part)
{
    struct mean_load mean = {.own = 1, .part = part};
    int32_t most = 0;
    double n = loads->looks->input->machine->n_ranks, every = loads->looks->every;
    double sum = 0, squares = 0;
    for (int32_t k = 0; k < loads->n_seen; k++) {
        const struct end_load *load = &of_rank[loads->rank[k]];
        mean.edges_us += load->edges_us / n;
        mean.cargo_us += load->cargo_us / n;
        mean.net_bytes += load->net_bytes / n;
        sum += load->n_rides;
        squares += (double)load->n_rides * load->n_rides;
        loads->n_with[load->n_rides]++;
        most = load->n_rides > most ? load->n_rides : most;
    }
    find_parts(loads, most, part);
    memset(loads->n_with, 0, ((size_t)most + 1) * sizeof *loads->n_with);
    double variance = squares / n - sum / n * (sum / n), chance = sum / n * (1 - 1 / every);
    if (variance > 0)
        mean.own = variance > chance ? (variance - chance) / variance : 0;
    return mean;
}

/* A rank's load without what is by chance. */
static struct end_load without_chance(const struct end_load *load, const struct mean_load *mean)
{
    struct end_load l = *load;
    if (load->n_rides >= FEWEST_RIDES) {
        double part = mean->part[load->n_rides];
        l.edges_us *= part;
        l.cargo_us *= part;
        l.net_bytes *= part;
        return l;
    }
    l.edges_us = mean->edges_us + mean->own * (load->edges_us - mean->edges_us);
    l.cargo_us = mean->cargo_us + mean->own * (load->cargo_us - mean->cargo_us);
    l.net_bytes = mean->net_bytes + mean->own * (load->net_bytes - mean->net_bytes);
    return l;
}

/* Of a rank's combined messages, all for each one seen; fraction: the wave's. */
static double all_for_each(const struct end_load *load, const struct mean_load *mean,
                           double fraction, const double *table)
{
    double own = (load->n_edges + PRIOR * fraction) / (load->n_rides + PRIOR);
    double of_wave = look_up(table, fraction);
    return of_wave + mean->own * (look_up(table, own) - of_wave);
}

/* What the ranks' loads in a wave are judged by. */
struct wave {
    struct mean_load out, in;
    double fraction;     /* of its rides that were the first of a combined message */
    const double *table; /* tabulate() */
};

/* The load of a rank of which so much was seen, and its time in the wave without its port. What its
 * network and its processor do overlaps but for the last of the combined messages that it receives.
 */
static double rank_us(const struct loads *loads, const struct wave *wave,
                      const struct end_load *out_seen, const struct end_load *in_seen,
                      struct cpl_rank_load *load)
{
    const struct cpl_costs *costs = &loads->looks->input->machine->costs;
    const struct end_load out = without_chance(out_seen, &wave->out);
    const struct end_load in = without_chance(in_seen, &wave->in);
    double every = loads->looks->every;
    double n_out = all_for_each(&out, &wave->out, wave->fraction, wave->table);
    double n_in = all_for_each(&in, &wave->in, wave->fraction, wave->table);
    *load = (struct cpl_rank_load){.latency_us = larger(out.latency_us, in.latency_us),
                                   .busy_us = n_out * out.edges_us + every * out.cargo_us,
                                   .recv_us = n_in * in.edges_us + every * in.cargo_us,
                                   .net_out = every * out.net_bytes,
                                   .net_in = every * in.net_bytes};
    load->busy_us += load->recv_us;
    double unpack_us = every * in.cargo_us;
    double wire_us = load->net_in * costs->link[CPL_LINK_NETWORK].ns_per_byte * 1e-3;
    double last_us = unpack_us < wire_us ? unpack_us : wire_us;
    return cpl_rank_load_time(costs, load) + (in.n_edges > 0 ? last_us / (n_in * in.n_edges) : 0);
}

/* All ranks' times; their loads go to the ports. Those of which nothing was seen have one load. */
static double all_ranks_us(struct loads *loads, const struct wave *wave)
{
    const struct cpl_machine *machine = loads->looks->input->machine;
    const struct end_load none = {0};
    struct cpl_rank_load unseen, load;
    double most_us = rank_us(loads, wave, &none, &none, &unseen);
    for (int32_t k = 0; k < machine->n_nodes; k++) {
        loads->port[k] = (struct cpl_port_load){0};
        cpl_port_load_add(&loads->port[k], &unseen);
        loads->port[k].net_out *= loads->node_size[k];
        loads->port[k].net_in *= loads->node_size[k];
    }
    for (int32_t k = 0; k < loads->n_seen; k++) {
        int32_t rank = loads->rank[k];
        struct cpl_port_load *port = &loads->port[machine->node[rank]];
        double us = rank_us(loads, wave, &loads->out[rank], &loads->in[rank], &load);
        most_us = larger(most_us, us);
        cpl_port_load_add(port, &load);
        port->net_out -= unseen.net_out;
        port->net_in -= unseen.net_in;
    }
    return most_us;
}

/* The time of the wave that has been added; clears the loads. */
static double finish_wave(struct loads *loads, const double *table)
{
    const struct cpl_machine *machine = loads->looks->input->machine;
    double n_edges = 0, n_rides = 0;
    for (int32_t k = 0; k < loads->n_seen; k++) {
        n_edges += loads->out[loads->rank[k]].n_edges;
        n_rides += loads->out[loads->rank[k]].n_rides;
    }
    const struct wave wave = {.out = find_mean(loads, loads->out, loads->part_out),
                              .in = find_mean(loads, loads->in, loads->part_in),
                              .fraction = n_rides > 0 ? n_edges / n_rides : 1,
                              .table = table};
    double most_us = all_ranks_us(loads, &wave);
    for (int32_t k = 0; k < machine->n_nodes; k++)
        most_us = larger(most_us, cpl_port_load_time(&machine->costs, &loads->port[k]));
    for (int32_t k = 0; k < loads->n_seen; k++) {
        loads->out[loads->rank[k]] = (struct end_load){0};
        loads->in[loads->rank[k]] = (struct end_load){0};
    }
    loads->n_seen = 0;
    memset(loads->seen, 0, (size_t)(loads->mask + 1) * sizeof *loads->seen);
    return most_us;
}

enum cpl_status cpl_router_look(const struct cpl_router_looks *looks,
                                const struct cpl_router *router, double *us)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct loads loads;
    double table[N_STEPS + 1];
    size_t n_waves = (size_t)router->n_waves;
    int32_t *stops = CPL_ARENA_ARRAY(&arena, int32_t, (size_t)looks->n * n_waves);
    enum cpl_status status = init_loads(&loads, looks, router->n_waves > 1, &arena);
    *us = 0;
    tabulate(looks->every, table);
    if (!stops)
        status = CPL_ERR_NOMEM;
    for (int64_t m = 0; m < looks->n && !status; m++)
        router->go(router, looks->source[m], looks->dst[m], stops + (size_t)m * n_waves);
    for (size_t w = 0; w < n_waves && !status; w++) {
        for (int64_t m = 0; m < looks->n; m++) {
            const int32_t *stop = stops + (size_t)m * n_waves + w;
            int32_t from = w > 0 ? stop[-1] : looks->source[m];
            if (from != *stop)
                add_ride(&loads, from, *stop, looks->dst[m], looks->bytes[m]);
        }
        *us += finish_wave(&loads, table);
    }
    cpl_arena_free(&arena);
    return status;
}
