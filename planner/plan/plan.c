/* Building plans from routes (plan.h).
 *
 * Each bundle's routes are reduced to hops, which make the edges (plan_hops.h): a message of its
 * own takes its path without loops, the messages of one payload a tree. */
#include "planner/plan.h"

#include "planner/base/hash.h"
#include "planner/plan/plan_hops.h"
#include "planner/plan/plan_internal.h"

#include <limits.h>
#include <string.h>

#define BIT_OF(rank) (UINT64_C(1) << ((rank)&63))

struct builder {
    const struct cpl_pattern *pattern;
    const struct cpl_routes *routes;
    struct cpl_plan *plan;
    struct cpl_arena scratch;
    struct cpl_error *error;
    int32_t *bundle_of; /* message -> bundle */
    int32_t *next_of;   /* message -> the next one with the same bundle, in numbers of messages from
                           it; 0: none; NULL when no two have the same */
    struct cpl_hops hops;
    /* The tree of the bundle under construction: what is known of each rank it touches. */
    int32_t *arrival; /* rank -> wave of arrival, -1: not reached */
    int32_t *parent;  /* rank -> rank it came from */
    int32_t *touched; /* the reached ranks */
    int32_t n_touched;
};

/* leader[m]: the first message with the same payload; chains the messages with the same. */
static enum cpl_status find_leaders(struct builder *b, int64_t *leader)
{
    const struct cpl_pattern *p = b->pattern;
    if (cpl_pattern_leaders(p, leader))
        return cpl_fail_memory(b->error, "payload classes");
    if (!p->payload_class)
        return CPL_OK;
    int32_t *last = CPL_ARENA_ARRAY(&b->scratch, int32_t, p->n_messages); /* of a leader, from it */
    b->next_of = CPL_ARENA_ARRAY(&b->scratch, int32_t, p->n_messages);
    if (!last || !b->next_of)
        return cpl_fail_memory(b->error, "payload classes");
    for (int64_t m = 0; m < p->n_messages; m++) {
        int64_t before = leader[m] + last[leader[m]];
        b->next_of[before] = (int32_t)(m - before);
        last[leader[m]] = (int32_t)(m - leader[m]);
    }
    return CPL_OK;
}

enum cpl_status cpl_plan_make_bundles(const struct cpl_pattern *p, const int64_t *leader,
                                      struct cpl_plan *plan, int32_t *bundle_of,
                                      struct cpl_error *error)
{
    plan->bundles = CPL_ARENA_ARRAY(&plan->arena, struct cpl_bundle, p->n_messages);
    plan->dests = CPL_ARENA_ARRAY(&plan->arena, int32_t, p->n_messages);
    if (!plan->bundles || !plan->dests)
        return cpl_fail_memory(error, "the plan's bundles");
    for (int32_t i = 0; i < p->n_ranks; i++)
        for (int64_t m = p->first[i]; m < p->first[i + 1]; m++) {
            if (leader[m] == m) {
                plan->bundles[plan->n_bundles] =
                    (struct cpl_bundle){.owner = i, .message = m, .volume = p->volume[m]};
                bundle_of[m] = (int32_t)plan->n_bundles++;
            } else {
                bundle_of[m] = bundle_of[leader[m]];
            }
            plan->bundles[bundle_of[m]].n_dests++;
        }
    for (int64_t k = 0; k < plan->n_bundles; k++) {
        plan->bundles[k].first_dest = plan->n_dests;
        plan->n_dests += plan->bundles[k].n_dests;
        plan->bundles[k].n_dests = 0;
    }
    for (int64_t m = 0; m < p->n_messages; m++) {
        struct cpl_bundle *bundle = &plan->bundles[bundle_of[m]];
        plan->dests[bundle->first_dest + bundle->n_dests++] = p->dst[m];
    }
    return CPL_OK;
}

static enum cpl_status make_bundles(struct builder *b)
{
    int64_t *leader = CPL_ARENA_ARRAY(&b->scratch, int64_t, b->pattern->n_messages);
    b->bundle_of = CPL_ARENA_ARRAY(&b->scratch, int32_t, b->pattern->n_messages);
    if (!leader || !b->bundle_of)
        return cpl_fail_memory(b->error, "the plan's bundles");
    enum cpl_status status = find_leaders(b, leader);
    return status ? status
                  : cpl_plan_make_bundles(b->pattern, leader, b->plan, b->bundle_of, b->error);
}

