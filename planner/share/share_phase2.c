/* Phase II of message sharing (share_phase2.h): thesis Algorithm 4.
 *
 * The entries of all send sets are in one array, found by (rank, destination). An entry knows to
 * whom it was handed, and how long the longest way is that leads to it: both bound the ways. Each
 * rank has a queue of the entries that it may still hand over. */
#include "planner/share/share_phase2.h"

#include "planner/base/pair_map.h"
#include "planner/share/load_tree.h"

#include <stdbool.h>
#include <string.h>

#define NONE (-1)

/* An entry of a rank's send set, or one that it has handed over. */
struct entry {
    int32_t to;
    int32_t via;   /* who has it now, or NONE: the rank sends it itself */
    int8_t before; /* at most so many ranks have handed on what is in here */
    bool carries;  /* carries what was handed to `to` */
    bool queued;
    int64_t queue_next; /* in the rank's queue */
};

struct queue {
    int64_t head, tail; /* entries, or NONE */
};

struct phase2 {
    const struct cpl_share_sets *sets;
    int32_t most_via;
    struct cpl_arena *arena;
    struct entry *entry;
    size_t n_entries, n_room;
    struct cpl_pair_map at; /* (rank, destination): 1 + its entry */
    struct queue *queue;    /* per rank */
    int64_t *load;          /* send set sizes */
    struct cpl_load_tree most_loaded;
    struct cpl_load_tree least_loaded;
};

static void enqueue(struct phase2 *state, int32_t rank, int64_t k)
{
    struct queue *queue = &state->queue[rank];
    if (state->entry[k].queued)
        return;
    state->entry[k].queued = true;
    state->entry[k].queue_next = NONE;
    if (queue->head == NONE)
        queue->head = k;
    else
        state->entry[queue->tail].queue_next = k;
    queue->tail = k;
}

static int64_t find(const struct phase2 *state, int32_t rank, int32_t to)
{
    const uint64_t *at = cpl_pair_map_find(&state->at, rank, to);
    return at ? (int64_t)*at - 1 : NONE;
}

/* Makes room for n more entries. */
static enum cpl_status reserve(struct phase2 *state, size_t n)
{
    if (cpl_pair_map_reserve(&state->at, n))
        return CPL_ERR_NOMEM;
    if (state->n_entries + n <= state->n_room)
        return CPL_OK;
    size_t n_room = 2 * (state->n_entries + n);
    struct entry *grown = CPL_ARENA_ARRAY(state->arena, struct entry, n_room);
    if (!grown)
        return CPL_ERR_NOMEM;
    if (state->n_entries > 0)
        memcpy(grown, state->entry, state->n_entries * sizeof *grown);
    state->entry = grown;
    state->n_room = n_room;
    return CPL_OK;
}

/* A new entry, for which there is room. */
static int64_t append(struct phase2 *state, int32_t rank, int32_t to)
{
    int64_t k = (int64_t)state->n_entries++;
    state->entry[k] = (struct entry){.to = to, .via = NONE, .queue_next = NONE};
    *cpl_pair_map_at(&state->at, rank, to) = (uint64_t)k + 1;
    state->load[rank]++;
    return k;
}

static enum cpl_status start(struct phase2 *state, const struct cpl_share_sets *sets,
                             int32_t most_via, struct cpl_arena *arena)
{
    *state = (struct phase2){
        .sets = sets,
        .most_via = most_via,
        .arena = arena,
        .queue = CPL_ARENA_ARRAY(arena, struct queue, sets->n_ranks),
        .load = CPL_ARENA_ARRAY(arena, int64_t, sets->n_ranks),
    };
    if (!state->queue || !state->load || cpl_pair_map_init(&state->at, arena) ||
        reserve(state, (size_t)sets->n_edges))
        return CPL_ERR_NOMEM;
    for (int32_t rank = 0; rank < sets->n_ranks; rank++) {
        state->queue[rank] = (struct queue){NONE, NONE};
        for (int64_t edge = sets->first[rank]; edge < sets->first[rank + 1]; edge++)
            enqueue(state, rank, append(state, rank, sets->to[edge]));
    }
    if (cpl_load_tree_init(&state->most_loaded, arena, state->load, sets->n_ranks, false) ||
        cpl_load_tree_init(&state->least_loaded, arena, state->load, sets->n_ranks, true))
        return CPL_ERR_NOMEM;
    return CPL_OK;
}

/* The rank sends entry k itself again. */
static void take_back(struct phase2 *state, int32_t rank, int64_t k)
{
    if (state->entry[k].via == NONE)
        return;
    state->entry[k].via = NONE;
    state->load[rank]++;
}

/* From now on rank sends to `to` what it hands over to it. Room was reserved. */
static void carry(struct phase2 *state, int32_t rank, int32_t to)
{
    int64_t k = find(state, rank, to);
    if (k == NONE)
        k = append(state, rank, to);
    take_back(state, rank, k);
    state->entry[k].carries = true;
}

/* How many ranks are inside the way from rank to the destination of its entry k; giver is not to be
 * one of them, else the answer is most_via + 1. */
static int32_t ranks_inside(const struct phase2 *state, int64_t k, int32_t giver)
{
    int32_t n = 0;
    int32_t to = state->entry[k].to;
    for (int32_t via = state->entry[k].via; via != NONE && n <= state->most_via; n++) {
        if (via == giver)
            return state->most_via + 1;
        via = state->entry[find(state, via, to)].via;
    }
    return n;
}

