/* Improving a part of a plan (part_search.h).
 *
 * The search sees a small machine: the part's ranks, which come first, and the others that are on
 * the ways of what passes through them. Of these others only what they do with the part is known,
 * so they look idler than they are; nothing is changed about them. */
#include "planner/strategies/part_search.h"

#include "planner/plan/plan_internal.h"
#include "planner/strategies/strategy_rank.h"

#include <stdlib.h>
#include <string.h>

struct task {
    const struct cpl_part *part;
    int32_t n_waves, n_ranks;
    int32_t *rank_of; /* the real ranks: of the part, then others, each ascending */
    struct cpl_pattern pattern;
    struct cpl_machine machine;
    struct cpl_routes routes;
    struct cpl_arena arena;
};

int32_t cpl_part_waves(const struct cpl_walk *walk)
{
    return walk->n_waves > CPL_BALANCE_FEWEST_WAVES ? walk->n_waves : CPL_BALANCE_FEWEST_WAVES;
}

static int by_value(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The place of a rank among n ascending ones; -1: it is not there. */
static int32_t place_among(const int32_t *ranks, int32_t n, int32_t rank)
{
    const int32_t *at = n > 0 ? bsearch(&rank, ranks, (size_t)n, sizeof rank, by_value) : NULL;
    return at ? (int32_t)(at - ranks) : -1;
}

/* The small machine's number of a rank. */
static int32_t number_of(const struct task *task, int32_t rank)
{
    int32_t n_inside = task->part->n_inside, place = place_among(task->rank_of, n_inside, rank);
    return place >= 0
               ? place
               : n_inside + place_among(task->rank_of + n_inside, task->n_ranks - n_inside, rank);
}

/* Finds the ranks on the ways. */
static enum cpl_status find_ranks(struct task *task, const struct cpl_passing *passing, int64_t n)
{
    const struct cpl_part *part = task->part;
    struct cpl_way_room room;
    int64_t n_found = part->n_inside, n_kept = n_found;
    int32_t *found = CPL_ARENA_ARRAY(&task->arena, int32_t,
                                     part->n_inside + n * ((int64_t)part->walk->n_waves + 1));
    if (!found)
        return CPL_ERR_NOMEM;
    memcpy(found, part->inside, (size_t)part->n_inside * sizeof *found);
    for (int64_t k = 0; k < n; k++) {
        int32_t on_way = cpl_walk_path(part->walk, passing[k].src, passing[k].dst, room.stops,
                                       room.path, room.wave);
        for (int32_t i = 0; i < on_way; i++)
            if (place_among(part->inside, part->n_inside, room.path[i]) < 0)
                found[n_found++] = room.path[i];
    }
    qsort(found + n_kept, (size_t)(n_found - n_kept), sizeof *found, by_value);
    for (int64_t k = n_kept; k < n_found; k++)
        if (n_kept == part->n_inside || found[n_kept - 1] != found[k])
            found[n_kept++] = found[k];
    task->rank_of = found;
    task->n_ranks = (int32_t)n_kept;
    return CPL_OK;
}

static enum cpl_status build_pattern(struct task *task, const struct cpl_passing *passing,
                                     int64_t n, struct cpl_error *error)
{
    struct cpl_pattern_entry *entries = CPL_ARENA_ARRAY(&task->arena, struct cpl_pattern_entry, n);
    if (!entries)
        return cpl_fail_memory(error, "a part's messages");
    for (int64_t k = 0; k < n; k++)
        entries[k] =
            (struct cpl_pattern_entry){number_of(task, passing[k].src),
                                       number_of(task, passing[k].dst), passing[k].volume, -1};
    return cpl_pattern_build(task->n_ranks, entries, n, &task->pattern, error);
}

static enum cpl_status build_machine(struct task *task, struct cpl_error *error)
{
    const struct cpl_machine *whole = task->part->machine;
    int64_t *node = CPL_ARENA_ARRAY(&task->arena, int64_t, task->n_ranks);
    int32_t *socket = CPL_ARENA_ARRAY(&task->arena, int32_t, task->n_ranks);
    if (!node || !socket)
        return cpl_fail_memory(error, "a part's ranks");
    for (int32_t i = 0; i < task->n_ranks; i++) {
        node[i] = cpl_machine_node(whole, task->rank_of[i]);
        socket[i] = cpl_machine_socket(whole, task->rank_of[i]);
    }
    enum cpl_status status = cpl_machine_from_places(task->n_ranks, node, socket, NULL,
                                                     whole->cores_per_node, &task->machine, error);
    task->machine.costs = whole->costs;
    task->machine.lanes = whole->lanes;
    return status;
}

static enum cpl_status build_routes(struct task *task, struct cpl_error *error)
{
    const struct cpl_pattern *p = &task->pattern;
    const struct cpl_walk *walk = task->part->walk;
    struct cpl_way_room room;
    enum cpl_status status = cpl_routes_init(p, task->n_waves, &task->routes, error);
    for (int32_t i = 0; i < p->n_ranks && !status; i++)
        for (int64_t m = p->first[i]; m < p->first[i + 1]; m++) {
            int32_t *stops = cpl_routes_of(&task->routes, m);
            cpl_walk_straight(walk, task->rank_of[i], task->rank_of[p->dst[m]], task->n_waves,
                              room.stops, room.path, room.wave);
            for (int32_t w = 0; w < task->n_waves; w++)
                stops[w] = number_of(task, room.stops[w]);
        }
    return status;
}

/* Writes down which messages have other stops than they had. */
static enum cpl_status list_detours(const struct task *task, const struct cpl_routes *before,
                                    struct cpl_part_found *found)
{
    const struct cpl_pattern *p = &task->pattern;
    size_t row = (size_t)task->n_waves * sizeof(int32_t);
    found->detours = CPL_ARENA_ARRAY(&found->arena, struct cpl_detour, p->n_messages);
    if (!found->detours)
        return CPL_ERR_NOMEM;
    for (int32_t i = 0; i < p->n_ranks; i++)
        for (int64_t m = p->first[i]; m < p->first[i + 1]; m++) {
            const int32_t *stops = cpl_routes_of(&task->routes, m);
            if (memcmp(stops, cpl_routes_of(before, m), row) == 0)
                continue;
            struct cpl_detour *detour = &found->detours[found->n++];
            detour->message =
                (struct cpl_passing){task->rank_of[i], task->rank_of[p->dst[m]], p->volume[m]};
            for (int32_t w = 0; w < task->n_waves; w++)
                detour->stops[w] = task->rank_of[stops[w]];
        }
    return CPL_OK;
}

static enum cpl_status search(struct task *task, double unit_bytes, double budget_ms,
                              struct cpl_part_found *found, struct cpl_error *error)
{
    const struct cpl_strategy_input input = {&task->pattern, &task->machine, unit_bytes, budget_ms};
    struct cpl_routes before;
    enum cpl_status status = cpl_routes_init(&task->pattern, task->n_waves, &before, error);
    if (status)
        return status;
    memcpy(before.stops, task->routes.stops,
           (size_t)before.n_messages * (size_t)before.n_waves * sizeof *before.stops);
    status = cpl_balance_improve(&input, task->part->n_inside, &task->routes, &found->before_us,
                                 &found->us, error);
    if (!status && list_detours(task, &before, found))
        status = cpl_fail_memory(error, "a part's detours");
    cpl_routes_free(&before);
    return status;
}

static enum cpl_status build_and_search(struct task *task, double unit_bytes, double budget_ms,
                                        struct cpl_part_found *found, struct cpl_error *error)
{
    enum cpl_status status = build_machine(task, error);
    if (status)
        return status;
    status = build_routes(task, error);
    if (!status) {
        status = search(task, unit_bytes, budget_ms, found, error);
        cpl_routes_free(&task->routes);
    }
    cpl_machine_free(&task->machine);
    return status;
}

enum cpl_status cpl_part_search(const struct cpl_part *part, const struct cpl_passing *passing,
                                int64_t n, double unit_bytes, double budget_ms,
                                struct cpl_part_found *found, struct cpl_error *error)
{
    struct task task = {
        .part = part, .n_waves = cpl_part_waves(part->walk), .arena = CPL_ARENA_EMPTY};
    *found = (struct cpl_part_found){.arena = CPL_ARENA_EMPTY};
    enum cpl_status status = find_ranks(&task, passing, n)
                                 ? cpl_fail_memory(error, "a part's ranks")
                                 : build_pattern(&task, passing, n, error);
    if (!status) {
        status = build_and_search(&task, unit_bytes, budget_ms, found, error);
        cpl_pattern_free(&task.pattern);
    }
    cpl_arena_free(&task.arena);
    if (status)
        cpl_part_found_free(found);
    return status;
}

void cpl_part_found_free(struct cpl_part_found *found)
{
    cpl_arena_free(&found->arena);
    *found = (struct cpl_part_found){.arena = CPL_ARENA_EMPTY};
}
