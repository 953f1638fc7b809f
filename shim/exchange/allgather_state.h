/* What is kept for MPI_Allgather and MPI_Allgatherv on a communicator (allgather.h). */
#ifndef CARPOOL_ALLGATHER_STATE_H
#define CARPOOL_ALLGATHER_STATE_H

#include "planner/place/allgather.h"
#include "shim/base/samples.h"
#include "shim/meet/trial.h"
#include "shim/state/datatype.h"

#include <stdbool.h>
#include <stdint.h>

enum cpl_allgather_kind { CPL_ALLGATHER, CPL_ALLGATHERV, CPL_N_ALLGATHER_KINDS };

/* Calls of one kind and one class of sizes. */
struct cpl_allgather_size {
    int64_t calls; /* this and the next alike on all ranks */
    int64_t calls_carried;
    int64_t bytes; /* of all calls and ranks */
    struct cpl_samples direct, carried;
    int32_t n_ways; /* that may carry them, the one with the smallest modelled time first */
    enum cpl_allgather_way way[CPL_N_ALLGATHER_WAYS];
    struct cpl_trial trial; /* of MPI and these */
};

_Static_assert(CPL_N_ALLGATHER_WAYS < CPL_MAX_TRIED, "a trial has room for MPI and all ways");

#define CPL_ALLGATHER_NONE INT64_MAX /* as `least`: all calls are MPI's */

enum cpl_allgather_outcome {
    CPL_ALLGATHER_FAILED,
    CPL_ALLGATHER_EVEN, /* messages cost the same between any two ranks */
    CPL_ALLGATHER_PLACED
};

/* What is made when the ranks agree; plain data. */
struct cpl_allgather_plan {
    int32_t outcome; /* enum cpl_allgather_outcome */
    double plan_ms;
    struct cpl_allgather_class model[CPL_ALLGATHER_CLASSES];
};

/* Of one communicator. */
struct cpl_allgather {
    int64_t least;   /* bytes in all: calls of less are MPI's, and not looked at further */
    int64_t n_calls; /* of more; this and the next two alike on all ranks */
    double worth_us; /* what they took, roughly */
    bool agreed;     /* or tried to */
    struct cpl_allgather_plan plan;
    int32_t *rank_at;                    /* for each way the rank of every point */
    int32_t point[CPL_N_ALLGATHER_WAYS]; /* this rank's */
    struct cpl_allgather_size *sizes[CPL_N_ALLGATHER_KINDS][CPL_ALLGATHER_CLASSES]; /* or NULL */
    struct cpl_span *span; /* of the call at hand: where each rank's data goes */
    int64_t *at;           /* and where that of each point is in the room */
    unsigned char *room;
    int64_t n_room;  /* bytes of it; alike on all ranks */
    bool lacks_room; /* one rank has no memory for more; alike on all ranks */
};

#endif
