/* Failed receives (pt2pt_failed.h). */
#include "pt2pt_failed.h"

#include <stdbool.h>
#include <stdlib.h>
#include <utlist.h>

struct cpl_failure {
    struct cpl_failure *prev, *next;
    MPI_Request request;
    MPI_Comm comm;
    int error;
};

struct cpl_failed {
    struct cpl_failure *failure[1]; /* one for each request; NULL: it has not failed */
};

void cpl_failed_add(MPI_Request request, MPI_Comm comm, int error)
{
    struct cpl_failure *failure = calloc(1, sizeof *failure);
    if (!failure)
        return;
    failure->request = request;
    failure->comm = comm;
    failure->error = error;
    DL_APPEND(cpl_context.failures, failure);
}

struct cpl_failed *cpl_failed_find(int n, const MPI_Request *requests)
{
    struct cpl_failed *failed = NULL;
    struct cpl_failure *failure;
    for (int k = 0; k < n && cpl_context.failures; k++)
        DL_FOREACH(cpl_context.failures, failure)
        {
            if (failure->request != requests[k] || requests[k] == MPI_REQUEST_NULL)
                continue;
            if (!failed)
                failed = calloc(1, sizeof *failed + (size_t)n * sizeof(struct cpl_failure *));
            if (failed)
                failed->failure[k] = failure;
            break;
        }
    return failed;
}

/* Takes a failure off the list. Returns its error. */
static int settle(struct cpl_failure *failure, MPI_Comm *comm)
{
    int error = failure->error;
    *comm = failure->comm;
    DL_DELETE(cpl_context.failures, failure);
    free(failure);
    return error;
}

int cpl_failed_one(struct cpl_failed *failed, int index, int result)
{
    MPI_Comm comm;
    if (failed && index != MPI_UNDEFINED && failed->failure[index]) {
        result = settle(failed->failure[index], &comm);
        PMPI_Comm_call_errhandler(comm, result);
    }
    free(failed);
    return result;
}

int cpl_failed_some(struct cpl_failed *failed, int n, const int *indices, MPI_Status *statuses,
                    int result)
{
    MPI_Comm comm = MPI_COMM_NULL;
    if (!failed)
        return result;
    for (int k = 0; k < n; k++) {
        int at = indices ? indices[k] : k, error = MPI_SUCCESS;
        if (failed->failure[at])
            error = settle(failed->failure[at], &comm);
        if (statuses != MPI_STATUSES_IGNORE && (error != MPI_SUCCESS || result == MPI_SUCCESS))
            statuses[k].MPI_ERROR = error;
    }
    free(failed);
    if (comm == MPI_COMM_NULL)
        return result;
    PMPI_Comm_call_errhandler(comm, MPI_ERR_IN_STATUS);
    return MPI_ERR_IN_STATUS;
}

int cpl_failed_all(struct cpl_failed *failed, int n, MPI_Status *statuses, int result)
{
    return cpl_failed_some(failed, n, NULL, statuses, result);
}

void cpl_failed_forget(struct cpl_failed *failed)
{
    free(failed);
}
