/* MPI_Allgather and MPI_Allgatherv, carried as a ring or recursive doubling over ranks that are
 * placed for the machine (planner/place/allgather.h), with the result in the program's order.
 *
 * All ranks know how much data there is in all, so they decide alike without messages: calls with
 * little data are MPI's. When larger calls have taken some milliseconds by a rough count, the ranks
 * agree once: one rank places all ranks and models the time of each way for each class of sizes. In
 * mode auto the ways that promise enough are then tried against MPI, class by class (trial.h).
 *
 * Cost of a call that is not carried: a few comparisons; MPI_Allgatherv adds up its counts. Thread
 * rule: one thread. */
#ifndef CARPOOL_ALLGATHER_CALLS_H
#define CARPOOL_ALLGATHER_CALLS_H

#include "shim/exchange/gathering.h"
#include "shim/exchange/neighbor.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct cpl_allgather_call {
    enum cpl_allgather_kind kind;
    MPI_Comm comm;
    struct cpl_neighbor_side send, recv; /* recv has arguments for all ranks */
    /* Set by cpl_allgather_carry for cpl_allgather_passed: */
    struct cpl_comm_state *state;
    struct cpl_allgather_size *watched; /* class that is watched; NULL: none */
    double start;                       /* when the call began, in seconds */
};

/* Carries an open call (cpl_allgather_is_open) if a way is to carry it. Returns true when it is
 * done, with MPI's result in *result; false when it is to be made through PMPI, and
 * cpl_allgather_passed to be called after it. Collective, as the call is. */
bool cpl_allgather_carry(struct cpl_allgather_call *call, int *result);

/* Call it after PMPI made a call that was not carried. */
void cpl_allgather_passed(struct cpl_allgather_call *call);

extern const struct cpl_hooks cpl_allgather_hooks;

/* Bytes of all ranks' data; -1: too many to count, or an argument that MPI refuses. Local. */
static inline int64_t cpl_allgather_bytes(const struct cpl_allgather_call *call, int n_ranks)
{
    const struct cpl_neighbor_side *recv = &call->recv;
    int64_t count = 0, bytes;
    if (call->kind == CPL_ALLGATHER && __builtin_mul_overflow(recv->count, n_ranks, &count))
        return -1;
    for (int r = 0; recv->counts && r < n_ranks; r++) {
        if (recv->counts[r] < 0)
            return -1;
        count += recv->counts[r];
    }
    for (int r = 0; recv->large_counts && r < n_ranks; r++)
        if (recv->large_counts[r] < 0 ||
            __builtin_add_overflow(count, recv->large_counts[r], &count))
            return -1;
    return __builtin_mul_overflow(count, cpl_type_size(recv->type), &bytes) ? -1 : bytes;
}

/* Whether a call is open: it may be carried, so cpl_allgather_carry looks at it. Local. */
static inline bool cpl_allgather_is_open(const struct cpl_allgather_call *call)
{
    const struct cpl_comm_state *state = cpl_comm_state_get(call->comm);
    return state && state->allgathers.least < CPL_ALLGATHER_NONE &&
           cpl_allgather_bytes(call, state->size) >= state->allgathers.least;
}

#endif
