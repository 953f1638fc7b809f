/* Walks (walk.h). */
#include "planner/plan/walk.h"

#include "planner/plan/plan_internal.h"

enum cpl_status cpl_walk_routes(const struct cpl_walk *walk, const struct cpl_pattern *pattern,
                                struct cpl_routes *routes, struct cpl_error *error)
{
    enum cpl_status status = cpl_routes_init(pattern, walk->n_waves, routes, error);
    for (int32_t i = 0; i < pattern->n_ranks && !status; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++)
            walk->go(walk, i, pattern->dst[m], cpl_routes_of(routes, m));
    return status;
}

int32_t cpl_walk_path(const struct cpl_walk *walk, int32_t src, int32_t dst, int32_t *stops,
                      int32_t *path, int32_t *wave)
{
    walk->go(walk, src, dst, stops);
    return cpl_plan_simple_path(stops, walk->n_waves, src, dst, path, wave);
}

void cpl_walk_straight(const struct cpl_walk *walk, int32_t src, int32_t dst, int32_t n_waves,
                       int32_t *stops, int32_t *path, int32_t *wave)
{
    int32_t n = cpl_walk_path(walk, src, dst, stops, path, wave), k = 1;
    for (int32_t w = 1; w <= n_waves; w++) {
        k += k < n && wave[k] == w;
        stops[w - 1] = path[k - 1];
    }
}

void cpl_walk_free(struct cpl_walk *walk)
{
    cpl_arena_free(&walk->arena);
    *walk = (struct cpl_walk){.arena = CPL_ARENA_EMPTY};
}
