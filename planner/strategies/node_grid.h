/* Routes that step inside nodes and between nodes: gather inside the source's node, steps over a
 * grid whose points are the nodes, scatter inside the destination's node.
 *
 * Works with any placement of ranks and any node sizes. */
#ifndef CARPOOL_NODE_GRID_H
#define CARPOOL_NODE_GRID_H

#include "planner/grid/grid.h"
#include "planner/machine.h"
#include "planner/pattern.h"
#include "planner/plan/router.h"
#include "planner/routes.h"
#include "planner/status.h"

#include <stdint.h>

struct cpl_node_grid {
    int32_t n_gather;          /* steps of the gathering; 0: it is left out */
    struct cpl_grid between;   /* of as many points as the machine has nodes */
    enum cpl_grid_order order; /* of the steps between nodes */
    int32_t n_scatter;         /* steps of the scattering, at least 1 */
};

/* A message's route. Gathering takes a message inside its node to the place that is
 * responsible for the destination's node (places are dealt to the other nodes in turn), in steps
 * over a grid of the node's places. A step between nodes goes to the rank in the same place of the
 * next node, modulo that node's size. Scattering takes the message to its destination. Messages
 * inside a node are only scattered. A node whose size does not fit so many dimensions of gathering
 * or scattering uses as many as fit, and rests in the remaining steps. Returns CPL_OK,
 * CPL_ERR_UNFIT when they fit no node, CPL_ERR_NOMEM. The caller frees *router; the machine must
 * outlive it. */
enum cpl_status cpl_node_grid_router(const struct cpl_machine *machine,
                                     const struct cpl_node_grid *steps, struct cpl_router *router,
                                     struct cpl_error *error);

/* The routes of a pattern's messages by them. Returns what cpl_node_grid_router returns. The
 * caller frees *routes. O(messages x steps). */
enum cpl_status cpl_node_grid_route(const struct cpl_pattern *pattern,
                                    const struct cpl_machine *machine,
                                    const struct cpl_node_grid *steps, struct cpl_routes *routes,
                                    struct cpl_error *error);

#endif
