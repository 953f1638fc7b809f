/* Parts of a pattern (parts.h): sets that are joined along messages, then ranks sorted by node and
 * by part. */
#include "planner/grid/parts.h"

static int32_t root_of(int32_t *parent, int32_t i)
{
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

/* Joins the ends of all messages; the lowest rank of a set is its root. */
static void join(const struct cpl_pattern *pattern, int32_t *parent)
{
    for (int32_t i = 0; i < pattern->n_ranks; i++)
        parent[i] = i;
    for (int32_t i = 0; i < pattern->n_ranks; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++) {
            int32_t a = root_of(parent, i), b = root_of(parent, pattern->dst[m]);
            if (a < b)
                parent[b] = a;
            else
                parent[a] = b;
        }
}

/* Sorts n numbers from `from` to `to` by key[number], 0 .. n_keys - 1, keeping the order of equal
 * ones. first (n_keys + 2 entries, zeroed) becomes where each key begins. */
static void sort_by(const int32_t *key, int32_t n_keys, int32_t n, const int32_t *from, int32_t *to,
                    int32_t *first)
{
    int32_t *next = first + 1;
    for (int32_t i = 0; i < n; i++)
        next[key[i] + 1]++;
    for (int32_t k = 0; k < n_keys; k++)
        next[k + 1] += next[k];
    for (int32_t i = 0; i < n; i++) {
        int32_t number = from ? from[i] : i;
        to[next[key[number]]++] = number;
    }
}

enum cpl_status cpl_parts_find(const struct cpl_pattern *pattern, const struct cpl_machine *machine,
                               struct cpl_arena *arena, struct cpl_parts *parts)
{
    int32_t n = pattern->n_ranks;
    int32_t *parent = CPL_ARENA_ARRAY(arena, int32_t, n);
    int32_t *by_node = CPL_ARENA_ARRAY(arena, int32_t, n);
    int32_t *node_first = CPL_ARENA_ARRAY(arena, int32_t, machine->n_nodes + 2);
    *parts = (struct cpl_parts){.part = CPL_ARENA_ARRAY(arena, int32_t, n),
                                .place = CPL_ARENA_ARRAY(arena, int32_t, n),
                                .first = CPL_ARENA_ARRAY(arena, int32_t, n + 2),
                                .ranks = CPL_ARENA_ARRAY(arena, int32_t, n)};
    if (!parent || !by_node || !node_first || !parts->part || !parts->place || !parts->first ||
        !parts->ranks)
        return CPL_ERR_NOMEM;
    join(pattern, parent);
    for (int32_t i = 0; i < n; i++)
        parts->part[i] = parent[i] == i ? parts->n_parts++ : parts->part[root_of(parent, i)];
    sort_by(machine->node, machine->n_nodes, n, NULL, by_node, node_first);
    sort_by(parts->part, parts->n_parts, n, by_node, parts->ranks, parts->first);
    for (int32_t k = 0; k < parts->n_parts; k++)
        for (int32_t at = parts->first[k]; at < parts->first[k + 1]; at++)
            parts->place[parts->ranks[at]] = at - parts->first[k];
    return CPL_OK;
}
