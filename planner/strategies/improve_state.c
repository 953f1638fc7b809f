/* The state of a search over routes (improve_state.h). */
#include "planner/strategies/improve_state.h"

#include <string.h>

static enum cpl_status find_leaders(struct cpl_improve_state *state)
{
    const struct cpl_pattern *p = state->pattern;
    if (!p->payload_class)
        return CPL_OK;
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    int64_t *leader = CPL_ARENA_ARRAY(&scratch, int64_t, p->n_messages);
    state->leader = CPL_ARENA_ARRAY(state->arena, int32_t, p->n_messages);
    state->next_of_class = CPL_ARENA_ARRAY(state->arena, int32_t, p->n_messages);
    bool done = leader && state->leader && state->next_of_class &&
                !cpl_pattern_leaders(p, leader) &&
                !cpl_pair_map_init(&state->classes, state->arena);
    for (int64_t m = 0; m < p->n_messages && done; m++) {
        state->leader[m] = (int32_t)leader[m];
        state->next_of_class[m] = (int32_t)m;
        if (leader[m] != m) {
            state->next_of_class[m] = state->next_of_class[leader[m]];
            state->next_of_class[leader[m]] = (int32_t)m;
        }
    }
    cpl_arena_free(&scratch);
    return done ? CPL_OK : CPL_ERR_NOMEM;
}

static enum cpl_status allocate(struct cpl_improve_state *state, const struct cpl_machine *machine)
{
    struct cpl_arena *arena = state->arena;
    size_t n_messages = (size_t)state->pattern->n_messages;
    size_t n_rides = n_messages * (size_t)state->n_waves;
    state->stops = CPL_ARENA_ARRAY(arena, int32_t, n_rides);
    state->next = CPL_ARENA_ARRAY(arena, int32_t, n_rides);
    state->previous = CPL_ARENA_ARRAY(arena, int32_t, n_rides);
    state->edge = CPL_ARENA_ARRAY(arena, int32_t, n_rides);
    state->source = CPL_ARENA_ARRAY(arena, int32_t, n_messages);
    if (!state->stops || !state->next || !state->previous || !state->edge || !state->source)
        return CPL_ERR_NOMEM;
    if (cpl_layers_init(&state->layers, state->pattern->n_ranks, state->n_waves, arena) ||
        cpl_time_loads_init(&state->loads, machine, state->n_waves, arena))
        return CPL_ERR_NOMEM;
    if (state->pattern->pairs)
        cpl_time_loads_list_items(&state->loads, state->unit_bytes);
    return find_leaders(state);
}

enum cpl_status cpl_improve_init(struct cpl_improve_state *state,
                                 const struct cpl_strategy_input *input,
                                 const struct cpl_routes *routes, struct cpl_arena *arena)
{
    const struct cpl_pattern *p = input->pattern;
    *state = (struct cpl_improve_state){
        .pattern = p, .unit_bytes = input->unit_bytes, .n_waves = routes->n_waves, .arena = arena};
    if (allocate(state, input->machine))
        return CPL_ERR_NOMEM;
    memcpy(state->stops, routes->stops,
           (size_t)p->n_messages * (size_t)routes->n_waves * sizeof *state->stops);
    cpl_time_loads_sharpen(&state->loads, 0);
    for (int32_t i = 0; i < p->n_ranks; i++)
        for (int64_t m = p->first[i]; m < p->first[i + 1]; m++) {
            state->source[m] = i;
            cpl_improve_put(state, (int32_t)m);
        }
    return state->failed ? CPL_ERR_NOMEM : CPL_OK;
}

static bool reserve_riders(struct cpl_improve_state *state)
{
    if (state->layers.n_numbers + 1 < state->max_riders)
        return true;
    int32_t max = state->max_riders ? 2 * state->max_riders : 1024;
    struct cpl_riders *riders = CPL_ARENA_ARRAY(state->arena, struct cpl_riders, max);
    if (!riders)
        return false;
    if (state->max_riders)
        memcpy(riders, state->riders, (size_t)state->max_riders * sizeof *riders);
    state->riders = riders;
    state->max_riders = max;
    return true;
}

