/* What the wrappers share, most of it those of point-to-point calls. */
#ifndef CARPOOL_WRAPPERS_H
#define CARPOOL_WRAPPERS_H

#include "shim/calls/pt2pt_calls.h"
#include "shim/pt2pt/pt2pt.h"
#include "shim/state/comm_state.h"
#include "shim/tables/words.h"

#include <mpi.h>
#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))

/* Marks the function for calls that do not pass. It is a function of its own with the same
 * parameters, so that a call that passes saves no registers and jumps on to MPI. In a program with
 * several threads all calls of exchanges come there, and may pass within the lock. */
#define WATCHED static __attribute__((noinline)) int

/* Counts a message, `sign` as in base/balance.h; there is nothing to count of one to or from
 * MPI_PROC_NULL. Returns false if it has a wildcard, or MPI refuses it. */
static inline bool count_message(struct cpl_balance *balance, int rank, int size, int peer, int tag,
                                 int sign)
{
    if ((unsigned)peer >= (unsigned)size || tag < 0)
        return peer == MPI_PROC_NULL;
    cpl_balance_count(balance, sign, sign > 0 ? rank : peer, sign > 0 ? peer : rank, tag);
    return true;
}

/* Whether a message to or from `peer` is MPI's alone: it passes, or its communicator rests and the
 * message is counted. */
static inline bool is_mpis(MPI_Comm comm, int peer, int tag, int sign)
{
    const struct cpl_recent *recent = cpl_context_recent(comm);
    if (comm == recent->comm &&
        (recent->alone || (recent->balance && count_message(recent->balance, recent->rank,
                                                            recent->size, peer, tag, sign))))
        return true;
    return comm == __atomic_load_n(&cpl_context.busy.alone, __ATOMIC_RELAXED);
}

/* MPI's function. A call of it by PMPI_NAME would touch one more page. */
#ifdef CPL_SIMULATED
#define MPIS(name, parameters) PMPI_##name
#else
#define MPIS(name, parameters) ((int(*) parameters)cpl_real_calls[CPL_CALL_MPI_##name][CPL_MPIS])
#endif

/* A call that passes is MPI's; what follows is the body of the function for those that do not. */
#define PASSING(name, parameters, arguments, is_mpis)                                              \
    WATCHED watched_##name parameters;                                                             \
    EXPORT CPL_PASSED int MPI_##name parameters                                                    \
    {                                                                                              \
        return (is_mpis) ? MPIS(name, parameters) arguments : watched_##name arguments;            \
    }                                                                                              \
    WATCHED watched_##name parameters

/* A blocking collective on comm, any handle, is entered: notes it, counts it, and meets if it is
 * time (meet/meeting.h). Collective. */
void cpl_meets_at_collective(MPI_Comm comm);

/* A nonblocking collective was started on comm, any handle, with this result, which is returned,
 * and if it was started, this request. `by_all`: it ends when all ranks have started it. Local. */
int cpl_meets_started(MPI_Comm comm, int result, const MPI_Request *request, bool by_all);

/* A call that waits has ended with this result, which is returned. `appointed`: there was an
 * appointment for what it has waited for (meet/appointment.h); then meets, if all ranks come. */
int cpl_meets_waited(bool appointed, int result);

/* A window was opened over comm: gives it a name that is alike on all its ranks. Waits for memory.
 * The other: it is about to be freed; polls until its ranks have come. Collective. */
void cpl_window_opened(MPI_Comm comm, MPI_Win win);
void cpl_window_closes(MPI_Win win);

/* At the end of MPI. */
void cpl_window_end(void);

/* Serves other ranks' locks. */
extern const struct cpl_hooks cpl_window_hooks;

/* Whether the status argument is valid; MPI refuses a null pointer other than MPI_STATUS_IGNORE. */
static inline bool has_status(const MPI_Status *status)
{
    return status || status == MPI_STATUS_IGNORE;
}

#endif
