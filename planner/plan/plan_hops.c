/* From hops to edges (plan_hops.h).
 *
 * Each wave is sorted by counting, first by the receivers' places in the order of sending
 * (order.h), then by sender; hops that are equal in both make an edge. The last wave is sorted
 * first, because the order depends on later waves. Room is made once for the largest wave, counters
 * are 32 bits wide, and a pass carries only what it needs: at tens of thousands of ranks the caches
 * limit the speed of such passes. */
#include "planner/plan/plan_hops.h"

#include "planner/order.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_HOPS 1024

/* A hop that is already with its sender. */
struct load {
    int32_t to, bundle;
};

struct sorter {
    struct cpl_plan *plan;
    int64_t *later;       /* rank -> combined messages that it sends in the waves done so far */
    int32_t *place;       /* rank -> its place among the receivers of the wave at hand */
    int32_t *at_place;    /* the inverse */
    uint32_t *next_to;    /* rank -> hops to it, then where the next of them goes */
    uint32_t *next_from;  /* the same of hops from it */
    struct cpl_hop *hops; /* by receiver */
    struct load *loads;   /* by sender */
    int64_t *volume;      /* of each bundle */
};

enum cpl_status cpl_hops_init(struct cpl_hops *hops, int32_t n_waves)
{
    *hops = (struct cpl_hops){.n_waves = n_waves, .arena = CPL_ARENA_EMPTY};
    hops->wave = CPL_ARENA_ARRAY(&hops->arena, struct cpl_wave_hops, n_waves);
    return hops->wave ? CPL_OK : CPL_ERR_NOMEM;
}

enum cpl_status cpl_hops_grow(struct cpl_wave_hops *wave)
{
    int64_t max = wave->max ? 2 * wave->max : FIRST_HOPS;
    struct cpl_hop *hop = (uint64_t)max > SIZE_MAX / sizeof *hop
                              ? NULL
                              : realloc(wave->hop, (size_t)max * sizeof *hop);
    if (!hop)
        return CPL_ERR_NOMEM;
    wave->hop = hop;
    wave->max = max;
    return CPL_OK;
}

void cpl_hops_free(struct cpl_hops *hops)
{
    for (int32_t w = 0; hops->wave && w < hops->n_waves; w++)
        free(hops->wave[w].hop);
    cpl_arena_free(&hops->arena);
    *hops = (struct cpl_hops){.arena = CPL_ARENA_EMPTY};
}

/* Drops the waves without hops; returns the most hops of a wave. */
static int64_t drop_empty_waves(struct cpl_hops *hops)
{
    int64_t most = 0;
    int32_t n = 0;
    for (int32_t w = 0; w < hops->n_waves; w++) {
        struct cpl_wave_hops wave = hops->wave[w];
        hops->wave[w] = (struct cpl_wave_hops){0};
        most = wave.n > most ? wave.n : most;
        if (wave.n > 0)
            hops->wave[n++] = wave;
    }
    hops->n_waves = n;
    return most;
}

static enum cpl_status init_sorter(struct sorter *s, struct cpl_plan *plan, int64_t most_hops,
                                   struct cpl_arena *arena)
{
    *s = (struct sorter){
        .plan = plan,
        .later = CPL_ARENA_ARRAY(arena, int64_t, plan->n_ranks),
        .place = CPL_ARENA_ARRAY(arena, int32_t, plan->n_ranks),
        .at_place = CPL_ARENA_ARRAY(arena, int32_t, plan->n_ranks),
        .next_to = CPL_ARENA_ARRAY(arena, uint32_t, plan->n_ranks),
        .next_from = CPL_ARENA_ARRAY(arena, uint32_t, plan->n_ranks),
        .hops = CPL_ARENA_ARRAY(arena, struct cpl_hop, most_hops),
        .loads = CPL_ARENA_ARRAY(arena, struct load, most_hops),
        .volume = CPL_ARENA_ARRAY(arena, int64_t, plan->n_bundles),
    };
    if (!s->later || !s->place || !s->at_place || !s->next_to || !s->next_from || !s->hops ||
        !s->loads || !s->volume)
        return CPL_ERR_NOMEM;
    for (int64_t k = 0; k < plan->n_bundles; k++)
        s->volume[k] = plan->bundles[k].volume;
    return CPL_OK;
}

/* Counts the wave's hops to and from each rank and turns the counts into where they begin:
 * receivers in the order of their places, senders in that of ranks. */
