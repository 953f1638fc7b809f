/* The search over routes (improve.h). */
#include "planner/strategies/improve.h"

#include "planner/base/hash.h"
#include "planner/strategies/improve_paths.h"
#include "planner/strategies/improve_state.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TOGETHER       48  /* riders of a combined message that move together */
#define MAX_PARTS_TOGETHER 192 /* the same where riders are parts */
#define SHARPENINGS        48
#define JOINED             3 /* of four moves: those that keep the parts of a pair together */

/* Steps that it takes to sharpen a wave, for each rank. */
#define SHARPEN_STEPS 1

/* Steps that it takes to move a message, besides finding a way for it. */
#define MOVE_STEPS 100

/* Steps that it takes to build and price a plan, for each message and wave; the part of all steps
 * that may go there, if it is not done once only; and how many times as much it takes to begin. */
#define LOOK_STEPS  8
#define LOOK_SHARE  0.25
#define BEGIN_LOOKS 3

struct search {
    struct cpl_improve_state state;
    struct cpl_path_finder finder;
    uint64_t random;
    double heat;
    int32_t mover[MAX_PARTS_TOGETHER];
    int32_t most_together;
    bool joined;        /* this time parts of a pair that move stay together: one search for all */
    int32_t *old_stops; /* of the movers */
    struct cpl_routes *routes; /* the best ones met */
    double best_us;            /* what they take by the chain model */
};

static int32_t random_below(struct search *s, int32_t n)
{
    return (int32_t)((cpl_random_next(&s->random) >> 32) * (uint64_t)n >> 32);
}

/* Whether two messages are parts of the same pair; a comes before b. */
static bool same_pair(const struct cpl_improve_state *state, int32_t a, int32_t b)
{
    return state->source[a] == state->source[b] && state->pattern->dst[a] == state->pattern->dst[b];
}

/* Finds a way for mover k. Of joined parts the first one's way, found for all their bytes, is taken
 * by the others. */
