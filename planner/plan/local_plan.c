/* Slices that ranks make for themselves (local_plan.h).
 *
 * All messages on an edge from or to a rank pass through that rank, so the plan of those messages
 * alone has these edges whole. It is built over the ranks that occur on their ways, numbered in
 * ascending order, which keeps every order that a plan has. What the other ranks must tell is the
 * number of edges that receivers send later, which the order of sending goes by, and which waves
 * anything travels in at all. */
#include "planner/plan/local_plan.h"

#include "planner/base/hash.h"
#include "planner/rank_plan.h"

#include <stdlib.h>
#include <string.h>

struct cpl_passing_here cpl_passing_here(const struct cpl_router *router, int32_t rank,
                                         const struct cpl_passing *passing,
                                         struct cpl_route_room *room)
{
    int32_t n =
        cpl_router_path(router, passing->src, passing->dst, room->stops, room->path, room->wave);
    int32_t k = 0;
    while (k < n - 1 && room->path[k] != rank)
        k++;
    struct cpl_passing_here here = {.from = -1, .to = -1, .n_hops = n - 1, .rest = CPL_HASH_START};
    if (k > 0) {
        here.from = room->path[k - 1];
        here.from_wave = room->wave[k];
    }
    if (k < n - 1) {
        here.to = room->path[k + 1];
        here.to_wave = room->wave[k + 1];
    }
    for (k++; k < n; k++)
        here.rest =
            cpl_hash_word(here.rest, (uint64_t)room->path[k] << 32 | (uint32_t)room->wave[k]);
    return here;
}

static int by_edge(const void *a, const void *b)
{
    uint64_t x = cpl_local_edge_key(a), y = cpl_local_edge_key(b);
    return (x > y) - (x < y);
}

static int by_value(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Sorts n values and drops those that occur again. Returns how many are left. */
static int64_t distinct(int32_t *values, int64_t n)
{
    int64_t kept = 0;
    qsort(values, (size_t)n, sizeof *values, by_value);
    for (int64_t k = 0; k < n; k++)
        if (kept == 0 || values[kept - 1] != values[k])
            values[kept++] = values[k];
    return kept;
}

void cpl_local_count_own(struct cpl_local_counts *counts, const struct cpl_passing_here *here,
                         int64_t volume)
{
    counts->messages++;
    counts->volume += volume;
    counts->hops += here->n_hops;
    counts->most_hops = here->n_hops > counts->most_hops ? here->n_hops : counts->most_hops;
}

int64_t cpl_local_join_edges(struct cpl_local_edge *edges, int64_t n)
{
    int64_t kept = 0;
    qsort(edges, (size_t)n, sizeof *edges, by_edge);
    for (int64_t k = 0; k < n; k++) {
        if (kept > 0 && by_edge(&edges[kept - 1], &edges[k]) == 0) {
            edges[kept - 1].n += edges[k].n;
            edges[kept - 1].volume += edges[k].volume;
        } else {
            edges[kept++] = edges[k];
        }
    }
    return kept;
}

enum cpl_status cpl_local_loads(const struct cpl_router *router, const struct cpl_machine *machine,
                                int32_t rank, const struct cpl_local_edge *edges, int64_t n_edges,
                                double unit_bytes, struct cpl_rank_load *load,
                                struct cpl_local_counts *counts, struct cpl_error *error)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    int32_t *to = CPL_ARENA_ARRAY(&scratch, int32_t, n_edges);
    int64_t mpi[2] = {0, 0};
    if (!to)
        return cpl_fail_memory(error, "a rank's loads");
    memset(load, 0, (size_t)router->n_waves * sizeof *load);
    for (int64_t k = 0; k < n_edges; k++) {
        const struct cpl_local_edge *edge = &edges[k];
        bool by_lane = cpl_machine_is_lane(machine, rank, edge->peer);
        cpl_rank_load_add(&load[edge->wave - 1], machine,
                          cpl_machine_link(machine, rank, edge->peer), edge->sends,
                          (double)edge->volume * unit_bytes,
                          (double)edge->n * machine->costs.segment_ns * 1e-3);
        mpi[edge->sends] += !by_lane;
        if (edge->sends) {
            to[counts->sends++] = edge->peer;
            counts->lanes += by_lane;
            counts->carried += edge->volume;
        } else {
            counts->recvs++;
        }
    }
    counts->mpi = mpi[0] > mpi[1] ? mpi[0] : mpi[1];
    counts->set = distinct(to, counts->sends);
    cpl_arena_free(&scratch);
    return CPL_OK;
}

void cpl_local_add_endings(const struct cpl_machine *machine, const struct cpl_endings *endings,
                           double unit_bytes, struct cpl_rank_load *load,
                           struct cpl_local_counts *counts)
{
    int64_t mpi = 0;
    for (int class_ = 0; class_ < CPL_N_LINKS; class_++) {
        int64_t n = endings->n[class_];
        double recv_us = cpl_machine_edge_cost(machine, class_)->recv_us;
        if (n == 0)
            continue;
        /* one of them, and what the others take more */
        cpl_rank_load_add(load, machine, class_, false,
                          (double)endings->volume[class_] * unit_bytes,
                          (double)n * machine->costs.segment_ns * 1e-3 + (double)(n - 1) * recv_us);
        counts->recvs += n;
        mpi += machine->lanes && class_ < CPL_LINK_NETWORK ? 0 : n;
    }
    counts->mpi = mpi > counts->mpi ? mpi : counts->mpi;
}

