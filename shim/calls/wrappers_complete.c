/* The intercepted completion calls (doc/point-to-point.md): they send the batches, and poll while
 * anything is managed. */
#include "shim/calls/meets.h"
#include "shim/calls/pt2pt_complete.h"
#include "shim/calls/wrappers.h"
#include "shim/meet/appointment.h"
#include "shim/wait/progress.h"

/* Whether a completion call is MPI's without a further look. */
static inline bool all_pass(void)
{
    const struct cpl_busy *busy = &cpl_context.busy; /* threads look without the lock */
    return !cpl_context.active ||
           (__atomic_load_n(&busy->n_open_batches, __ATOMIC_RELAXED) == 0 &&
            !cpl_progress_needed() &&
            __atomic_load_n(&busy->n_active_requests, __ATOMIC_RELAXED) == 0 &&
            !__atomic_load_n(&cpl_context.timed.of, __ATOMIC_RELAXED) &&
            !busy->appointment.with); /* there is none where several threads call */
}

/* Whether a completion call has to poll, or may have requests that MPI does not know. Sends the
 * batches in any case. */
static bool polls(void)
{
    leave();
    return cpl_progress_needed() || cpl_context.busy.n_active_requests > 0;
}

/* Notes the end of a call that may have waited, to time a batch in a profile run. */
static int ended(int result)
{
    if (cpl_context.timed.signature)
        cpl_context.timed.end = PMPI_Wtime();
    return result;
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

/* Calls that do not pass have a function of their own, so that a call that passes saves no
 * registers. */
#define COMPLETES(name, parameters, arguments, appointed, is_right, carried)                       \
    PASSING(name, parameters, arguments, all_pass())                                               \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        const bool meets = appointed;                                                              \
        if (polls() && (is_right))                                                                 \
            return cpl_meets_waited(meets, carried);                                               \
        int result;                                                                                \
        {                                                                                          \
            CPL_OUTSIDE;                                                                           \
            result = PMPI_##name arguments;                                                        \
        }                                                                                          \
        return cpl_meets_waited(meets, ended(result));                                             \
    }
#include "shim/tables/pt2pt.def"
