/* Grid routes with a map: the suffix "+MAP" of strategies on grids.
 *
 * A map is made for a pattern and a grid, and kept only where it pays in the cost model. */
#ifndef CARPOOL_GRID_MAPPED_H
#define CARPOOL_GRID_MAPPED_H

#include "planner/grid/grid.h"
#include "planner/grid/map.h"
#include "planner/routes.h"
#include "planner/status.h"
#include "planner/strategy.h"

/* Splits the part of a strategy's text after ':' (NULL: there is none) at '+'. front gets what is
 * before, *map what the suffix names. Returns CPL_OK, CPL_ERR_ARG with a text that names what would
 * be accepted. */
enum cpl_status cpl_grid_mapped_parse(const struct cpl_strategy *strategy, const char *text,
                                      char front[CPL_STRATEGY_TEXT], enum cpl_map *map,
                                      struct cpl_error *error);

/* Appends the suffix of a map to text; nothing for CPL_MAP_NONE. */
void cpl_grid_mapped_format(enum cpl_map map, char text[CPL_STRATEGY_TEXT]);

/* Routes of the input's pattern over a grid with a map; without one when the plan with it is not
 * modelled faster than the plan without. Returns CPL_OK, CPL_ERR_UNFIT, CPL_ERR_NOMEM. The caller
 * frees *routes. */
enum cpl_status cpl_grid_mapped_route(const struct cpl_strategy_input *input,
                                      const struct cpl_grid *grid, enum cpl_grid_order order,
                                      enum cpl_map map, struct cpl_routes *routes,
                                      struct cpl_error *error);

/* The router functions' answer for numbers with a map, which hangs on the whole pattern:
 * CPL_ERR_UNFIT. */
enum cpl_status cpl_fail_map_router(struct cpl_error *error);

#endif
