/* Detours (detours.h). */
#include "planner/plan/detours.h"

#include <stdlib.h>
#include <string.h>

/* What the walk looks at. */
struct table {
    const struct cpl_walk *base;
    const struct cpl_detour *detours; /* sorted */
    int64_t n;
};

int cpl_detour_compare(const struct cpl_detour *a, const struct cpl_detour *b)
{
    const struct cpl_passing *x = &a->message, *y = &b->message;
    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    return (x->dst > y->dst) - (x->dst < y->dst);
}

static int by_message(const void *a, const void *b)
{
    return cpl_detour_compare(a, b);
}

static void go(const struct cpl_walk *walk, int32_t src, int32_t dst, int32_t *stops)
{
    const struct table *t = walk->grid;
    const struct cpl_detour key = {.message = {.src = src, .dst = dst}};
    const struct cpl_detour *found =
        t->n > 0 ? bsearch(&key, t->detours, (size_t)t->n, sizeof key, by_message) : NULL;
    if (found) {
        memcpy(stops, found->stops, (size_t)walk->n_waves * sizeof *stops);
        return;
    }
    t->base->go(t->base, src, dst, stops);
    for (int32_t w = t->base->n_waves; w < walk->n_waves; w++)
        stops[w] = dst;
}

enum cpl_status cpl_detours_walk(const struct cpl_walk *base, int32_t n_waves,
                                 const struct cpl_detour *detours, int64_t n, struct cpl_walk *walk,
                                 struct cpl_error *error)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct table *table = CPL_ARENA_ARRAY(&arena, struct table, 1);
    struct cpl_detour *sorted = CPL_ARENA_ARRAY(&arena, struct cpl_detour, n);
    if (!table || !sorted) {
        cpl_arena_free(&arena);
        return cpl_fail_memory(error, "messages' detours");
    }
    if (n > 0) {
        memcpy(sorted, detours, (size_t)n * sizeof *sorted);
        qsort(sorted, (size_t)n, sizeof *sorted, by_message);
    }
    *table = (struct table){base, sorted, n};
    *walk = (struct cpl_walk){n_waves, go, table, arena};
    return CPL_OK;
}