/* The ranks on the ways, ascending; and the waves in which anything travels. */
static enum cpl_status find_ranks(const struct cpl_router *router,
                                  const struct cpl_passing *passing, int64_t n,
                                  struct cpl_local_plan *local, int32_t *n_found)
{
    struct cpl_route_room room;
    int32_t *found =
        CPL_ARENA_ARRAY(&local->arena, int32_t, (n + 1) * ((int64_t)router->n_waves + 1));
    int64_t n_all = 0;
    if (!found)
        return CPL_ERR_NOMEM;
    found[n_all++] = local->me;
    for (int64_t k = 0; k < n; k++) {
        int32_t on_way = cpl_router_path(router, passing[k].src, passing[k].dst, room.stops,
                                         room.path, room.wave);
        for (int32_t i = 0; i < on_way; i++) {
            found[n_all++] = room.path[i];
            local->waves |= i > 0 ? UINT64_C(1) << (room.wave[i] - 1) : 0;
        }
    }
    local->rank_of = found;
    *n_found = (int32_t)distinct(found, n_all);
    return CPL_OK;
}

/* The number of a rank that occurs on the ways. */
static int32_t number_of(const struct cpl_local_plan *local, int32_t n, int32_t rank)
{
    const int32_t *at = bsearch(&rank, local->rank_of, (size_t)n, sizeof rank, by_value);
    return (int32_t)(at - local->rank_of);
}

static enum cpl_status build_pattern(struct cpl_local_plan *local, int32_t n_found,
                                     const struct cpl_passing *passing, int64_t n,
                                     struct cpl_error *error)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    struct cpl_pattern_entry *entries = CPL_ARENA_ARRAY(&scratch, struct cpl_pattern_entry, n);
    if (!entries)
        return cpl_fail_memory(error, "a rank's messages");
    for (int64_t k = 0; k < n; k++)
        entries[k] = (struct cpl_pattern_entry){number_of(local, n_found, passing[k].src),
                                                number_of(local, n_found, passing[k].dst),
                                                passing[k].volume, -1};
    enum cpl_status status = cpl_pattern_build(n_found, entries, n, &local->pattern, error);
    cpl_arena_free(&scratch);
    return status;
}

static enum cpl_status build_plan(const struct cpl_router *router, struct cpl_local_plan *local,
                                  struct cpl_error *error)
{
    const struct cpl_pattern *p = &local->pattern;
    struct cpl_routes routes;
    struct cpl_route_room room;
    enum cpl_status status = cpl_routes_init(p, router->n_waves, &routes, error);
    if (status)
        return status;
    for (int32_t i = 0; i < p->n_ranks; i++)
        for (int64_t m = p->first[i]; m < p->first[i + 1]; m++) {
            int32_t *stops = cpl_routes_of(&routes, m);
            cpl_router_straight(router, local->rank_of[i], local->rank_of[p->dst[m]],
                                router->n_waves, room.stops, room.path, room.wave);
            for (int32_t w = 0; w < router->n_waves; w++)
                stops[w] = number_of(local, p->n_ranks, room.stops[w]);
        }
    status = cpl_plan_build(p, &routes, &local->plan, error);
    cpl_routes_free(&routes);
    return status;
}

/* The router's wave that is the n-th (from 1) of the set. */
static int32_t wave_of(uint64_t waves, int32_t n)
{
    int32_t wave = 1;
    for (; n > 1 || !(waves & 1); waves >>= 1, wave++)
        n -= (int32_t)(waves & 1);
    return wave;
}

/* The place of a wave in the set, from 1. */
static int32_t place_of(uint64_t waves, int32_t wave)
{
    int32_t place = 0;
    for (int32_t w = 1; w <= wave; w++, waves >>= 1)
        place += (int32_t)(waves & 1);
    return place;
}

