/* Computed routes (router.h). */
#include "planner/plan/router.h"

#include "planner/plan/plan_internal.h"

enum cpl_status cpl_router_routes(const struct cpl_router *router,
                                  const struct cpl_pattern *pattern, struct cpl_routes *routes,
                                  struct cpl_error *error)
{
    enum cpl_status status = cpl_routes_init(pattern, router->n_waves, routes, error);
    for (int32_t i = 0; i < pattern->n_ranks && !status; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++)
            router->go(router, i, pattern->dst[m], cpl_routes_of(routes, m));
    return status;
}

int32_t cpl_router_path(const struct cpl_router *router, int32_t src, int32_t dst, int32_t *stops,
                        int32_t *path, int32_t *wave)
{
    router->go(router, src, dst, stops);
    return cpl_plan_simple_path(stops, router->n_waves, src, dst, path, wave);
}

void cpl_router_straight(const struct cpl_router *router, int32_t src, int32_t dst, int32_t n_waves,
                         int32_t *stops, int32_t *path, int32_t *wave)
{
    int32_t n = cpl_router_path(router, src, dst, stops, path, wave), k = 1;
    for (int32_t w = 1; w <= n_waves; w++) {
        k += k < n && wave[k] == w;
        stops[w - 1] = path[k - 1];
    }
}

void cpl_router_free(struct cpl_router *router)
{
    cpl_arena_free(&router->arena);
    *router = (struct cpl_router){.arena = CPL_ARENA_EMPTY};
}
