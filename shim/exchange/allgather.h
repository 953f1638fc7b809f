/* MPI_Allgather and MPI_Allgatherv, carried as a ring or recursive doubling over ranks that are
 * placed for the machine (planner/place/allgather.h; doc/architecture.md, Allgathers), with the
 * result in the program's order. Calls with little data are MPI's. The calls of a class of sizes
 * are an exchange (neighbor.h), whose candidates are the algorithms that promise enough; in mode
 * auto they are tried against MPI.
 *
 * Cost of a call that is not carried: a few comparisons; MPI_Allgatherv adds up its counts. Thread
 * rule: one thread. */
#ifndef CARPOOL_ALLGATHER_CALLS_H
#define CARPOOL_ALLGATHER_CALLS_H

#include "planner/place/allgather.h"
#include "shim/exchange/neighbor.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#define CPL_N_ALLGATHER_KINDS 2 /* MPI_Allgather, MPI_Allgatherv */

#define CPL_ALLGATHER_NONE INT64_MAX /* as `least` of the state's allgathers: all are MPI's */

/* A call that is under way (carrier_gather.c), and what is used again by the next one. */
struct cpl_gathering {
    struct cpl_carrying *call;
    const int32_t *rank_at; /* the rank of each point */
    int32_t n, point;       /* points; this rank's */
    struct cpl_span *span;  /* for each rank's data */
    struct cpl_span own;    /* what this rank sends, unless it is in its place */
    bool in_place;
    int64_t *at;             /* n + 1: where the data of each point is, of the algorithm doubling */
    unsigned char *room;     /* for what does not come to its place */
    int64_t n_room;          /* its bytes; -1: a rank has no memory for it; alike on all ranks */
    unsigned char *gathered; /* where doubling gathers: the room, or the program's buffer */
    MPI_Request pair[2], next; /* of this step, and a receive of the next one */
};

/* By algorithm; a candidate's `made` is its rank_at. They carry blocking calls, one at a time on a
 * communicator. */
extern const struct cpl_carrier cpl_gather_carriers[CPL_N_ALLGATHER_ALGORITHMS];

/* What the ranks agree on. Plain data. */
struct cpl_allgather_plan {
    bool made;
    bool even;     /* messages cost the same between any two ranks: there is nothing to gain */
    bool measured; /* the machine has measured distances: more is tried */
    double plan_ms;
    struct cpl_allgather_class model[CPL_ALLGATHER_CLASSES];
};

/* The allgathers of one communicator. */
struct cpl_allgather {
    bool agreed; /* the ranks agreed, or tried to; alike on all ranks, as is the next */
    struct cpl_allgather_plan plan;
    int32_t *rank_at; /* by algorithm, the rank of every point; then every rank in its own place */
    struct cpl_gathering gathering;
    struct cpl_arena arena; /* of rank_at and of the arrays of the gathering */
    struct cpl_exchange *sizes[CPL_N_ALLGATHER_KINDS * CPL_ALLGATHER_CLASSES]; /* or NULL */
};

_Static_assert(CPL_N_ALLGATHER_ALGORITHMS <= CPL_MOST_CANDIDATES,
               "an exchange has room for all algorithms");

/* Carries a call if an algorithm is to carry it. Returns true when it is done, with MPI's result in
 * *result; false when it is to be made through PMPI, and cpl_neighbor_passed to be called after it.
 * Collective, as the call is. */
bool cpl_allgather_carry(struct cpl_neighbor_call *call, int *result);

extern const struct cpl_hooks cpl_allgather_hooks;

/* Bytes of all ranks' data; -1: too many to count, or an argument that MPI refuses. Local. */
int64_t cpl_allgather_bytes(const struct cpl_neighbor_call *call, int n_ranks);

#endif
