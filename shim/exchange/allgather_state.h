/* State of MPI_Allgather and MPI_Allgatherv on a communicator (allgather.h). */
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
    int64_t calls; /* number of calls; alike on all ranks, as is the next */
    int64_t calls_carried;
    int64_t bytes; /* bytes of all calls and ranks */
    struct cpl_samples direct, carried;
    int32_t n_ways; /* number of ways that may carry the calls, fastest by the model first */
    enum cpl_allgather_way way[CPL_N_ALLGATHER_WAYS];
    struct cpl_trial trial; /* trial of MPI and these ways */
};

_Static_assert(CPL_N_ALLGATHER_WAYS < CPL_MAX_TRIED, "a trial has room for MPI and all ways");

#define CPL_ALLGATHER_NONE                                                                         \
    INT64_MAX /* as `least` of the state's allgathers: all calls are MPI's                         \
               */

enum cpl_allgather_outcome {
    CPL_ALLGATHER_FAILED,
    CPL_ALLGATHER_EVEN, /* messages cost the same between any two ranks */
    CPL_ALLGATHER_PLACED
};

/* What the ranks agree on. Plain data. */
struct cpl_allgather_plan {
    int32_t outcome; /* enum cpl_allgather_outcome */
    bool measured;   /* the machine has measured distances: more is tried */
    double plan_ms;
    struct cpl_allgather_class model[CPL_ALLGATHER_CLASSES];
};

/* The state of one communicator. */
struct cpl_allgather {
    int64_t n_calls;  /* number of larger calls; alike on all ranks, as are the next two */
    double worth_us;  /* rough time that those calls took */
    double enough_us; /* at which the ranks agree; 0: they have not tried to */
    bool agreed;      /* the ranks agreed, or tried to */
    bool denied; /* they did not yet, because other threads were in calls; alike on all ranks */
    struct cpl_allgather_plan plan;
    int32_t *rank_at;                    /* for each way, the rank of every point */
    int32_t point[CPL_N_ALLGATHER_WAYS]; /* this rank's point, for each way */
    struct cpl_allgather_size *sizes[CPL_N_ALLGATHER_KINDS][CPL_ALLGATHER_CLASSES]; /* or NULL */
    struct cpl_span *span; /* where each rank's data goes in the current call */
    int64_t *at;           /* where the data of each point is in the room */
    unsigned char *room;   /* buffer in which doubling gathers */
    int64_t n_room;        /* bytes of the room; alike on all ranks */
    bool lacks_room;       /* a rank has no memory for a larger room; alike on all ranks */
};

#endif