int32_t cpl_plan_simple_path(const int32_t *stops, int32_t n_waves, int32_t src, int32_t dst,
                             int32_t *path, int32_t *arrival)
{
    int32_t n = 1;
    path[0] = src;
    arrival[0] = 0;
    uint64_t been =
        BIT_OF(src); /* ranks that share their bit with one on the path, or with one cut */
    for (int32_t w = 1; w <= n_waves && path[n - 1] != dst; w++) {
        int32_t k = been & BIT_OF(stops[w - 1]) ? n - 1 : -1;
        while (k >= 0 && path[k] != stops[w - 1])
            k--;
        if (k >= 0) {
            n = k + 1; /* back where it has been: the loop carried nothing */
        } else {
            path[n] = stops[w - 1];
            arrival[n++] = w;
            been |= BIT_OF(stops[w - 1]);
        }
    }
    return n;
}

static int32_t path_of(const struct builder *b, int64_t m, int32_t src, int32_t *path,
                       int32_t *arrival)
{
    return cpl_plan_simple_path(cpl_routes_of(b->routes, m), b->routes->n_waves, src,
                                b->pattern->dst[m], path, arrival);
}

static enum cpl_status add_path(struct builder *b, int32_t bundle, int32_t n, const int32_t *path,
                                const int32_t *arrival)
{
    enum cpl_status status = CPL_OK;
    for (int32_t k = 1; k < n && !status; k++)
        status = cpl_hops_add(&b->hops, arrival[k], path[k - 1], path[k], bundle);
    return status;
}

/* Joins a path to the tree: from the last rank on it that holds the bundle early enough. A rank
 * that the tree reached later than the path does is reached by the path from now on. */
static void join_tree(struct builder *b, int32_t n, const int32_t *path, const int32_t *arrival)
{
    int32_t k = n - 1;
    while (k > 0 && (b->arrival[path[k]] < 0 || b->arrival[path[k]] > arrival[k]))
        k--;
    for (k++; k < n; k++) {
        int32_t rank = path[k];
        if (b->arrival[rank] < 0)
            b->touched[b->n_touched++] = rank;
        b->arrival[rank] = arrival[k];
        b->parent[rank] = path[k - 1];
    }
}

/* Takes ranks out of the tree that neither are destinations nor forward. */
static void prune_tree(struct builder *b, const struct cpl_bundle *bundle, int32_t *n_children)
{
    const int32_t *dests = b->plan->dests + bundle->first_dest;
    for (int32_t k = 0; k < b->n_touched; k++)
        n_children[b->parent[b->touched[k]]]++;
    for (int32_t k = 0; k < bundle->n_dests; k++)
        n_children[dests[k]]++; /* being a destination keeps a rank as a child does */
    for (int32_t k = 0; k < b->n_touched; k++) {
        int32_t rank = b->touched[k];
        while (rank != bundle->owner && b->arrival[rank] >= 0 && n_children[rank] == 0) {
            b->arrival[rank] = -1;
            rank = b->parent[rank];
            n_children[rank]--;
        }
    }
    n_children[bundle->owner] = 0;
    for (int32_t k = 0; k < bundle->n_dests; k++)
        n_children[dests[k]] = 0;
    for (int32_t k = 0; k < b->n_touched; k++)
        n_children[b->touched[k]] = 0;
}

/* Adds the tree's hops, in no particular order (they are sorted later), and clears the tree. */
static enum cpl_status emit_tree(struct builder *b, int32_t bundle)
{
    enum cpl_status status = CPL_OK;
    for (int32_t k = 0; k < b->n_touched; k++) {
        int32_t rank = b->touched[k];
        if (b->arrival[rank] > 0 && !status)
            status = cpl_hops_add(&b->hops, b->arrival[rank], b->parent[rank], rank, bundle);
        b->arrival[rank] = -1;
    }
    b->arrival[b->plan->bundles[bundle].owner] = -1;
    b->n_touched = 0;
    return status;
}

/* Hops of a bundle with several destinations, led by message lead of rank. */
static enum cpl_status route_shared(struct builder *b, int32_t rank, int64_t lead, int32_t *path,
                                    int32_t *arrival, int32_t *n_children)
{
    int32_t bundle = b->bundle_of[lead];
    b->arrival[rank] = 0;
    int32_t step = 1;
    for (int64_t m = lead; step > 0; m += step) {
        join_tree(b, path_of(b, m, rank, path, arrival), path, arrival);
        step = b->next_of[m];
    }
    prune_tree(b, &b->plan->bundles[bundle], n_children);
    return emit_tree(b, bundle);
}

