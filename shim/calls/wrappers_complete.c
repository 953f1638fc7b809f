/* The intercepted completion calls and probes (doc/point-to-point.md): they send the batches, and
 * poll while anything is managed. */
#include "shim/calls/wrappers.h"
#include "shim/meet/appointment.h"
#include "shim/wait/progress.h"

/* Whether a completion call is MPI's without a further look. */
static inline bool all_pass(void)
{
    const struct cpl_busy *busy = &cpl_context.busy; /* threads look without the lock */
    return __atomic_load_n(&busy->n_open_batches, __ATOMIC_RELAXED) == 0 &&
           !cpl_progress_needed() &&
           __atomic_load_n(&busy->n_active_requests, __ATOMIC_RELAXED) == 0 &&
           !busy->appointment.with; /* there is none where several threads call */
}

/* Arguments that MPI refuses. MPI_STATUS_IGNORE is a null pointer in some implementations. */
static bool has_statuses(int count, const MPI_Status *statuses)
{
    return statuses || statuses == MPI_STATUSES_IGNORE || count == 0;
}

static bool is_array(int count, const MPI_Request *requests)
{
    return count >= 0 && (requests || count == 0);
}

/* Whether probes on all communicators are MPI's, and no batch has to be sent. */
static inline bool probes_pass(void)
{
    return !cpl_context.active || (cpl_context.busy.n_open_batches == 0 && !cpl_progress_needed() &&
                                   !cpl_context.service.shared);
}

/* A probe that does not pass, with arguments that MPI takes. flag: NULL for one that waits;
 * message: NULL for one that gives no handle. */
static int probe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                 MPI_Status *status)
{
    struct cpl_span none;
    MPI_Status own, *to = status == MPI_STATUS_IGNORE ? &own : status;
    int own_flag = 0, *found = flag ? flag : &own_flag, result;
    cpl_progress_leave();
    struct cpl_comm_state *state =
        cpl_pt2pt_managed(comm, NULL, 0, MPI_BYTE, source, tag, true, &none);
    if (state)
        return cpl_pt2pt_probe(state, source, tag, flag, message, status);
    if (!flag && !cpl_progress_needed()) {
        CPL_OUTSIDE;
        result = message ? PMPI_Mprobe(source, tag, comm, message, to)
                         : PMPI_Probe(source, tag, comm, to);
        own_flag = 1;
    } else {
        do {
            if (cpl_progress_needed())
                cpl_progress_poll();
            result = message ? PMPI_Improbe(source, tag, comm, found, message, to)
                             : PMPI_Iprobe(source, tag, comm, found, to);
        } while (!flag && !own_flag && result == MPI_SUCCESS);
    }
    if (message && result == MPI_SUCCESS && *found)
        cpl_watch_received(comm, source, tag, result, to);
    return result;
}

#define PROBES(name, parameters, arguments, passes, is_right, flag, message)                       \
    PASSING(name, parameters, arguments, passes)                                                   \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        return (is_right) && has_status(status) ? probe(source, tag, comm, flag, message, status)  \
                                                : PMPI_##name arguments;                           \
    }

/* A completion call sends the batches. It has to poll where that is needed, or it may have requests
 * that MPI does not know. */
#define COMPLETES(name, parameters, arguments, appointed, is_right, carried)                       \
    PASSING(name, parameters, arguments, all_pass())                                               \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        const bool meets = appointed;                                                              \
        cpl_progress_leave();                                                                      \
        if ((cpl_progress_needed() || cpl_context.busy.n_active_requests > 0) && (is_right))       \
            return cpl_meets_waited(meets, carried);                                               \
        return cpl_meets_waited(meets, CPL_AWAY(PMPI_##name arguments));                           \
    }
#include "shim/tables/pt2pt.def"
