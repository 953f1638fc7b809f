/* Phase II of message sharing (share_phase2.h): thesis Algorithm 4. */
#include "planner/strategies/share_phase2.h"

#include "planner/base/pair_map.h"
#include "planner/strategies/load_tree.h"

#include <stdbool.h>

struct phase2 {
    const struct cpl_share_sets *sets; /* at the start of the phase */
    int32_t *via;                      /* the thesis's stillOwn is via == -1 */
    bool *pinned;              /* per edge: carries what was handed over; stays where it is */
    struct cpl_pair_map added; /* send set entries that are no edges of the start; all pinned */
    int64_t *next;             /* per rank: no edge before this one can be handed over any more */
    int64_t *load;             /* send set sizes */
    struct cpl_load_tree most_loaded;
    struct cpl_load_tree least_loaded;
};

static enum cpl_status start(struct phase2 *state, const struct cpl_share_sets *sets,
                             struct cpl_arena *arena)
{
    *state = (struct phase2){
        .sets = sets,
        .via = CPL_ARENA_ARRAY(arena, int32_t, sets->n_edges),
        .pinned = CPL_ARENA_ARRAY(arena, bool, sets->n_edges),
        .next = CPL_ARENA_ARRAY(arena, int64_t, sets->n_ranks),
        .load = CPL_ARENA_ARRAY(arena, int64_t, sets->n_ranks),
    };
    if (!state->via || !state->pinned || !state->next || !state->load)
        return CPL_ERR_NOMEM;
    for (int64_t edge = 0; edge < sets->n_edges; edge++)
        state->via[edge] = -1;
    for (int32_t rank = 0; rank < sets->n_ranks; rank++) {
        state->next[rank] = sets->first[rank];
        state->load[rank] = sets->first[rank + 1] - sets->first[rank];
    }
    if (cpl_pair_map_init(&state->added, arena) ||
        cpl_load_tree_init(&state->most_loaded, arena, state->load, sets->n_ranks, false) ||
        cpl_load_tree_init(&state->least_loaded, arena, state->load, sets->n_ranks, true))
        return CPL_ERR_NOMEM;
    return CPL_OK;
}

/* From now on rank sends to `to` because of something handed over. */
static enum cpl_status pin(struct phase2 *state, int32_t rank, int32_t to)
{
    int64_t edge = cpl_share_sets_find(state->sets, rank, to);
    if (edge >= 0) {
        /* Only an edge handed over, and not taken back since, is missing in the send set. */
        state->load[rank] += state->via[edge] >= 0 && !state->pinned[edge];
        state->pinned[edge] = true;
        return CPL_OK;
    }
    if (cpl_pair_map_find(&state->added, rank, to))
        return CPL_OK;
    if (cpl_pair_map_reserve(&state->added, 1))
        return CPL_ERR_NOMEM;
    cpl_pair_map_at(&state->added, rank, to);
    state->load[rank]++;
    return CPL_OK;
}

static bool is_fixed(const struct phase2 *state, int64_t edge)
{
    return state->via[edge] >= 0 || state->pinned[edge];
}

/* Hands up to alpha edges of max over to min, by ascending destination. */
static enum cpl_status hand_over(struct phase2 *state, int32_t max, int32_t min, int64_t alpha)
{
    int64_t end = state->sets->first[max + 1];
    while (state->next[max] < end && is_fixed(state, state->next[max]))
        state->next[max]++;
    int64_t n_given = 0;
    enum cpl_status status = CPL_OK;
    for (int64_t edge = state->next[max]; edge < end && n_given < alpha && !status; edge++) {
        int32_t to = state->sets->to[edge];
        if (is_fixed(state, edge) || to == min)
            continue;
        state->via[edge] = min;
        state->load[max]--;
        n_given++;
        status = pin(state, min, to);
    }
    if (n_given > 0 && !status)
        status = pin(state, max, min);
    cpl_load_tree_update(&state->most_loaded, max);
    cpl_load_tree_update(&state->least_loaded, max);
    cpl_load_tree_update(&state->most_loaded, min);
    cpl_load_tree_update(&state->least_loaded, min);
    return status;
}

static enum cpl_status balance(struct phase2 *state)
{
    int32_t previous = -1;
    int64_t previous_load = -1;
    enum cpl_status status = CPL_OK;
    /* The bound is never reached: an iteration that hands nothing over ends the loop. */
    for (int64_t n = 0; n <= state->sets->n_edges + 1 && !status; n++) {
        int32_t max = cpl_load_tree_top(&state->most_loaded);
        int32_t min = cpl_load_tree_top(&state->least_loaded);
        if (max == previous && state->load[max] == previous_load)
            break;
        previous = max;
        previous_load = state->load[max];
        status = hand_over(state, max, min, (state->load[max] - state->load[min]) / 2);
    }
    return status;
}

enum cpl_status cpl_share_phase2(const struct cpl_share_sets *sets, struct cpl_arena *arena,
                                 int32_t **via)
{
    struct phase2 state;
    enum cpl_status status = start(&state, sets, arena);
    if (!status)
        status = balance(&state);
    if (!status)
        *via = state.via;
    return status;
}
