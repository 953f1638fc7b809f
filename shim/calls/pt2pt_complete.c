/* Completion calls (pt2pt_calls.h). */
#include "shim/calls/pt2pt_calls.h"
#include "shim/wait/progress.h"

#include "shim/carry/requests.h"
#include "shim/pt2pt/pt2pt.h"
#include "shim/state/memory.h"

#include <stdlib.h>

#define FEW 64 /* requests that need no memory */

static MPI_Status *status_at(MPI_Status *statuses, int k)
{
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[k];
}

/* Completes a request that is done; a call that peeks only tells the status. Returns the request's
 * error. */
static int settle(struct cpl_request *request, MPI_Request *handle, MPI_Status *status,
                  enum cpl_completion how)
{
    if (how != CPL_PEEKS)
        return cpl_request_settle(request, handle, status);
    cpl_request_status(request, status);
    return MPI_SUCCESS;
}

static int settle_one(struct cpl_request *request, MPI_Request *handle, MPI_Status *status,
                      enum cpl_completion how)
{
    MPI_Comm comm = request->comm;
    return cpl_raise(comm, settle(request, handle, status, how));
}

/* Whether a call that tests has looked often enough: once, and once more after a poll where there
 * is something to poll. */
static bool has_tested(bool looked)
{
    return looked || !cpl_progress_needed();
}

/* What a completion call does first. */
static void begin(enum cpl_completion how)
{
    if (how != CPL_WAITS)
        cpl_progress_no_wait();
    cpl_progress_leave();
}

/* Counts the shim's requests in an array. *n_open: how many of them are not done; *first: the first
 * that is done, -1 when none is. */
static int count_ours(int n, const MPI_Request *requests, int *n_open, int *first)
{
    int n_ours = 0;
    *n_open = 0;
    *first = -1;
    cpl_request_look(n, requests);
    for (int k = 0; k < n && cpl_context.busy.n_active_requests > 0; k++) {
        struct cpl_request *request = cpl_request_active(requests[k]);
        if (!request)
            continue;
        n_ours++;
        if (!cpl_request_is_known_done(request))
            ++*n_open;
        else if (*first < 0)
            *first = k;
    }
    return n_ours;
}

enum which { ALL, ANY, SOME };

/* Asks MPI about its part of an array, by a copy in which there is no request in the places of the
 * shim's, as PMPI_Testall, _any or _some do or, if the call peeks, the forms of
 * PMPI_Request_get_status; *done: how many of some are, else whether. */
static int ask_mpi(enum which which, int n, MPI_Request *requests, int *done, int *index,
                   MPI_Status *statuses, enum cpl_completion how)
{
    MPI_Request few[FEW],
        *others =
            n <= FEW ? few : cpl_memory_need((size_t)n * sizeof *others, "an array of requests");
    const bool peeks = how == CPL_PEEKS;
    int result;
    for (int k = 0; k < n; k++)
        others[k] = cpl_request_active(requests[k]) ? MPI_REQUEST_NULL : requests[k];
    if (which == ALL)
        result = peeks ? PMPI_Request_get_status_all(n, others, done, statuses)
                       : PMPI_Testall(n, others, done, statuses);
    else if (which == ANY)
        result = peeks ? PMPI_Request_get_status_any(n, others, index, done, statuses)
                       : PMPI_Testany(n, others, index, done, statuses);
    else
        result = peeks ? PMPI_Request_get_status_some(n, others, done, index, statuses)
                       : PMPI_Testsome(n, others, done, index, statuses);
    for (int k = 0; k < n && *done && !peeks; k++)
        if (!cpl_request_active(requests[k]))
            requests[k] = others[k];
    if (others != few)
        free(others);
    return result;
}

/* ---- one ---- */

static void wait_for(struct cpl_request *request)
{
    while (!cpl_request_is_done(request)) {
        if (cpl_request_comes(request))
            cpl_progress_await();
        else
            cpl_progress_poll();
    }
}

int cpl_complete_one(MPI_Request *handle, int *flag, MPI_Status *status, enum cpl_completion how)
{
    struct cpl_request *request = cpl_request_active(*handle);
    begin(how);
    if (request && how == CPL_WAITS)
        wait_for(request);
    for (bool looked = false;; looked = true) {
        int done = 0, result = MPI_SUCCESS;
        if (request)
            done = how == CPL_WAITS || cpl_request_is_done(request);
        else
            result = how == CPL_PEEKS ? PMPI_Request_get_status(*handle, &done, status)
                                      : PMPI_Test(handle, &done, status);
        if (flag)
            *flag = done;
        if (request && done)
            return settle_one(request, handle, status, how);
        if (done || result != MPI_SUCCESS || (how != CPL_WAITS && has_tested(looked)))
            return result;
        cpl_progress_poll();
    }
}

/* ---- all ---- */

/* Waits for a request of the shim and settles it, which has a place in statuses. Its error becomes
 * that of the array; *comm: of such an error that is still to be raised. */
static int settle_of_all(struct cpl_request *request, MPI_Request *handle, MPI_Status *status,
                         enum cpl_completion how, int result, MPI_Comm *comm)
{
    wait_for(request);
    MPI_Comm its = request->comm;
    int error = settle(request, handle, status, how);
    if (status != MPI_STATUS_IGNORE && (how == CPL_WAITS || error != MPI_SUCCESS))
        status->MPI_ERROR = error;
    if (error == MPI_SUCCESS)
        return result;
    *comm = its == MPI_COMM_NULL ? *comm : its;
    return MPI_ERR_IN_STATUS;
}

