/* Neighborhood collectives (MPI 4.0, chapter 8.6): all forms are reduced to one description, and
 * the executor carries them once they are planned. */
#ifndef CARPOOL_NEIGHBOR_H
#define CARPOOL_NEIGHBOR_H

#include "shim/exchange/exchange.h"
#include "shim/meet/meeting.h"
#include "shim/meet/pace.h"
#include "shim/meet/pass.h"
#include "shim/state/comm_state.h"

#include <mpi.h>
#include <stdbool.h>

/* One side of a call: where the data of each neighbour is. Unused members are zero. */
struct cpl_neighbor_side {
    char *buffer;
    MPI_Count count;               /* elements for each neighbour, when there are no counts */
    const int *counts;             /* elements per neighbour */
    const MPI_Count *large_counts; /* elements per neighbour, in place of counts */
    const int *displs;             /* displacements in extents of the type */
    const MPI_Aint *large_displs;  /* the same, in place of displs */
    const MPI_Aint *byte_displs;   /* displacements in bytes */
    const int *int_byte_displs;
    MPI_Datatype type; /* when types is NULL */
    const MPI_Datatype *types;
    bool same; /* every neighbour gets the data at buffer (allgather) */
};

struct cpl_neighbor_call {
    enum cpl_neighbor_kind kind;
    bool by_rank;  /* arguments are for all ranks, not for neighbours (MPI_Alltoallv, MPI_Alltoallw)
                    */
    bool in_place; /* `send` is `recv` (cpl_alltoall_describe) */
    MPI_Comm comm;
    struct cpl_neighbor_side send, recv;
    /* Set by the functions that carry it, for cpl_neighbor_passed: */
    struct cpl_comm_state *state;
    struct cpl_exchange *watched; /* exchange that is watched; NULL: none */
    double start;                 /* when the call began, in seconds */
};

/* Carries the call if it is planned. Returns true when the call is done, with MPI's result in
 * *result; false when it is to be made through PMPI, and cpl_neighbor_passed to be called after it.
 * Plans the exchange when it has been seen often enough; MPI_Alltoallv and MPI_Alltoallw are
 * planned when ranks send mostly to the same ones. Collective over the communicator,
 * as the call is. */
bool cpl_neighbor_carry(struct cpl_neighbor_call *call, int *result);

/* Call it after PMPI made a call that was not carried. */
void cpl_neighbor_passed(struct cpl_neighbor_call *call);

/* Whether a call passes without a look (meet/pass.h), so that it is MPI's: MPI carries the
 * exchange, and for some calls nothing is to be decided, measured or noted. Local. */
static inline bool cpl_pass_exchange(const struct cpl_neighbor_call *call)
{
    struct cpl_comm_state *state = cpl_pass_state(call->comm);
    if (!state || cpl_context.busy.first_pending)
        return false;
    if (!state->watched && call->kind < CPL_ALLTOALLV) /* one rank */
        return true;
    if (!state->exchanges)
        return false;
    struct cpl_exchange *x = &state->exchanges[call->kind];
    if (x->pass.remaining == 0)
        return false;
    x->pass.remaining--;
    return true;
}

/* Starts the call's nonblocking form if it is carried. Returns true when it is started, with MPI's
 * result in *result; false when it is to be made through PMPI. Local. */
bool cpl_neighbor_start(struct cpl_neighbor_call *call, MPI_Request *request, int *result);

/* Makes the call's persistent request if it is carried, of a neighborhood collective or (by_rank)
 * MPI_Alltoallv or MPI_Alltoallw. Returns true when it is made, with MPI's
 * result in *result; false when it is to be made through PMPI. Collective over the communicator. */
bool cpl_neighbor_init(struct cpl_neighbor_call *call, MPI_Request *request, int *result);

/* Call it after PMPI made a persistent request that is not carried, or failed to: a profile run
 * counts its starts. Local. */
void cpl_neighbor_init_passed(const struct cpl_neighbor_call *call, int result,
                              const MPI_Request *request);

/* Takes the pace of nonblocking calls at a blocking collective of the communicator, before the
 * ranks meet (meet/meeting.h); and at another call that comes as regularly where there are none.
 * Local. */
void cpl_neighbor_note_collective(struct cpl_comm_state *state);
void cpl_neighbor_note_pace(struct cpl_comm_state *state);

/* Advances pending calls; never waits. Returns whether any was completed. Local. */
bool cpl_neighbor_poll(void);

/* State of these decisions (neighbor_serve.c). */
struct cpl_serve {
    bool named;   /* there has been a nonblocking call */
    bool counted; /* the communicator counts in cpl_context.busy.n_served */
    int64_t id;   /* name of the communicator on all its ranks, once `request` is complete */
    MPI_Request request;
    struct cpl_date date;             /* when they are decided about; alike on all ranks */
    struct cpl_comm_state *candidate; /* that this rank has voted for last; NULL: none */
    bool met_any;                     /* there was something to decide; alike on all ranks */
    struct cpl_pace pace;             /* pace of nonblocking calls on any communicator */
    int64_t n_carried; /* carried nonblocking calls, at the last blocking collective */
};

/* The communicator counts among those whose calls are carried, or does so no longer. Those of fewer
 * ranks count by cpl_part_need. On all its ranks. */
void cpl_neighbor_count_served(struct cpl_comm_state *state, bool served);

extern const struct cpl_hooks cpl_exchange_hooks;

#endif