static enum cpl_status list_edges(struct cpl_local_plan *local)
{
    const struct cpl_plan *plan = &local->plan;
    for (int64_t e = 0; e < plan->n_edges; e++) {
        local->n_in += plan->edges[e].to == local->me;
        local->n_out += plan->edges[e].from == local->me;
    }
    local->in_from = CPL_ARENA_ARRAY(&local->arena, int32_t, local->n_in);
    local->in_wave = CPL_ARENA_ARRAY(&local->arena, int32_t, local->n_in);
    local->in_later = CPL_ARENA_ARRAY(&local->arena, int64_t, local->n_in);
    local->out_to = CPL_ARENA_ARRAY(&local->arena, int32_t, local->n_out);
    local->out_wave = CPL_ARENA_ARRAY(&local->arena, int32_t, local->n_out);
    local->out_later = CPL_ARENA_ARRAY(&local->arena, int64_t, local->n_out);
    local->waiting = CPL_ARENA_ARRAY(&local->arena, struct cpl_waiting_edge, local->n_out);
    if (!local->in_from || !local->in_wave || !local->in_later || !local->out_to ||
        !local->out_wave || !local->out_later || !local->waiting)
        return CPL_ERR_NOMEM;
    int32_t n_in = 0, n_out = 0, k = 0;
    for (int64_t e = 0; e < plan->n_edges; e++) {
        const struct cpl_edge *edge = &plan->edges[e];
        if (edge->to == local->me) {
            local->in_from[n_in] = local->rank_of[edge->from];
            local->in_wave[n_in++] = wave_of(local->waves, edge->wave);
        }
        if (edge->from == local->me) {
            local->out_to[n_out] = local->rank_of[edge->to];
            local->out_wave[n_out++] = wave_of(local->waves, edge->wave);
        }
    }
    for (int32_t i = 0; i < n_in; i++) { /* both ascend by wave */
        while (k < n_out && local->out_wave[k] <= local->in_wave[i])
            k++;
        local->in_later[i] = n_out - k;
    }
    return CPL_OK;
}

enum cpl_status cpl_local_plan_make(const struct cpl_router *router, int32_t n_ranks, int32_t rank,
                                    const struct cpl_passing *passing, int64_t n,
                                    struct cpl_local_plan *local, struct cpl_error *error)
{
    int32_t n_found = 0;
    *local = (struct cpl_local_plan){.me = rank, .n_ranks = n_ranks, .arena = CPL_ARENA_EMPTY};
    enum cpl_status status = find_ranks(router, passing, n, local, &n_found)
                                 ? cpl_fail_memory(error, "a rank's messages")
                                 : build_pattern(local, n_found, passing, n, error);
    if (!status) {
        local->me = number_of(local, n_found, rank);
        status = build_plan(router, local, error);
        if (!status && list_edges(local)) {
            cpl_plan_free(&local->plan);
            status = cpl_fail_memory(error, "a rank's edges");
        }
        if (status)
            cpl_pattern_free(&local->pattern);
    }
    if (status)
        cpl_arena_free(&local->arena);
    return status;
}

static int by_order(const void *a, const void *b)
{
    const struct cpl_waiting_edge *x = a, *y = b;
    if (x->later != y->later)
        return x->later < y->later ? 1 : -1;
    return (x->edge.to > y->edge.to) - (x->edge.to < y->edge.to);
}

void cpl_local_plan_order(struct cpl_local_plan *local, uint64_t waves)
{
    struct cpl_plan *plan = &local->plan;
    int32_t n = 0;
    local->row_hash =
        cpl_pattern_row_hash(&local->pattern, local->me, local->rank_of[local->me], local->rank_of);
    for (int64_t e = 0; e < plan->n_edges; e++)
        plan->edges[e].wave = place_of(waves, wave_of(local->waves, plan->edges[e].wave));
    plan->n_waves = place_of(waves, CPL_LOCAL_WAVES);
    for (int64_t e = 0, end; e < plan->n_edges; e = end) {
        int32_t in_wave = 0; /* of the rank's own edges */
        for (end = e; end < plan->n_edges && plan->edges[end].from == plan->edges[e].from &&
                      plan->edges[end].wave == plan->edges[e].wave;
             end++)
            if (plan->edges[e].from == local->me)
                local->waiting[in_wave++] =
                    (struct cpl_waiting_edge){plan->edges[end], local->out_later[n++]};
        qsort(local->waiting, (size_t)in_wave, sizeof *local->waiting, by_order);
        for (int32_t k = 0; k < in_wave; k++) {
            plan->edges[e + k] = local->waiting[k].edge;
            local->edges_hash += cpl_plan_edge_hash(plan, &plan->edges[e + k], local->rank_of, k);
        }
    }
}

enum cpl_status cpl_local_plan_words(struct cpl_local_plan *local, uint64_t pattern_fingerprint,
                                     uint64_t fingerprint, int32_t **words, int32_t *n_words,
                                     struct cpl_error *error)
{
    struct cpl_slicer slicer;
    enum cpl_status status = cpl_slicer_init(&slicer, &local->plan, &local->pattern, error);
    if (status)
        return status;
    status = cpl_slicer_words(&slicer, local->me, n_words, error);
    *words = status ? NULL : malloc((size_t)*n_words * sizeof **words);
    if (!status && !*words)
        status = cpl_fail_memory(error, "a rank's slice");
    if (!status) {
        local->plan.pattern_fingerprint = pattern_fingerprint;
        local->plan.fingerprint = fingerprint;
        cpl_slicer_extract(&slicer, local->me, *words);
        cpl_rank_plan_rename(*words, local->n_ranks, local->rank_of);
    }
    cpl_slicer_free(&slicer);
    return status;
}

void cpl_local_plan_free(struct cpl_local_plan *local)
{
    cpl_plan_free(&local->plan);
    cpl_pattern_free(&local->pattern);
    cpl_arena_free(&local->arena);
}
