/* What plans of routers take at least (router_sample.h). */
#include "planner/strategies/router_sample.h"

#include "planner/plan/plan_internal.h"

#include <stdlib.h>
#include <string.h>

#define MOST_HUBS     16  /* sources that send most */
#define MOST_SPACED   48  /* others */
#define MOST_MESSAGES 128 /* of a source */
#define MOST_STOPS    128
#define ROUNDING      1e-9

static bool comes_first(const struct cpl_pattern *pattern, int32_t a, int32_t b)
{
    return cpl_pattern_sends(pattern, a) > cpl_pattern_sends(pattern, b);
}

/* Keeps the ranks that send most, most first, in the first places. */
static int32_t find_hubs(const struct cpl_pattern *pattern, int32_t *hub)
{
    int32_t n = 0;
    for (int32_t i = 0; i < pattern->n_ranks; i++) {
        int32_t k = n;
        while (k > 0 && comes_first(pattern, i, hub[k - 1]))
            k--;
        if (k == MOST_HUBS)
            continue;
        n += n < MOST_HUBS;
        memmove(hub + k + 1, hub + k, (size_t)(n - 1 - k) * sizeof *hub);
        hub[k] = i;
    }
    return n;
}

enum cpl_status cpl_router_sample_init(struct cpl_router_sample *sample,
                                       const struct cpl_strategy_input *input,
                                       struct cpl_arena *arena)
{
    const struct cpl_pattern *pattern = input->pattern;
    *sample = (struct cpl_router_sample){
        .input = input,
        .source = CPL_ARENA_ARRAY(arena, int32_t, MOST_HUBS + MOST_SPACED),
        .reached = CPL_ARENA_ARRAY(arena, int32_t, pattern->n_ranks),
        .stops = CPL_ARENA_ARRAY(arena, int32_t, MOST_STOPS),
        .path = CPL_ARENA_ARRAY(arena, int32_t, MOST_STOPS + 1),
        .wave = CPL_ARENA_ARRAY(arena, int32_t, MOST_STOPS + 1),
        .is_sampled = CPL_ARENA_ARRAY(arena, bool, pattern->n_ranks)};
    if (!sample->source || !sample->reached || !sample->stops || !sample->path || !sample->wave ||
        !sample->is_sampled)
        return CPL_ERR_NOMEM;
    sample->n = find_hubs(pattern, sample->source);
    int32_t n = pattern->n_ranks < MOST_SPACED ? pattern->n_ranks : MOST_SPACED;
    for (int32_t k = 0; k < n; k++)
        sample->source[sample->n++] = (int32_t)((int64_t)pattern->n_ranks * k / n);
    for (int32_t k = 0; k < sample->n; k++)
        sample->is_sampled[sample->source[k]] = true;
    return CPL_OK;
}

/* Least times, as if packing took nothing and with it: plans of one wave pack nothing. */
struct times {
    double bare_us, packed_us;
};

static struct times longer(struct times a, struct times b)
{
    return (struct times){a.bare_us > b.bare_us ? a.bare_us : b.bare_us,
                          a.packed_us > b.packed_us ? a.packed_us : b.packed_us};
}

static struct times shorter(struct times a, struct times b)
{
    return (struct times){a.bare_us < b.bare_us ? a.bare_us : b.bare_us,
                          a.packed_us < b.packed_us ? a.packed_us : b.packed_us};
}

static struct times sum(struct times a, struct times b)
{
    return (struct times){a.bare_us + b.bare_us, a.packed_us + b.packed_us};
}

/* What it takes to have a message in a combined message, and on its way. */
struct hop {
    struct times edge;    /* the sender's time for the combined message */
    struct times payload; /* and for the message in it */
    struct times rest;    /* until it has been received */
};

static struct hop hop_of(const struct cpl_strategy_input *input, int32_t from, int32_t to,
                         double bytes)
{
    const struct cpl_machine *machine = input->machine;
    const struct cpl_costs *costs = &machine->costs;
    enum cpl_link_class class_ = cpl_machine_link(machine, from, to);
    const struct cpl_link_cost *link = cpl_machine_edge_cost(machine, class_);
    double end_us = class_ == CPL_LINK_NETWORK ? 0 : bytes * link->ns_per_byte * 1e-3;
    double pack_us = (costs->segment_ns + bytes * costs->packed_ns_per_byte) * 1e-3;
    double way_us = link->latency_us;
    if (class_ == CPL_LINK_NETWORK)
        way_us += bytes *
                  (link->ns_per_byte > costs->node_ns_per_byte ? link->ns_per_byte
                                                               : costs->node_ns_per_byte) *
                  1e-3;
    double rest_us = way_us + link->recv_us + end_us;
    return (struct hop){{link->send_us, link->send_us + costs->combined_ns * 1e-3},
                        {end_us, end_us + pack_us},
                        {rest_us, rest_us}};
}

/* What the messages of a source take at least; *forwards becomes true when one of them has more
 * than one hop. */