int64_t cpl_improve_mark_free(struct cpl_improve_state *state, int32_t m)
{
    int64_t work = 0;
    state->marking++;
    if (!state->leader)
        return 0;
    for (int32_t other = state->next_of_class[m]; other != m; other = state->next_of_class[other]) {
        const int32_t *edge = state->edge + (size_t)other * (size_t)state->n_waves;
        for (int32_t w = 0; w < state->n_waves; w++)
            if (edge[w])
                state->riders[edge[w]].free_for = state->marking;
        work += state->n_waves;
    }
    return work;
}

/* One rider of m's payload class more or less. Returns whether it is the first to come or the last
 * to go: whether the segment comes or goes. */
static bool count_class(struct cpl_improve_state *state, int32_t edge, int32_t m, int32_t by)
{
    if (!state->leader || state->next_of_class[m] == m)
        return true;
    if (cpl_pair_map_reserve(&state->classes, 1)) {
        state->failed = true;
        return true;
    }
    uint64_t *n = cpl_pair_map_at(&state->classes, edge, state->leader[m]);
    bool changes = by > 0 ? *n == 0 : *n == 1;
    *n += (uint64_t)(int64_t)by;
    if (*n == 0)
        cpl_pair_map_remove(&state->classes, edge, state->leader[m]);
    return changes;
}

static void ride(struct cpl_improve_state *state, int32_t m, int32_t wave, int32_t from, int32_t to)
{
    int32_t edge = cpl_layers_find(&state->layers, wave, from, to);
    if (!edge) {
        edge = reserve_riders(state) ? cpl_layers_add(&state->layers, wave, from, to) : 0;
        if (!edge) {
            state->failed = true;
            return;
        }
        state->riders[edge] = (struct cpl_riders){0, -1, 0};
        cpl_time_loads_edge(&state->loads, wave, from, to, 1);
    }
    struct cpl_riders *riders = &state->riders[edge];
    size_t at = (size_t)m * (size_t)state->n_waves + (size_t)wave;
    state->edge[at] = edge;
    state->next[at] = riders->first;
    state->previous[at] = -1;
    if (riders->first >= 0)
        state->previous[(size_t)riders->first * (size_t)state->n_waves + (size_t)wave] = m;
    riders->first = m;
    riders->n++;
    if (count_class(state, edge, m, 1))
        cpl_time_loads_segment(&state->loads, wave, from, to, cpl_improve_bytes(state, m), 1);
}

static void leave(struct cpl_improve_state *state, int32_t m, int32_t wave, int32_t from,
                  int32_t to)
{
    size_t at = (size_t)m * (size_t)state->n_waves + (size_t)wave;
    int32_t edge = state->edge[at];
    struct cpl_riders *riders = &state->riders[edge];
    int32_t next = state->next[at], previous = state->previous[at];
    if (previous >= 0)
        state->next[(size_t)previous * (size_t)state->n_waves + (size_t)wave] = next;
    else
        riders->first = next;
    if (next >= 0)
        state->previous[(size_t)next * (size_t)state->n_waves + (size_t)wave] = previous;
    state->edge[at] = 0;
    if (count_class(state, edge, m, -1))
        cpl_time_loads_segment(&state->loads, wave, from, to, cpl_improve_bytes(state, m), -1);
    if (--riders->n == 0) {
        cpl_layers_remove(&state->layers, edge);
        cpl_time_loads_edge(&state->loads, wave, from, to, -1);
    }
}

void cpl_improve_put(struct cpl_improve_state *state, int32_t m)
{
    const int32_t *stops = cpl_improve_stops(state, m);
    int32_t at = state->source[m];
    for (int32_t w = 0; w < state->n_waves && !state->failed; at = stops[w++])
        if (stops[w] != at)
            ride(state, m, w, at, stops[w]);
}

void cpl_improve_take(struct cpl_improve_state *state, int32_t m)
{
    const int32_t *stops = cpl_improve_stops(state, m);
    int32_t at = state->source[m];
    for (int32_t w = 0; w < state->n_waves && !state->failed; at = stops[w++])
        if (stops[w] != at)
            leave(state, m, w, at, stops[w]);
}
