/* The search over routes (improve.h). */
#include "improve.h"

#include "hash.h"
#include "improve_paths.h"
#include "improve_state.h"

#include <string.h>

#define MAX_TOGETHER 48 /* riders of a combined message that move together */
#define SHARPENINGS  48

/* Steps that it takes to sharpen a wave, for each rank. */
#define SHARPEN_STEPS 1

struct search {
    struct cpl_improve_state state;
    struct cpl_path_finder finder;
    uint64_t random;
    double heat;
    int32_t mover[MAX_TOGETHER];
    int32_t *old_stops;  /* of the movers */
    int32_t *best_stops; /* of all messages */
    double best_us;
};

static int32_t random_below(struct search *s, int32_t n)
{
    s->random += UINT64_C(0x9e3779b97f4a7c15);
    return (int32_t)((cpl_hash_mix(s->random) >> 32) * (uint64_t)n >> 32);
}

/* Moves n messages, s->mover, to the cheapest ways that avoid an edge; the objective may rise by at
 * most `allowed`, else all stay where they are. */
static void move_together(struct search *s, int32_t n, const struct cpl_banned_edge *banned,
                          double allowed)
{
    struct cpl_improve_state *state = &s->state;
    size_t row = (size_t)state->n_waves;
    int32_t n_put = 0;
    int32_t n_lost = cpl_time_loads_mark(&state->loads);
    s->finder.work += (int64_t)n_lost * state->pattern->n_ranks * SHARPEN_STEPS;
    for (int32_t k = 0; k < n; k++) {
        memcpy(s->old_stops + (size_t)k * row, cpl_improve_stops(state, s->mover[k]),
               row * sizeof(int32_t));
        cpl_improve_take(state, s->mover[k]);
    }
    bool good = true;
    while (n_put < n && good && !state->failed) {
        int32_t m = s->mover[n_put++];
        cpl_path_find(&s->finder, m, banned, cpl_improve_stops(state, m));
        cpl_improve_put(state, m);
        good = cpl_time_loads_rise(&state->loads) <= allowed;
    }
    if (good)
        return;
    for (int32_t k = 0; k < n_put && !state->failed; k++)
        cpl_improve_take(state, s->mover[k]);
    for (int32_t k = 0; k < n && !state->failed; k++) {
        memcpy(cpl_improve_stops(state, s->mover[k]), s->old_stops + (size_t)k * row,
               row * sizeof(int32_t));
        cpl_improve_put(state, s->mover[k]);
    }
}

/* A rank that takes long in a wave: the slowest of some taken at random. */
static int32_t choose_rank(struct search *s, int32_t wave)
{
    int32_t slowest = 0;
    double most = -1;
    for (int32_t k = random_below(s, 2) ? 3 : 12; k > 0; k--) {
        int32_t r = random_below(s, s->state.pattern->n_ranks);
        double us = cpl_time_loads_rank_us(&s->state.loads, wave, r);
        if (us > most) {
            most = us;
            slowest = r;
        }
    }
    s->finder.work += 4;
    return slowest;
}

/* An edge of the rank: of two taken at random the one with fewer riders; 0: it has none. */
static int32_t choose_edge(struct search *s, int32_t wave, int32_t rank)
{
    const struct cpl_layer_links *out = &s->state.layers.out[wave][rank];
    const struct cpl_layer_links *in = &s->state.layers.in[wave][rank];
    int32_t n = out->n + in->n, chosen = 0;
    for (int32_t k = 0; k < 2 && n > 0; k++) {
        int32_t at = random_below(s, n);
        int32_t edge = at < out->n ? out->link[at].edge : in->link[at - out->n].edge;
        if (!chosen || s->state.riders[edge].n < s->state.riders[chosen].n)
            chosen = edge;
    }
    return chosen;
}

/* The movers: all riders of an edge, or one of them. Returns how many; 0 when they are too many. */
static int32_t choose_movers(struct search *s, int32_t edge, bool all)
{
    const struct cpl_improve_state *state = &s->state;
    int32_t n = state->riders[edge].n, wave = state->layers.edge[edge].wave;
    int32_t m = state->riders[edge].first;
    if (all && n > MAX_TOGETHER)
        return 0;
    for (int32_t skip = all ? 0 : random_below(s, n < 64 ? n : 64); skip > 0; skip--)
        m = state->next[(size_t)m * (size_t)state->n_waves + (size_t)wave];
    for (int32_t k = 0; k < (all ? n : 1); k++) {
        s->mover[k] = m;
        m = state->next[(size_t)m * (size_t)state->n_waves + (size_t)wave];
    }
    return all ? n : 1;
}

