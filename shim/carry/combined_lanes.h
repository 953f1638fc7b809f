/* Lanes of combined messages (combined.h): one to each rank of the node that an edge of a plan
 * leads to, one from each that an edge comes from, whatever the plan. A combined message that finds
 * its lane full, or is too long for it, goes by MPI like those between nodes: segments are
 * numbered, so combined messages need no order. Thread rule: one thread. */
#ifndef CARPOOL_COMBINED_LANES_H
#define CARPOOL_COMBINED_LANES_H

#include "planner/rank_plan.h"
#include "shim/carry/lanes.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: there are none. */
struct cpl_combined_lanes {
    struct cpl_lanes lanes; /* ranks ascend */
    bool take_all;          /* all combined messages of plans that come here come by lanes */
    int looks, pause;       /* at lanes, before the next one at MPI: still, and in all */
    int n_busy;             /* looks since that one that have found something */
};

/* Opens them for the edges of n slices, alike on all ranks. able: false when this rank cannot take
 * part. Where it fails there are none. Collective, as cpl_lanes_open. */
void cpl_combined_lanes_open(struct cpl_combined_lanes *lanes, MPI_Comm comm, bool able,
                             const struct cpl_rank_plan *const *slices, int n);

/* The lane to a rank; NULL: there is none. It stays until they are freed. */
struct cpl_lane *cpl_combined_lanes_to(const struct cpl_combined_lanes *lanes, int32_t dest);

/* Frees all; nothing may be under way. */
void cpl_combined_lanes_free(struct cpl_combined_lanes *lanes);

#endif