static struct times source_us(const struct cpl_router_sample *sample,
                              const struct cpl_router *router, int32_t k, bool *forwards)
{
    const struct cpl_pattern *pattern = sample->input->pattern;
    int32_t source = sample->source[k];
    int64_t begin = pattern->first[source], n = cpl_pattern_sends(pattern, source);
    int64_t stride = 1 + (n - 1) / MOST_MESSAGES;
    struct times sends = {0, 0}, rest = {1e300, 1e300}, way = {0, 0};
    for (int64_t m = begin; m < begin + n; m += stride) {
        double bytes = (double)pattern->volume[m] * sample->input->unit_bytes;
        int32_t n_path = cpl_router_path(router, source, pattern->dst[m], sample->stops,
                                         sample->path, sample->wave);
        struct times after = {0, 0};
        *forwards |= n_path > 2;
        for (int32_t h = 1; h < n_path; h++) {
            struct hop hop = hop_of(sample->input, sample->path[h - 1], sample->path[h], bytes);
            if (h > 1)
                after = sum(after, sum(hop.edge, hop.payload));
            after = sum(after, hop.rest);
        }
        struct hop first = hop_of(sample->input, source, sample->path[1], bytes);
        if (sample->reached[sample->path[1]] != k + 1) {
            sample->reached[sample->path[1]] = k + 1;
            sends = sum(sends, first.edge);
        }
        sends = sum(sends, first.payload);
        rest = shorter(rest, after);
        way = longer(way, sum(after, sum(first.edge, first.payload)));
    }
    return n > 0 ? longer(way, sum(sends, rest)) : way;
}

static bool says_nothing(const struct cpl_pattern *pattern, int32_t n_waves)
{
    return pattern->pairs || pattern->payload_class || n_waves > MOST_STOPS;
}

double cpl_router_sample_bound(const struct cpl_router_sample *sample,
                               const struct cpl_router *router)
{
    const struct cpl_pattern *pattern = sample->input->pattern;
    struct times least = {0, 0};
    bool forwards = false;
    if (says_nothing(pattern, router->n_waves))
        return 0;
    memset(sample->reached, 0, (size_t)pattern->n_ranks * sizeof *sample->reached);
    for (int32_t k = 0; k < sample->n; k++)
        least = longer(least, source_us(sample, router, k, &forwards));
    return (forwards ? least.packed_us : least.bare_us) * (1 - ROUNDING);
}

/* A message at one end of one of its hops. */
struct ride {
    int32_t rank, wave, peer;
    bool sends;
    double us; /* what it takes there, in a combined message that is there already */
};

static int compare_rides(const void *a, const void *b)
{
    const struct ride *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->wave != y->wave)
        return x->wave < y->wave ? -1 : 1;
    if (x->peer != y->peer)
        return x->peer < y->peer ? -1 : 1;
    return (int)x->sends - (int)y->sends;
}

struct rides {
    struct ride *ride;
    size_t n, max;
};

static enum cpl_status add_ride(struct rides *rides, const struct ride *ride)
{
    if (rides->n == rides->max) {
        size_t max = rides->max ? 2 * rides->max : 1024;
        struct ride *more = realloc(rides->ride, max * sizeof *more);
        if (!more)
            return CPL_ERR_NOMEM;
        rides->ride = more;
        rides->max = max;
    }
    rides->ride[rides->n++] = *ride;
    return CPL_OK;
}

/* Adds the ends of message m's hops that are at sampled ranks. */
static enum cpl_status add_rides(const struct cpl_router_sample *sample,
                                 const struct cpl_routes *routes, int32_t source, int64_t m,
                                 struct rides *rides)
{
    const struct cpl_strategy_input *input = sample->input;
    int32_t dst = input->pattern->dst[m];
    double bytes = (double)input->pattern->volume[m] * input->unit_bytes;
    int32_t n_path = cpl_plan_simple_path(cpl_routes_of(routes, m), routes->n_waves, source, dst,
                                          sample->path, sample->wave);
    enum cpl_status status = CPL_OK;
    for (int32_t h = 1; h < n_path && !status; h++) {
        int32_t from = sample->path[h - 1], to = sample->path[h];
        double us = hop_of(input, from, to, bytes).payload.bare_us;
        if (sample->is_sampled[from])
            status = add_ride(rides, &(struct ride){from, sample->wave[h], to, true, us});
        if (sample->is_sampled[to] && !status)
            status = add_ride(rides, &(struct ride){to, sample->wave[h], from, false, us});
    }
    return status;
}

/* What the busiest rank works; the rides of a rank, and of a combined message, lie together. */
static double busiest_us(const struct cpl_machine *machine, const struct rides *rides)
{
    double most_us = 0, us = 0;
    for (size_t k = 0; k < rides->n; k++) {
        const struct ride *ride = &rides->ride[k];
        if (k == 0 || ride->rank != ride[-1].rank)
            us = 0;
        if (k == 0 || compare_rides(ride, ride - 1) != 0) {
            const struct cpl_link_cost *link =
                cpl_machine_edge_cost(machine, cpl_machine_link(machine, ride->rank, ride->peer));
            us += ride->sends ? link->send_us : link->recv_us;
        }
        us += ride->us;
        most_us = us > most_us ? us : most_us;
    }
    return most_us * (1 - ROUNDING);
}

enum cpl_status cpl_router_sample_busy(const struct cpl_router_sample *sample,
                                       const struct cpl_routes *routes, double *us)
{
    const struct cpl_pattern *pattern = sample->input->pattern;
    struct rides rides = {NULL, 0, 0};
    enum cpl_status status = CPL_OK;
    *us = 0;
    if (says_nothing(pattern, routes->n_waves))
        return CPL_OK;
    for (int32_t i = 0; i < pattern->n_ranks && !status; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1] && !status; m++) {
            const int32_t *stops = cpl_routes_of(routes, m);
            bool hits = sample->is_sampled[i];
            for (int32_t w = 0; w < routes->n_waves; w++)
                hits |= sample->is_sampled[stops[w]];
            if (hits)
                status = add_rides(sample, routes, i, m, &rides);
        }
    if (!status && rides.n > 0) {
        qsort(rides.ride, rides.n, sizeof *rides.ride, compare_rides);
        *us = busiest_us(sample->input->machine, &rides);
    }
    free(rides.ride);
    return status;
}
