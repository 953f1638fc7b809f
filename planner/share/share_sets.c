/* Send sets after Phase I (share_sets.h). */
#include "planner/share/share_sets.h"

#include <stdbool.h>

/* Turns counts (count[k + 1] is that of k) into where k's entries begin. */
static void sum_up(int64_t *count, int32_t n)
{
    for (int32_t k = 0; k < n; k++)
        count[k + 1] += count[k];
}

/* After the entries of each k were filled in at begin[k]++, makes begin[k] the begin again. */
static void step_back(int64_t *begin, int32_t n)
{
    for (int32_t k = n; k > 0; k--)
        begin[k] = begin[k - 1];
    begin[0] = 0;
}

/* Sorts the messages that are sent on by who sends them. */
static enum cpl_status sort_carried(const struct cpl_pattern *pattern, const int32_t *sender,
                                    struct cpl_arena *arena, struct cpl_share_sets *sets)
{
    int64_t *first = CPL_ARENA_ARRAY(arena, int64_t, (size_t)pattern->n_ranks + 1);
    if (!first)
        return CPL_ERR_NOMEM;
    for (int32_t rank = 0; rank < pattern->n_ranks; rank++) {
        for (int64_t m = pattern->first[rank]; m < pattern->first[rank + 1]; m++)
            first[sender[m] + 1] += sender[m] != rank;
    }
    sum_up(first, pattern->n_ranks);
    int64_t *carried = CPL_ARENA_ARRAY(arena, int64_t, first[pattern->n_ranks]);
    if (!carried)
        return CPL_ERR_NOMEM;
    for (int32_t rank = 0; rank < pattern->n_ranks; rank++) {
        for (int64_t m = pattern->first[rank]; m < pattern->first[rank + 1]; m++) {
            if (sender[m] != rank)
                carried[first[sender[m]]++] = m;
        }
    }
    step_back(first, pattern->n_ranks);
    sets->carried_first = first;
    sets->carried = carried;
    return CPL_OK;
}

/* Appends `to` to the unsorted send set of rank, unless it is there: seen[to] is rank + 1 then. */
static void add_edge(struct cpl_share_sets *sets, int32_t *unsorted, int32_t *seen, int32_t rank,
                     int32_t to)
{
    unsorted[sets->n_edges] = to; /* one entry to spare */
    sets->n_edges += seen[to] != rank + 1;
    seen[to] = rank + 1;
}

/* The different ranks that each rank sends to, in the order of its messages. */
static void collect_edges(const struct cpl_pattern *pattern, const int32_t *sender,
                          struct cpl_share_sets *sets, int32_t *unsorted, int32_t *seen)
{
    for (int32_t rank = 0; rank < pattern->n_ranks; rank++) {
        for (int64_t m = pattern->first[rank]; m < pattern->first[rank + 1]; m++)
            add_edge(sets, unsorted, seen, rank, sender[m] == rank ? pattern->dst[m] : sender[m]);
        for (int64_t k = sets->carried_first[rank]; k < sets->carried_first[rank + 1]; k++)
            add_edge(sets, unsorted, seen, rank, pattern->dst[sets->carried[k]]);
        sets->first[rank + 1] = sets->n_edges;
    }
}

/* Brings the send sets into ascending order: edges are sorted by their end, then dealt out to where
 * they begin. */
static enum cpl_status sort_edges(const int32_t *unsorted, struct cpl_arena *arena,
                                  struct cpl_share_sets *sets)
{
    int64_t *begin = CPL_ARENA_ARRAY(arena, int64_t, (size_t)sets->n_ranks + 1);
    int32_t *from = CPL_ARENA_ARRAY(arena, int32_t, sets->n_edges);
    sets->to = CPL_ARENA_ARRAY(arena, int32_t, sets->n_edges);
    if (!begin || !from || !sets->to)
        return CPL_ERR_NOMEM;
    for (int64_t edge = 0; edge < sets->n_edges; edge++)
        begin[unsorted[edge] + 1]++;
    sum_up(begin, sets->n_ranks);
    for (int32_t rank = 0; rank < sets->n_ranks; rank++) {
        for (int64_t edge = sets->first[rank]; edge < sets->first[rank + 1]; edge++)
            from[begin[unsorted[edge]]++] = rank;
    }
    int64_t k = 0;
    for (int32_t to = 0; to < sets->n_ranks; to++) {
        for (; k < begin[to]; k++)
            sets->to[sets->first[from[k]]++] = to;
    }
    step_back(sets->first, sets->n_ranks);
    return CPL_OK;
}

enum cpl_status cpl_share_sets_build(const struct cpl_pattern *pattern, const int32_t *sender,
                                     struct cpl_arena *arena, struct cpl_share_sets *sets)
{
    struct cpl_share_sets built = {.n_ranks = pattern->n_ranks};
    if (sort_carried(pattern, sender, arena, &built))
        return CPL_ERR_NOMEM;
    int64_t n_hops = pattern->n_messages + built.carried_first[pattern->n_ranks];
    int32_t *unsorted = CPL_ARENA_ARRAY(arena, int32_t, (size_t)n_hops + 1);
    int32_t *seen = CPL_ARENA_ARRAY(arena, int32_t, pattern->n_ranks);
    built.first = CPL_ARENA_ARRAY(arena, int64_t, (size_t)pattern->n_ranks + 1);
    if (!unsorted || !seen || !built.first)
        return CPL_ERR_NOMEM;
    collect_edges(pattern, sender, &built, unsorted, seen);
    enum cpl_status status = sort_edges(unsorted, arena, &built);
    if (!status)
        *sets = built;
    return status;
}

int64_t cpl_share_sets_find(const struct cpl_share_sets *sets, int32_t from, int32_t to)
{
    int64_t low = sets->first[from];
    int64_t end = sets->first[from + 1];
    int64_t high = end;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (sets->to[middle] < to)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && sets->to[low] == to ? low : -1;
}
