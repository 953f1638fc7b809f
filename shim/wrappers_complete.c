/* The intercepted completion calls (doc/point-to-point.md): batches leave, and while anything is
 * managed they poll. */
#include "pt2pt_persistent.h"

#include "pt2pt.h"

#define EXPORT __attribute__((visibility("default")))

/* Whether a completion call has to poll; batches leave in any case. */
static bool polls(void)
{
    if (!cpl_context.active)
        return false;
    if (cpl_context.n_open_batches > 0)
        cpl_pt2pt_leave();
    return cpl_pt2pt_any_managed() || cpl_context.n_active_persistent > 0 || cpl_context.failures;
}

EXPORT int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    if (polls()) {
        cpl_pt2pt_poll();
        if (cpl_persistent_get_status(request, flag, status))
            return MPI_SUCCESS;
    }
    return PMPI_Request_get_status(request, flag, status);
}

EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    return polls() ? cpl_complete_one(request, NULL, status) : PMPI_Wait(request, status);
}

EXPORT int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    return polls() ? cpl_complete_one(request, flag, status) : PMPI_Test(request, flag, status);
}

EXPORT int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    return polls() ? cpl_complete_all(count, requests, NULL, statuses)
                   : PMPI_Waitall(count, requests, statuses);
}

EXPORT int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    return polls() ? cpl_complete_all(count, requests, flag, statuses)
                   : PMPI_Testall(count, requests, flag, statuses);
}

EXPORT int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    return polls() ? cpl_complete_any(count, requests, index, NULL, status)
                   : PMPI_Waitany(count, requests, index, status);
}

EXPORT int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    return polls() ? cpl_complete_any(count, requests, index, flag, status)
                   : PMPI_Testany(count, requests, index, flag, status);
}

EXPORT int MPI_Waitsome(int count, MPI_Request requests[], int *n_done, int indices[],
                        MPI_Status statuses[])
{
    return polls() ? cpl_complete_some(count, requests, n_done, indices, statuses, true)
                   : PMPI_Waitsome(count, requests, n_done, indices, statuses);
}

EXPORT int MPI_Testsome(int count, MPI_Request requests[], int *n_done, int indices[],
                        MPI_Status statuses[])
{
    return polls() ? cpl_complete_some(count, requests, n_done, indices, statuses, false)
                   : PMPI_Testsome(count, requests, n_done, indices, statuses);
}
