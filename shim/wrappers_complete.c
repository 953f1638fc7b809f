/* The intercepted completion calls (doc/point-to-point.md): batches leave, and while anything is
 * managed they poll. */
#include "pt2pt.h"
#include "pt2pt_complete.h"
#include "pt2pt_requests.h"

#define EXPORT   __attribute__((visibility("default")))
#define NOINLINE __attribute__((noinline))

/* Whether a completion call is MPI's without a further look. */
static inline bool passes(void)
{
    return !cpl_context.active || (cpl_context.n_open_batches == 0 && !cpl_pt2pt_any_managed() &&
                                   cpl_context.n_active_requests == 0 && !cpl_context.timed.of);
}

/* Whether a completion call has to poll, or may be given requests that MPI does not know; batches
 * leave in any case. */
static bool polls(void)
{
    if (!cpl_context.active)
        return false;
    if (cpl_context.n_open_batches > 0)
        cpl_pt2pt_leave();
    return cpl_pt2pt_any_managed() || cpl_context.n_active_requests > 0;
}

/* The end of a call that may have waited: for the time of a batch in a profile run. */
static int ended(int result)
{
    if (cpl_context.timed.signature)
        cpl_profile_call_ended();
    return result;
}

EXPORT int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    if (polls())
        cpl_pt2pt_poll();
    struct cpl_request *managed = cpl_request_active(request);
    if (managed) {
        *flag = cpl_request_is_done(managed);
        if (*flag)
            cpl_request_status(managed, status);
        return MPI_SUCCESS;
    }
    return PMPI_Request_get_status(request, flag, status);
}

/* A call that does not pass is a function of its own, so that one that does saves no registers. */
#define COMPLETION(name, parameters, arguments, carried)                                           \
    static NOINLINE int watched_##name parameters                                                  \
    {                                                                                              \
        return polls() ? carried : ended(PMPI_##name arguments);                                   \
    }                                                                                              \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        return passes() ? PMPI_##name arguments : watched_##name arguments;                        \
    }

COMPLETION(Wait, (MPI_Request * request, MPI_Status *status), (request, status),
           cpl_complete_one(request, NULL, status))
COMPLETION(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status),
           cpl_complete_one(request, flag, status))
COMPLETION(Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]),
           (count, requests, statuses), cpl_complete_all(count, requests, NULL, statuses))
COMPLETION(Testall, (int count, MPI_Request requests[], int *flag, MPI_Status statuses[]),
           (count, requests, flag, statuses), cpl_complete_all(count, requests, flag, statuses))
COMPLETION(Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status),
           (count, requests, index, status), cpl_complete_any(count, requests, index, NULL, status))
COMPLETION(Testany, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
           (count, requests, index, flag, status),
           cpl_complete_any(count, requests, index, flag, status))
COMPLETION(Waitsome,
           (int count, MPI_Request requests[], int *n_done, int indices[], MPI_Status statuses[]),
           (count, requests, n_done, indices, statuses),
           cpl_complete_some(count, requests, n_done, indices, statuses, true))
COMPLETION(Testsome,
           (int count, MPI_Request requests[], int *n_done, int indices[], MPI_Status statuses[]),
           (count, requests, n_done, indices, statuses),
           cpl_complete_some(count, requests, n_done, indices, statuses, false))