/* Hops of a rank's bundles, in the order of the bundles: sorting keeps it within an edge. */
static enum cpl_status route_rank(struct builder *b, int32_t rank, int32_t *path, int32_t *arrival,
                                  int32_t *n_children)
{
    const struct cpl_pattern *p = b->pattern;
    enum cpl_status status = CPL_OK;
    for (int64_t m = p->first[rank]; m < p->first[rank + 1] && !status; m++) {
        int32_t bundle = b->bundle_of[m];
        if (b->plan->bundles[bundle].n_dests == 1) {
            int32_t n = path_of(b, m, rank, path, arrival);
            status = add_path(b, bundle, n, path, arrival);
        } else if (b->plan->bundles[bundle].message == m) {
            status = route_shared(b, rank, m, path, arrival, n_children);
        }
    }
    return status;
}

static enum cpl_status make_hops(struct builder *b)
{
    int32_t n_ranks = b->pattern->n_ranks;
    int32_t *path = CPL_ARENA_ARRAY(&b->scratch, int32_t, b->routes->n_waves + 1);
    int32_t *arrival = CPL_ARENA_ARRAY(&b->scratch, int32_t, b->routes->n_waves + 1);
    int32_t *n_children = CPL_ARENA_ARRAY(&b->scratch, int32_t, n_ranks);
    b->arrival = CPL_ARENA_ARRAY(&b->scratch, int32_t, n_ranks);
    b->parent = CPL_ARENA_ARRAY(&b->scratch, int32_t, n_ranks);
    b->touched = CPL_ARENA_ARRAY(&b->scratch, int32_t, n_ranks);
    if (!path || !arrival || !n_children || !b->arrival || !b->parent || !b->touched)
        return cpl_fail_memory(b->error, "the plan's routes");
    for (int32_t i = 0; i < n_ranks; i++)
        b->arrival[i] = -1;
    enum cpl_status status = cpl_hops_init(&b->hops, b->routes->n_waves);
    for (int32_t i = 0; i < n_ranks && !status; i++)
        status = route_rank(b, i, path, arrival, n_children);
    return status ? cpl_fail_memory(b->error, "the plan's hops") : CPL_OK;
}

/* Whether the bundle's destinations are in the list, in a plan that may be broken. */
static bool has_dests(const struct cpl_plan *plan, const struct cpl_bundle *bundle)
{
    return bundle->first_dest >= 0 && bundle->first_dest <= plan->n_dests &&
           bundle->n_dests <= plan->n_dests - bundle->first_dest;
}

uint64_t cpl_plan_edge_hash(const struct cpl_plan *plan, const struct cpl_edge *edge,
                            const int32_t *rank_of, int32_t place)
{
    uint64_t hash = cpl_hash_word(CPL_HASH_START, (uint64_t)place);
    int32_t from = rank_of ? rank_of[edge->from] : edge->from;
    int32_t to = rank_of ? rank_of[edge->to] : edge->to;
    hash = cpl_hash_word(hash, (uint64_t)from << 32 | (uint32_t)to);
    hash = cpl_hash_word(hash, (uint64_t)edge->wave << 32 | (uint32_t)edge->n_segments);
    if (edge->first_segment < 0 || edge->n_segments > plan->n_segments - edge->first_segment)
        return cpl_hash_mix(hash); /* a broken plan */
    for (int32_t k = 0; k < edge->n_segments; k++) {
        int32_t b = plan->segments[edge->first_segment + k];
        if (b < 0 || b >= plan->n_bundles || !has_dests(plan, &plan->bundles[b]))
            continue;
        const struct cpl_bundle *bundle = &plan->bundles[b];
        int32_t owner = rank_of ? rank_of[bundle->owner] : bundle->owner;
        hash = cpl_hash_word(hash, (uint64_t)owner << 32 | (uint32_t)bundle->n_dests);
        for (int32_t d = 0; d < bundle->n_dests; d++) {
            int32_t dest = plan->dests[bundle->first_dest + d];
            hash = cpl_hash_word(hash, (uint64_t)(rank_of ? rank_of[dest] : dest));
        }
        if (plan->has_parts) /* parts can have the same destinations */
            hash = cpl_hash_word(hash, (uint64_t)bundle->message);
    }
    return cpl_hash_mix(hash);
}