/* Settles the shim's requests of an array, all of which are done. */
static int settle_ours(int n, MPI_Request *requests, MPI_Status *statuses, enum cpl_completion how,
                       int result)
{
    MPI_Comm comm = MPI_COMM_NULL;
    for (int k = 0; k < n && cpl_context.busy.n_active_requests > 0; k++) {
        struct cpl_request *request = cpl_request_active(requests[k]);
        if (request)
            result =
                settle_of_all(request, &requests[k], status_at(statuses, k), how, result, &comm);
    }
    return cpl_raise(comm, result);
}

static int wait_all(int n, MPI_Request *requests, MPI_Status *statuses)
{
    int result = MPI_SUCCESS;
    MPI_Comm comm = MPI_COMM_NULL;
    int k = 0;
    for (; k < n && result == MPI_SUCCESS; k++) {
        struct cpl_request *request = cpl_request_active(requests[k]);
        if (request && statuses == MPI_STATUSES_IGNORE &&
            cpl_request_settle_sent(request, &requests[k]))
            continue;
        if (request)
            result = settle_of_all(request, &requests[k], status_at(statuses, k), CPL_WAITS, result,
                                   &comm);
        else
            result = cpl_progress_wait_each(1, &requests[k], status_at(statuses, k));
    }
    for (; k < n && statuses != MPI_STATUSES_IGNORE; k++) /* as MPICH does behind an error */
        statuses[k].MPI_ERROR = requests[k] == MPI_REQUEST_NULL ? MPI_SUCCESS : MPI_ERR_PENDING;
    return cpl_raise(comm, result);
}

static int test_all(int n, MPI_Request *requests, int *flag, MPI_Status *statuses,
                    enum cpl_completion how)
{
    for (bool looked = false;; looked = true) {
        int n_open, first, n_ours = count_ours(n, requests, &n_open, &first), result = MPI_SUCCESS;
        *flag = n_open == 0;
        if (*flag && n_ours < n)
            result = ask_mpi(ALL, n, requests, flag, NULL, statuses, how);
        if (*flag)
            return settle_ours(n, requests, statuses, how, result);
        if (result != MPI_SUCCESS || has_tested(looked))
            return result;
        cpl_progress_poll();
    }
}

int cpl_complete_all(int n, MPI_Request *requests, int *flag, MPI_Status *statuses,
                     enum cpl_completion how)
{
    begin(how);
    return how == CPL_WAITS ? wait_all(n, requests, statuses)
                            : test_all(n, requests, flag, statuses, how);
}

/* ---- any ---- */

int cpl_complete_any(int n, MPI_Request *requests, int *index, int *flag, MPI_Status *status,
                     enum cpl_completion how)
{
    begin(how);
    for (bool looked = false;; looked = true) {
        int n_open, first, done = 0, result = MPI_SUCCESS;
        int n_ours = count_ours(n, requests, &n_open, &first);
        if (flag)
            *flag = first >= 0;
        if (first >= 0) {
            *index = first;
            return settle_one(cpl_request_active(requests[first]), &requests[first], status, how);
        }
        if (n_ours < n || n == 0)
            result = ask_mpi(ANY, n, requests, &done, index, status, how);
        if (done && *index == MPI_UNDEFINED && n_ours > 0)
            done = 0; /* nothing of MPI's is active */
        if (flag)
            *flag = done;
        if (done || result != MPI_SUCCESS)
            return result;
        if (how != CPL_WAITS && has_tested(looked)) {
            *index = MPI_UNDEFINED;
            return MPI_SUCCESS;
        }
        cpl_progress_poll();
    }
}

/* ---- some ---- */

/* Settles the shim's requests that are done, and lists them behind those that MPI has reported. */
static int settle_some(int n, MPI_Request *requests, int *n_done, int *indices,
                       MPI_Status *statuses, enum cpl_completion how, int result)
{
    MPI_Comm comm = MPI_COMM_NULL;
    for (int k = 0; k < n && cpl_context.busy.n_active_requests > 0; k++) {
        struct cpl_request *request = cpl_request_active(requests[k]);
        if (!request || !cpl_request_is_known_done(request))
            continue;
        MPI_Comm its = request->comm;
        int error = settle(request, &requests[k], status_at(statuses, *n_done), how);
        if (statuses != MPI_STATUSES_IGNORE && (result != MPI_SUCCESS || error != MPI_SUCCESS))
            statuses[*n_done].MPI_ERROR = error;
        for (int i = 0; i < *n_done && statuses != MPI_STATUSES_IGNORE; i++)
            if (result == MPI_SUCCESS && error != MPI_SUCCESS) /* from now on they have errors */
                statuses[i].MPI_ERROR = MPI_SUCCESS;
        indices[(*n_done)++] = k;
        if (error == MPI_SUCCESS)
            continue;
        result = MPI_ERR_IN_STATUS;
        comm = its == MPI_COMM_NULL ? comm : its;
    }
    return cpl_raise(comm, result);
}

int cpl_complete_some(int n, MPI_Request *requests, int *n_done, int *indices, MPI_Status *statuses,
                      enum cpl_completion how)
{
    begin(how);
    for (bool looked = false;; looked = true) {
        int n_open, first, n_ours = count_ours(n, requests, &n_open, &first);
        int result = MPI_SUCCESS;
        *n_done = 0;
        if (n_ours < n || n == 0)
            result = ask_mpi(SOME, n, requests, n_done, indices, statuses, how);
        if (*n_done == MPI_UNDEFINED && n_ours > 0)
            *n_done = 0; /* nothing of MPI's is active */
        if (*n_done != MPI_UNDEFINED)
            result = settle_some(n, requests, n_done, indices, statuses, how, result);
        if (result != MPI_SUCCESS || *n_done != 0 || (how != CPL_WAITS && has_tested(looked)))
            return result;
        cpl_progress_poll();
    }
}