static void find_way(struct search *s, int32_t k, int32_t n, const struct cpl_banned_edge *banned)
{
    struct cpl_improve_state *state = &s->state;
    int32_t m = s->mover[k];
    double bytes = cpl_improve_bytes(state, m);
    if (s->joined && k > 0 && same_pair(state, s->mover[k - 1], m)) {
        memcpy(cpl_improve_stops(state, m), cpl_improve_stops(state, s->mover[k - 1]),
               (size_t)state->n_waves * sizeof(int32_t));
        s->finder.work += state->n_waves;
        return;
    }
    for (int32_t j = k + 1; s->joined && j < n && same_pair(state, m, s->mover[j]); j++)
        bytes += cpl_improve_bytes(state, s->mover[j]);
    cpl_path_find(&s->finder, m, bytes, banned, cpl_improve_stops(state, m));
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
    s->finder.work += (int64_t)n_lost * state->pattern->n_ranks * SHARPEN_STEPS + n * MOVE_STEPS;
    for (int32_t k = 0; k < n; k++) {
        memcpy(s->old_stops + (size_t)k * row, cpl_improve_stops(state, s->mover[k]),
               row * sizeof(int32_t));
        cpl_improve_take(state, s->mover[k]);
    }
    bool good = true;
    while (n_put < n && good && !state->failed) {
        find_way(s, n_put, n, banned);
        cpl_improve_put(state, s->mover[n_put++]);
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

/* Whether message m rides on an edge. */
static bool rides_on(const struct cpl_improve_state *state, int32_t m, int32_t edge)
{
    const struct cpl_layer_edge *e = &state->layers.edge[edge];
    const int32_t *stops = cpl_improve_stops(state, m);
    int32_t from = e->wave > 0 ? stops[e->wave - 1] : state->source[m];
    return from == e->from && stops[e->wave] == e->to;
}

/* Adds to the only mover, m, the other parts of its pair that ride on the edge, as far as there is
 * room. Returns how many there are then. */
static int32_t add_parts(struct search *s, int32_t edge, int32_t m)
{
    const struct cpl_improve_state *state = &s->state;
    int32_t n = 0, first = m, end = (int32_t)state->pattern->n_messages;
    while (first > 0 && same_pair(state, first - 1, m))
        first--;
    for (int32_t part = first; part < end && same_pair(state, m, part); part++)
        if (n < s->most_together && rides_on(state, part, edge))
            s->mover[n++] = part;
    return n;
}

static int compare_messages(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The movers: all riders of an edge, or one of them, with the other parts of its pair if these are
 * joined. Returns how many; 0 when they are too many. */
static int32_t choose_movers(struct search *s, int32_t edge, bool all)
{
    const struct cpl_improve_state *state = &s->state;
    int32_t n = state->riders[edge].n, wave = state->layers.edge[edge].wave;
    int32_t m = state->riders[edge].first;
    if (all && n > s->most_together)
        return 0;
    for (int32_t skip = all ? 0 : random_below(s, n < 64 ? n : 64); skip > 0; skip--)
        m = state->next[(size_t)m * (size_t)state->n_waves + (size_t)wave];
    for (int32_t k = 0; k < (all ? n : 1); k++) {
        s->mover[k] = m;
        m = state->next[(size_t)m * (size_t)state->n_waves + (size_t)wave];
    }
    if (s->joined && all)
        qsort(s->mover, (size_t)n, sizeof *s->mover, compare_messages);
    if (s->joined && !all)
        return add_parts(s, edge, s->mover[0]);
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
    s->joined = s->state.pattern->pairs && random_below(s, 4) < JOINED;
    bool all = s->state.riders[edge].n == 1 || random_below(s, 8) < 5;
    int32_t n = choose_movers(s, edge, all);
    if (!n)
        return;
    double fraction = random_below(s, 1 << 20) * 0x1p-20;
    double allowed = all ? s->heat * fraction * edge_price(s, &e) : 0;
    move_together(s, n, &(struct cpl_banned_edge){e.wave, e.from, e.to}, allowed - 1e-12);
}

static int64_t look_work(const struct cpl_routes *routes)
{
    return LOOK_STEPS * routes->n_messages * routes->n_waves;
}

int64_t cpl_improve_begin_work(const struct cpl_routes *routes)
{
    return (BEGIN_LOOKS + 1) * look_work(routes);
}

/* Keeps the present routes if they are the best met so far. */
static enum cpl_status look(struct search *s, const struct cpl_strategy_input *input,
                            struct cpl_error *error)
{
    struct cpl_routes present = *s->routes;
    double us;
    present.stops = s->state.stops;
    s->finder.work += look_work(&present);
    enum cpl_status status = cpl_strategy_time(input, &present, &us, error);
    if (status || us >= s->best_us)
        return status;
    s->best_us = us;
    memcpy(s->routes->stops, present.stops,
           (size_t)present.n_messages * (size_t)present.n_waves * sizeof(int32_t));
    return CPL_OK;
}

/* How often to look, of every SHARPENINGS times. */
static int32_t count_looks(const struct search *s, const struct cpl_improve_schedule *schedule)
{
    double n = LOOK_SHARE * (double)schedule->work / (double)look_work(s->routes);
    return n < 1 ? 1 : n < SHARPENINGS ? (int32_t)n : SHARPENINGS;
}

static enum cpl_status prepare(struct search *s, const struct cpl_strategy_input *input,
                               struct cpl_arena *arena, struct cpl_error *error)
{
    s->old_stops = CPL_ARENA_ARRAY(arena, int32_t, MAX_PARTS_TOGETHER * (size_t)s->routes->n_waves);
    if (!s->old_stops || cpl_improve_init(&s->state, input, s->routes, arena) ||
        cpl_path_finder_init(&s->finder, &s->state, arena))
        return cpl_fail_memory(error, "the search");
    s->finder.work = BEGIN_LOOKS * look_work(s->routes);
    return cpl_strategy_time(input, s->routes, &s->best_us, error);
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
    struct search s = {.random = schedule->seed,
                       .routes = routes,
                       .most_together = input->pattern->pairs ? MAX_PARTS_TOGETHER : MAX_TOGETHER};
    if (routes->n_waves > CPL_MAX_LAYERS || routes->n_messages > INT32_MAX / CPL_MAX_LAYERS)
        return cpl_fail(error, CPL_ERR_UNFIT, "a search takes at most %d waves", CPL_MAX_LAYERS);
    enum cpl_status status = prepare(&s, input, &arena, error);
    int32_t n_looks = count_looks(&s, schedule);
    for (int32_t step = 0; step < SHARPENINGS && !status; step++) {
        double done = (double)step / (SHARPENINGS - 1);
        int64_t end = schedule->work / SHARPENINGS * (step + 1);
        s.heat = schedule->temperature * (1 - done);
        cpl_time_loads_sharpen(&s.state.loads, sharpness_at(&s, schedule, done));
        while (s.finder.work < end && !s.state.failed)
            move(&s);
        if (s.state.failed)
            status = cpl_fail_memory(error, "the search");
        else if ((step + 1) * n_looks / SHARPENINGS > step * n_looks / SHARPENINGS)
            status = look(&s, input, error);
    }
    cpl_arena_free(&arena);
    return status;
}