/* What an edge costs its ends by being there, to first order. */
static double edge_price(const struct search *s, const struct cpl_layer_edge *e)
{
    const struct cpl_time_loads *loads = &s->state.loads;
    enum cpl_link_class class_ = cpl_machine_link(loads->machine, e->from, e->to);
    return cpl_time_loads_open_price(loads, e->wave, e->from, class_, true) +
           cpl_time_loads_open_price(loads, e->wave, e->to, class_, false);
}

static void move(struct search *s)
{
    int32_t wave = random_below(s, s->state.n_waves);
    int32_t edge = choose_edge(s, wave, choose_rank(s, wave));
    if (!edge)
        return;
    struct cpl_layer_edge e = s->state.layers.edge[edge];
    bool all = s->state.riders[edge].n == 1 || random_below(s, 8) < 5;
    int32_t n = choose_movers(s, edge, all);
    if (!n)
        return;
    double fraction = random_below(s, 1 << 20) * 0x1p-20;
    double allowed = all ? s->heat * fraction * edge_price(s, &e) : 0;
    move_together(s, n, &(struct cpl_banned_edge){e.wave, e.from, e.to}, allowed - 1e-12);
}

static void keep_best(struct search *s)
{
    double us = cpl_time_loads_us(&s->state.loads);
    if (us >= s->best_us)
        return;
    s->best_us = us;
    memcpy(s->best_stops, s->state.stops,
           (size_t)s->state.pattern->n_messages * (size_t)s->state.n_waves * sizeof(int32_t));
}

static enum cpl_status prepare(struct search *s, const struct cpl_strategy_input *input,
                               const struct cpl_routes *routes, struct cpl_arena *arena)
{
    size_t n_stops = (size_t)routes->n_messages * (size_t)routes->n_waves;
    s->old_stops = CPL_ARENA_ARRAY(arena, int32_t, MAX_TOGETHER * (size_t)routes->n_waves);
    s->best_stops = CPL_ARENA_ARRAY(arena, int32_t, n_stops);
    if (!s->old_stops || !s->best_stops || cpl_improve_init(&s->state, input, routes, arena) ||
        cpl_path_finder_init(&s->finder, &s->state, arena))
        return CPL_ERR_NOMEM;
    s->best_us = cpl_time_loads_us(&s->state.loads);
    memcpy(s->best_stops, routes->stops, n_stops * sizeof(int32_t));
    return CPL_OK;
}

/* Sharpness per microsecond: the schedule's is per share of the mean wave's time. */
static double sharpness_at(const struct search *s, const struct cpl_improve_schedule *schedule,
                           double done)
{
    double wave_us = cpl_time_loads_us(&s->state.loads) / s->state.n_waves;
    double sharpness =
        schedule->first_sharpness + done * (schedule->last_sharpness - schedule->first_sharpness);
    return wave_us > 0 ? sharpness / wave_us : 1;
}

enum cpl_status cpl_improve_routes(const struct cpl_strategy_input *input,
                                   const struct cpl_improve_schedule *schedule,
                                   struct cpl_routes *routes, struct cpl_error *error)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct search s = {.random = schedule->seed};
    if (routes->n_waves > CPL_MAX_LAYERS || routes->n_messages > INT32_MAX / CPL_MAX_LAYERS)
        return cpl_fail(error, CPL_ERR_UNFIT, "a search takes at most %d waves", CPL_MAX_LAYERS);
    enum cpl_status status = prepare(&s, input, routes, &arena);
    for (int32_t step = 0; step < SHARPENINGS && !status; step++) {
        double done = (double)step / (SHARPENINGS - 1);
        int64_t end = schedule->work / SHARPENINGS * (step + 1);
        s.heat = schedule->temperature * (1 - done);
        cpl_time_loads_sharpen(&s.state.loads, sharpness_at(&s, schedule, done));
        while (s.finder.work < end && !s.state.failed)
            move(&s);
        if (!s.state.failed)
            keep_best(&s);
        status = s.state.failed ? CPL_ERR_NOMEM : CPL_OK;
    }
    if (!status)
        memcpy(routes->stops, s.best_stops,
               (size_t)routes->n_messages * (size_t)routes->n_waves * sizeof(int32_t));
    cpl_arena_free(&arena);
    return status ? cpl_fail_memory(error, "the search") : CPL_OK;
}
