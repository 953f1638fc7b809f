/* An allgather that is carried, step by step: each step sends and receives at most one message, and
 * begins when those of the step before are complete.
 *
 * Order of calls: fill the first members; then cpl_gathering_run. Messages of one tag on one
 * communicator belong to one gathering at a time on each rank, in the same order on all. Thread
 * rule: one thread. */
#ifndef CARPOOL_GATHERING_H
#define CARPOOL_GATHERING_H

#include "planner/place/allgather.h"
#include "shim/state/datatype.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct cpl_gathering {
    MPI_Comm comm;
    int tag;
    enum cpl_allgather_way way;
    const int32_t *rank_at;      /* the rank of each point; NULL: rank i plays point i */
    int32_t n, point;            /* points; this rank's */
    const struct cpl_span *own;  /* what this rank sends; NULL: it is in its place already */
    const struct cpl_span *span; /* where each rank's data goes */
    int64_t *at;                 /* n + 1: where the data of each point is, of the way doubling */
    unsigned char *room;         /* for all data, unless the way is in place */
    /* Of a gathering that is under way: */
    unsigned char *gathered; /* where doubling gathers: the room, or the program's buffer */
    int32_t step;
    MPI_Request pair[2], next; /* of this step, and a receive of the next one */
    int result;                /* MPI's, of the first error */
};

/* Carries it. Returns MPI's result, of the first error. Collective. */
int cpl_gathering_run(struct cpl_gathering *g);

#endif