/* Tells the way from rank on, of which k is the entry, that what comes to it was handed on `before`
 * times. */
static void note_before(struct phase2 *state, int64_t k, int8_t before)
{
    int32_t to = state->entry[k].to;
    for (;; before++) {
        struct entry *entry = &state->entry[k];
        if (entry->before < before)
            entry->before = before;
        if (entry->via == NONE)
            return;
        k = find(state, entry->via, to);
    }
}

/* From now on min sends to the destination of max's entry k what comes from max. Room was reserved.
 */
static void receive(struct phase2 *state, int32_t max, int64_t k, int32_t min)
{
    int32_t to = state->entry[k].to;
    int8_t before = (int8_t)(state->entry[k].before + 1);
    int64_t own = find(state, min, to);
    if (own == NONE)
        own = append(state, min, to);
    else if (before + ranks_inside(state, own, max) > state->most_via)
        take_back(state, min, own);
    note_before(state, own, before);
    if (!state->entry[own].carries && state->entry[own].via == NONE)
        enqueue(state, min, own);
}

static enum cpl_status give(struct phase2 *state, int32_t max, int64_t k, int32_t min)
{
    if (reserve(state, 2))
        return CPL_ERR_NOMEM;
    receive(state, max, k, min);
    state->entry[k].via = min;
    state->load[max]--;
    return CPL_OK;
}

/* Whether entry k can never be handed over again, unless it is handed to its rank anew. */
static bool is_fixed(const struct phase2 *state, int64_t k)
{
    const struct entry *entry = &state->entry[k];
    return entry->via != NONE || entry->carries || entry->before >= state->most_via;
}

static void update_trees(struct phase2 *state, int32_t rank)
{
    cpl_load_tree_update(&state->most_loaded, rank);
    cpl_load_tree_update(&state->least_loaded, rank);
}

/* Hands up to alpha entries of max over to min, in the order of max's queue: first what it had at
 * the start, by ascending destination. */
static enum cpl_status hand_over(struct phase2 *state, int32_t max, int32_t min, int64_t alpha)
{
    struct queue *queue = &state->queue[max];
    int64_t left = NONE; /* the entry to min itself */
    int64_t n_given = 0;
    enum cpl_status status = CPL_OK;
    int64_t k = queue->head;
    while (k != NONE && n_given < alpha && !status) {
        int64_t next = state->entry[k].queue_next;
        bool fixed = is_fixed(state, k);
        bool given = !fixed && state->entry[k].to != min;
        if (given) {
            status = give(state, max, k, min);
            n_given++;
        }
        if (fixed || given)
            state->entry[k].queued = false;
        else
            left = k;
        k = next;
    }
    queue->head = left == NONE ? k : left;
    if (left != NONE)
        state->entry[left].queue_next = k;
    if (left != NONE && k == NONE)
        queue->tail = left;
    if (n_given > 0 && !status)
        carry(state, max, min);
    update_trees(state, max);
    update_trees(state, min);
    return status;
}

/* Every iteration but the last makes the loads smaller, compared from the largest one down. */
static enum cpl_status balance(struct phase2 *state)
{
    int32_t previous = NONE;
    int64_t previous_load = NONE;
    enum cpl_status status = CPL_OK;
    while (!status) {
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

/* Follows the ways of all edges. */
static enum cpl_status write_ways(const struct phase2 *state, struct cpl_arena *arena,
                                  struct cpl_share_ways *ways)
{
    const struct cpl_share_sets *sets = state->sets;
    size_t bytes = (size_t)state->most_via * sizeof *ways->via;
    *ways = (struct cpl_share_ways){
        .most_via = state->most_via,
        .largest_load = state->load[cpl_load_tree_top(&state->most_loaded)],
        .via = cpl_arena_alloc(arena, (size_t)sets->n_edges, bytes),
    };
    if (!ways->via)
        return CPL_ERR_NOMEM;
    for (int64_t edge = 0; edge < sets->n_edges; edge++) {
        int32_t *via = ways->via + edge * state->most_via;
        /* The first entries are the edges, in their order. */
        int32_t next = state->entry[edge].via;
        for (int32_t n = 0; n < state->most_via; n++) {
            via[n] = next;
            if (next != NONE)
                next = state->entry[find(state, next, sets->to[edge])].via;
        }
    }
    return CPL_OK;
}

static enum cpl_status run(const struct cpl_share_sets *sets, int32_t most_via,
                           struct cpl_arena *arena, struct cpl_share_ways *ways)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    struct phase2 state;
    enum cpl_status status = start(&state, sets, most_via, &scratch);
    if (!status)
        status = balance(&state);
    if (!status)
        status = write_ways(&state, arena, ways);
    cpl_arena_free(&scratch);
    return status;
}

enum cpl_status cpl_share_phase2(const struct cpl_share_sets *sets, int32_t most_via,
                                 struct cpl_arena *arena, struct cpl_share_ways *ways)
{
    struct cpl_share_ways handed_on;
    enum cpl_status status = run(sets, 1, arena, ways);
    if (status || most_via == 1)
        return status;
    status = run(sets, most_via, arena, &handed_on);
    if (!status && handed_on.largest_load < ways->largest_load)
        *ways = handed_on;
    return status;
}