uint64_t cpl_plan_join_hashes(uint64_t pattern_fingerprint, int32_t n_ranks, int32_t n_waves,
                              uint64_t edges)
{
    uint64_t hash = cpl_hash_word(CPL_HASH_START, pattern_fingerprint);
    hash = cpl_hash_word(hash, (uint64_t)n_ranks);
    hash = cpl_hash_word(hash, (uint64_t)n_waves);
    return cpl_hash_mix(cpl_hash_word(hash, edges));
}

uint64_t cpl_plan_compute_fingerprint(const struct cpl_plan *plan)
{
    uint64_t edges = 0;
    int32_t place = 0;
    for (int64_t e = 0; e < plan->n_edges; e++) {
        const struct cpl_edge *edge = &plan->edges[e];
        bool follows = e > 0 && edge->from == edge[-1].from && edge->wave == edge[-1].wave;
        place = follows ? place + 1 : 0;
        edges += cpl_plan_edge_hash(plan, edge, NULL, place);
    }
    return cpl_plan_join_hashes(plan->pattern_fingerprint, plan->n_ranks, plan->n_waves, edges);
}

static enum cpl_status check_routes(const struct cpl_pattern *pattern,
                                    const struct cpl_routes *routes, struct cpl_error *error)
{
    if (routes->n_messages != pattern->n_messages || routes->n_waves < 1)
        return cpl_fail(error, CPL_ERR_ARG, "routes of %lld messages do not fit a pattern of %lld",
                        (long long)routes->n_messages, (long long)pattern->n_messages);
    if (pattern->n_messages > INT32_MAX)
        return cpl_fail(error, CPL_ERR_ARG, "a plan has at most %d messages", INT32_MAX);
    for (int64_t m = 0; m < pattern->n_messages; m++) {
        const int32_t *stops = cpl_routes_of(routes, m);
        for (int32_t w = 0; w < routes->n_waves; w++)
            if (stops[w] < 0 || stops[w] >= pattern->n_ranks)
                return cpl_fail(error, CPL_ERR_ARG, "message %lld stops at %d, which is no rank",
                                (long long)m, stops[w]);
        if (stops[routes->n_waves - 1] != pattern->dst[m])
            return cpl_fail(error, CPL_ERR_ARG, "message %lld ends at rank %d instead of %d",
                            (long long)m, stops[routes->n_waves - 1], pattern->dst[m]);
    }
    return CPL_OK;
}

enum cpl_status cpl_plan_build_unmarked(const struct cpl_pattern *pattern,
                                        const struct cpl_routes *routes, struct cpl_plan *plan,
                                        struct cpl_error *error)
{
    struct cpl_plan built = {
        .n_ranks = pattern->n_ranks, .has_parts = pattern->pairs, .arena = CPL_ARENA_EMPTY};
    struct builder b = {.pattern = pattern,
                        .routes = routes,
                        .plan = &built,
                        .scratch = CPL_ARENA_EMPTY,
                        .error = error};
    enum cpl_status status = check_routes(pattern, routes, error);
    if (!status)
        status = make_bundles(&b);
    if (!status)
        status = make_hops(&b);
    cpl_arena_free(&b.scratch);
    if (!status)
        status = cpl_hops_make_edges(&b.hops, &built, error);
    cpl_hops_free(&b.hops);
    if (status) {
        cpl_plan_free(&built);
        return status;
    }
    *plan = built;
    return CPL_OK;
}

void cpl_plan_mark(const struct cpl_pattern *pattern, struct cpl_plan *plan)
{
    plan->pattern_fingerprint = cpl_pattern_fingerprint(pattern);
    plan->fingerprint = cpl_plan_compute_fingerprint(plan);
}

enum cpl_status cpl_plan_build(const struct cpl_pattern *pattern, const struct cpl_routes *routes,
                               struct cpl_plan *plan, struct cpl_error *error)
{
    enum cpl_status status = cpl_plan_build_unmarked(pattern, routes, plan, error);
    if (!status)
        cpl_plan_mark(pattern, plan);
    return status;
}

void cpl_plan_free(struct cpl_plan *plan)
{
    cpl_arena_free(&plan->arena);
    *plan = (struct cpl_plan){.arena = CPL_ARENA_EMPTY};
}

bool cpl_plan_is_dest(const struct cpl_plan *plan, const struct cpl_bundle *bundle, int32_t rank)
{
    int32_t low = 0, high = bundle->n_dests;
    const int32_t *dests = plan->dests + bundle->first_dest;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (dests[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < bundle->n_dests && dests[low] == rank;
}
