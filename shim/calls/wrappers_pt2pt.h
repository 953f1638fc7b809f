/* Functions that the wrappers of point-to-point calls share. */
#ifndef CARPOOL_WRAPPERS_PT2PT_H
#define CARPOOL_WRAPPERS_PT2PT_H

#include "shim/calls/pt2pt_calls.h"
#include "shim/pt2pt/pt2pt.h"
#include "shim/state/comm_state.h"

#include <mpi.h>
#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))

/* Marks the function for calls that do not pass. It is a function of its own with the same
 * parameters, so that a call that passes saves no registers and jumps on to MPI. */
#define WATCHED static __attribute__((noinline)) int

/* Whether a call passes: it is MPI's without a further look. */
static inline bool passes(MPI_Comm comm)
{
    if (comm == __atomic_load_n(&cpl_context.comms.alone, __ATOMIC_RELAXED) || !cpl_context.active)
        return true;
    if (cpl_context.service.on || cpl_context.service.shared) /* what waits must poll */
        return false;
    const struct cpl_recent *recent = cpl_context_recent(comm);
    return comm == recent->comm && recent->alone;
}

/* Whether a message to or from `peer` passes because its communicator rests, and all there is to do
 * is count it; `sign` as in base/balance.h. */
static inline bool rests(MPI_Comm comm, int peer, int tag, int sign)
{
    const struct cpl_recent *recent = cpl_context_recent(comm);
    if (comm != recent->comm || !recent->balance || cpl_context.service.on ||
        cpl_context.service.shared || peer < 0 || peer >= recent->state->size || tag < 0)
        return false;
    int rank = recent->state->rank;
    cpl_balance_count(recent->balance, sign, sign > 0 ? rank : peer, sign > 0 ? peer : rank, tag);
    return true;
}

/* Before a call that may wait: sends the batches. */
static inline void leave(void)
{
    if (cpl_context.busy.n_open_batches > 0)
        cpl_progress_leave();
}

/* A call that passes is MPI's. */
#define PASSING(name, parameters, arguments, is_mpis)                                              \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        return (is_mpis) ? PMPI_##name arguments : watched_##name arguments;                       \
    }

/* Whether the status argument is valid; MPI refuses a null pointer other than MPI_STATUS_IGNORE. */
static inline bool has_status(const MPI_Status *status)
{
    return status || status == MPI_STATUS_IGNORE;
}

/* While the shim learns about a communicator. cpl_wrap_note_send: a message is sent.
 * cpl_wrap_note_receive: a receive is over. cpl_wrap_posted: MPI's nonblocking receive has returned
 * `result`; returns that, and may put a request of the shim in the place of MPI's. */
void cpl_wrap_note_send(MPI_Comm comm, MPI_Count count, MPI_Datatype type, int dest, int tag);
void cpl_wrap_note_receive(MPI_Comm comm, int source, int tag);
int cpl_wrap_posted(MPI_Comm comm, int source, int tag, int result, MPI_Request *request);

/* After a blocking receive by MPI, when the source and tag are known even for wildcards. */
void cpl_wrap_note_received(MPI_Comm comm, int source, int tag, int result,
                            const MPI_Status *status);

#endif
