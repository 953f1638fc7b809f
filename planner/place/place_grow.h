/* Placements to start from. For place.c. */
#ifndef CARPOOL_PLACE_GROW_H
#define CARPOOL_PLACE_GROW_H

#include "planner/grid/map.h"
#include "planner/pattern.h"
#include "planner/status.h"

#include <stdint.h>

/* Fills the points in the order of their coordinates, each with the rank that communicates most
 * with the ranks already at the same coordinates; among equals with the rank that was first
 * connected to a placed one, so that compact groups grow. position[rank] is the rank's point.
 * Volumes are weights, as in cpl_map_swap_points. O(ranks^2 + messages). Returns CPL_OK,
 * CPL_ERR_NOMEM. */
enum cpl_status cpl_place_grow(const struct cpl_pattern *weights,
                               const struct cpl_map_points *points, int32_t *position);

/* Fills the points in the order of their coordinates with the ranks in a given order.
 * position[rank] is the rank's point. Returns CPL_OK, CPL_ERR_NOMEM. */
enum cpl_status cpl_place_fill(const struct cpl_map_points *points, int32_t n_ranks,
                               const int32_t *order, int32_t *position);

#endif