static void find_begins(struct sorter *s, const struct cpl_wave_hops *wave)
{
    int32_t n_ranks = s->plan->n_ranks;
    memset(s->next_to, 0, (size_t)n_ranks * sizeof *s->next_to);
    memset(s->next_from, 0, (size_t)n_ranks * sizeof *s->next_from);
    for (int64_t h = 0; h < wave->n; h++) {
        s->next_to[wave->hop[h].to]++;
        s->next_from[wave->hop[h].from]++;
    }
    for (int32_t i = 0; i < n_ranks; i++)
        s->at_place[s->place[i]] = i;
    uint32_t to = 0, from = 0;
    for (int32_t k = 0; k < n_ranks; k++) {
        uint32_t n_to = s->next_to[s->at_place[k]], n_from = s->next_from[k];
        s->next_to[s->at_place[k]] = to;
        s->next_from[k] = from;
        to += n_to;
        from += n_from;
    }
}

/* Writes the segments of the sorted wave, and over its hops its edges: from, to, and the number of
 * segments in the place of the bundle. Counts the edges in `later` and as the wave's number. */
static void join_loads(struct sorter *s, struct cpl_wave_hops *wave, int32_t *segments)
{
    int64_t n_edges = 0;
    for (int32_t i = 0, k = 0; i < s->plan->n_ranks; i++) {
        int32_t end = (int32_t)s->next_from[i]; /* filling has moved the begin there */
        int64_t first = n_edges;
        for (; k < end; k++) {
            const struct load *load = &s->loads[k];
            segments[k] = load->bundle;
            if (n_edges == first || wave->hop[n_edges - 1].to != load->to)
                wave->hop[n_edges++] = (struct cpl_hop){i, load->to, 0};
            wave->hop[n_edges - 1].bundle++;
        }
        s->later[i] += n_edges - first;
    }
    wave->n = n_edges;
}

static enum cpl_status sort_wave(struct sorter *s, struct cpl_wave_hops *wave, int32_t *segments,
                                 struct cpl_error *error)
{
    enum cpl_status status = cpl_order_by_key(s->plan->n_ranks, s->later, s->place, error);
    if (status)
        return status;
    find_begins(s, wave);
    for (int64_t h = 0; h < wave->n; h++)
        s->hops[s->next_to[wave->hop[h].to]++] = wave->hop[h];
    for (int64_t h = 0; h < wave->n; h++)
        s->loads[s->next_from[s->hops[h].from]++] = (struct load){s->hops[h].to, s->hops[h].bundle};
    join_loads(s, wave, segments);
    return CPL_OK;
}

/* Sorts all waves, the last first. */
static enum cpl_status sort_waves(struct cpl_hops *hops, struct sorter *s, struct cpl_error *error)
{
    struct cpl_plan *plan = s->plan;
    int64_t end = plan->n_segments;
    enum cpl_status status = CPL_OK;
    for (int32_t w = hops->n_waves - 1; w >= 0 && !status; w--) {
        end -= hops->wave[w].n;
        status = sort_wave(s, &hops->wave[w], plan->segments + end, error);
        plan->n_edges += hops->wave[w].n;
    }
    return status;
}

static void write_edges(const struct cpl_hops *hops, const struct sorter *s)
{
    struct cpl_plan *plan = s->plan;
    struct cpl_edge *edge = plan->edges;
    int64_t segment = 0;
    for (int32_t w = 0; w < hops->n_waves; w++)
        for (int64_t k = 0; k < hops->wave[w].n; k++, edge++) {
            const struct cpl_hop *sorted = &hops->wave[w].hop[k];
            *edge = (struct cpl_edge){.from = sorted->from,
                                      .to = sorted->to,
                                      .wave = w + 1,
                                      .n_segments = sorted->bundle,
                                      .first_segment = segment};
            for (int64_t end = segment + edge->n_segments; segment < end; segment++)
                edge->volume += s->volume[plan->segments[segment]];
        }
}

enum cpl_status cpl_hops_make_edges(struct cpl_hops *hops, struct cpl_plan *plan,
                                    struct cpl_error *error)
{
    struct sorter sorter;
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    enum cpl_status status = init_sorter(&sorter, plan, drop_empty_waves(hops), &scratch);
    plan->n_waves = hops->n_waves;
    for (int32_t w = 0; w < hops->n_waves; w++)
        plan->n_segments += hops->wave[w].n;
    plan->segments = CPL_ARENA_ARRAY(&plan->arena, int32_t, plan->n_segments);
    if (status || !plan->segments)
        status = cpl_fail_memory(error, "the plan's segments");
    if (!status)
        status = sort_waves(hops, &sorter, error);
    if (!status) {
        plan->edges = CPL_ARENA_ARRAY(&plan->arena, struct cpl_edge, plan->n_edges);
        if (plan->edges)
            write_edges(hops, &sorter);
        else
            status = cpl_fail_memory(error, "the plan's edges");
    }
    cpl_arena_free(&scratch);
    return status;
}
