/* Opening lanes (lane.h): one piece of memory for all lanes of a node that are opened together. It
 * has no name any more once all have opened it, so nothing stays when a process dies. Where one
 * rank cannot open its lanes nobody has any, all go on by MPI, and one line says why. */
#ifndef CARPOOL_LANES_H
#define CARPOOL_LANES_H

#include "shim/carry/lane.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* The most bytes that a message in a lane may have: above, MPI's single copy is as fast. */
#define CPL_LANE_MOST (32 << 10)

/* One side's ends of lanes, those that a rank writes or those that it reads. */
struct cpl_lane_ends {
    int32_t n;
    struct cpl_lane_end {
        int32_t rank;         /* at the other end */
        int32_t key;          /* tells lanes from the same rank to the same one apart */
        struct cpl_lane lane; /* its room, which is alike at both ends; the rest is opened */
    } * end;
};

/* The lanes of a rank that are opened together. */
struct cpl_lanes {
    struct cpl_lane_ends out, in; /* the caller's */
    void *memory;                 /* NULL: none is open */
    int64_t bytes;
};

/* Opens a lane for each end whose other end is on the same node, and whose room is 1 to
 * CPL_LANE_MOST; the others' `shared` becomes NULL. able: false when this rank cannot take part.
 * Returns false on all ranks when one failed: no lane is open then. Where CARPOOL_LANES says so
 * none is opened, which is no failure. Collective over comm, whose errors return. */
bool cpl_lanes_open(struct cpl_lanes *lanes, MPI_Comm comm, bool able);

/* Local: what has been sent may be read at the other end for as long as that has its lanes open. */
void cpl_lanes_close(struct cpl_lanes *lanes);

#endif
