/* Grid routes with a map (grid_mapped.h). */
#include "planner/strategies/grid_mapped.h"

#include "planner/strategies/rows.h"

#include <stdio.h>
#include <string.h>

enum cpl_status cpl_grid_mapped_parse(const struct cpl_strategy *strategy, const char *text,
                                      char front[CPL_STRATEGY_TEXT], enum cpl_map *map,
                                      struct cpl_error *error)
{
    size_t length = text ? strcspn(text, "+") : 0;
    enum cpl_map found = CPL_MAP_NONE;
    if (length >= CPL_STRATEGY_TEXT)
        return cpl_fail(error, CPL_ERR_ARG, "strategy %s: '%.*s...' is too long", strategy->name,
                        CPL_STRATEGY_TEXT, text);
    if (text && text[length]) {
        for (int k = CPL_MAP_NONE + 1; k < CPL_N_MAPS; k++)
            if (strcmp(text + length + 1, cpl_map_name((enum cpl_map)k)) == 0)
                found = (enum cpl_map)k;
        if (found == CPL_MAP_NONE)
            return cpl_fail(error, CPL_ERR_ARG,
                            "strategy %s takes +klf, +klr, +near or +doubling at its end, not '%s'",
                            strategy->name, text + length);
    }
    memcpy(front, text ? text : "", length);
    front[length] = 0;
    *map = found;
    return CPL_OK;
}

void cpl_grid_mapped_format(enum cpl_map map, char text[CPL_STRATEGY_TEXT])
{
    size_t used = strlen(text);
    if (map != CPL_MAP_NONE)
        snprintf(text + used, CPL_STRATEGY_TEXT - used, "+%s", cpl_map_name(map));
}

static enum cpl_status route_with(const struct cpl_strategy_input *input,
                                  const struct cpl_grid *grid, enum cpl_grid_order order,
                                  enum cpl_map map, struct cpl_routes *routes,
                                  struct cpl_error *error)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    int32_t *position = CPL_ARENA_ARRAY(&scratch, int32_t, grid->n_ranks);
    enum cpl_status status =
        position ? cpl_map_make(map, input->pattern, input->machine, grid, position, error)
                 : cpl_fail_memory(error, "the map");
    if (!status)
        status = cpl_grid_route(input->pattern, grid, order, position, routes, error);
    cpl_arena_free(&scratch);
    return status;
}

enum cpl_status cpl_grid_mapped_route(const struct cpl_strategy_input *input,
                                      const struct cpl_grid *grid, enum cpl_grid_order order,
                                      enum cpl_map map, struct cpl_routes *routes,
                                      struct cpl_error *error)
{
    struct cpl_routes plain, mapped;
    double plain_us = 0, mapped_us = 0;
    enum cpl_status status = cpl_grid_route(input->pattern, grid, order, NULL, &plain, error);
    if (status || map == CPL_MAP_NONE) {
        if (!status)
            *routes = plain;
        return status;
    }
    status = route_with(input, grid, order, map, &mapped, error);
    if (status) {
        cpl_routes_free(&plain);
        return status;
    }
    status = cpl_strategy_time(input, &mapped, &mapped_us, error);
    if (!status)
        status = cpl_strategy_time_below(input, &plain, mapped_us, &plain_us, error);
    struct cpl_routes *kept = mapped_us < plain_us ? &mapped : &plain;
    cpl_routes_free(kept == &mapped ? &plain : &mapped);
    if (status)
        cpl_routes_free(kept);
    else
        *routes = *kept;
    return status;
}

enum cpl_status cpl_fail_map_router(struct cpl_error *error)
{
    return cpl_fail(error, CPL_ERR_UNFIT, "a map is made from all messages");
}
