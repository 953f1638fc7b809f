/* The intercepted completion calls (doc/point-to-point.md): they send the batches, and poll while
 * anything is managed. */
#include "shim/calls/meets.h"
#include "shim/calls/pt2pt_complete.h"
#include "shim/calls/wrappers_pt2pt.h"
#include "shim/meet/appointment.h"
#include "shim/pt2pt/pt2pt_profile.h"
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
    if (cpl_context.busy.n_open_batches > 0)
        cpl_progress_leave();
    return cpl_progress_needed() || cpl_context.busy.n_active_requests > 0;
}

/* Notes the end of a call that may have waited, to time a batch in a profile run. */
static int ended(int result)
{
    if (cpl_context.timed.signature)
        cpl_profile_call_ended();
    return result;
}

/* Calls that do not pass have a function of their own, so that a call that passes saves no
 * registers. */
#define COMPLETION(name, parameters, arguments, is_right, carried)                                 \
    WAITING(name, parameters, arguments, false, is_right, carried)
/* `appointed`: whether the ranks may meet when the call has ended. */
#define WAITING(name, parameters, arguments, appointed, is_right, carried)                         \
    WATCHED watched_##name parameters                                                              \
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
    }                                                                                              \
    PASSING(name, parameters, arguments, all_pass())

/* Arguments that MPI refuses. MPI_STATUS_IGNORE is a null pointer in some implementations. */
static bool has_statuses(int count, const MPI_Status *statuses)
{
    return statuses || statuses == MPI_STATUSES_IGNORE || count == 0;
}

static bool is_array(int count, const MPI_Request *requests)
{
    return count >= 0 && (requests || count == 0);
}

COMPLETION(Request_get_status, (MPI_Request request, int *flag, MPI_Status *status),
           (request, flag, status), flag &&has_status(status),
           cpl_status_one(request, flag, status))
COMPLETION(Request_get_status_all,
           (int count, const MPI_Request requests[], int *flag, MPI_Status statuses[]),
           (count, requests, flag, statuses),
           is_array(count, requests) && flag && has_statuses(count, statuses),
           cpl_status_all(count, requests, flag, statuses))
COMPLETION(Request_get_status_any,
           (int count, const MPI_Request requests[], int *index, int *flag, MPI_Status *status),
           (count, requests, index, flag, status),
           is_array(count, requests) && index && flag && has_status(status),
           cpl_status_any(count, requests, index, flag, status))
COMPLETION(Request_get_status_some,
           (int count, const MPI_Request requests[], int *n_done, int indices[],
            MPI_Status statuses[]),
           (count, requests, n_done, indices, statuses),
           is_array(count, requests) && n_done && indices && has_statuses(count, statuses),
           cpl_status_some(count, requests, n_done, indices, statuses))
WAITING(Wait, (MPI_Request * request, MPI_Status *status), (request, status),
        cpl_appointment_is_for(1, request), request &&has_status(status),
        cpl_complete_one(request, NULL, status))
COMPLETION(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status),
           request &&flag &&has_status(status), cpl_complete_one(request, flag, status))
WAITING(Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]),
        (count, requests, statuses), cpl_appointment_is_for(count, requests),
        is_array(count, requests) && has_statuses(count, statuses),
        cpl_complete_all(count, requests, NULL, statuses))
COMPLETION(Testall, (int count, MPI_Request requests[], int *flag, MPI_Status statuses[]),
           (count, requests, flag, statuses),
           is_array(count, requests) && flag && has_statuses(count, statuses),
           cpl_complete_all(count, requests, flag, statuses))
COMPLETION(Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status),
           (count, requests, index, status),
           is_array(count, requests) && index && has_status(status),
           cpl_complete_any(count, requests, index, NULL, status))
COMPLETION(Testany, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
           (count, requests, index, flag, status),
           is_array(count, requests) && index && flag && has_status(status),
           cpl_complete_any(count, requests, index, flag, status))
COMPLETION(Waitsome,
           (int count, MPI_Request requests[], int *n_done, int indices[], MPI_Status statuses[]),
           (count, requests, n_done, indices, statuses),
           is_array(count, requests) && n_done && indices && has_statuses(count, statuses),
           cpl_complete_some(count, requests, n_done, indices, statuses, true))
COMPLETION(Testsome,
           (int count, MPI_Request requests[], int *n_done, int indices[], MPI_Status statuses[]),
           (count, requests, n_done, indices, statuses),
           is_array(count, requests) && n_done && indices && has_statuses(count, statuses),
           cpl_complete_some(count, requests, n_done, indices, statuses, false))
