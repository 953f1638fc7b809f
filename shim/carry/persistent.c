/* Persistent requests (persistent.h). */
#include "shim/carry/persistent.h"

#include "shim/state/context.h"
#include "shim/wait/progress.h"

#include <utlist.h>

bool cpl_persistent_add(struct cpl_persistent *p, const struct cpl_persistent_kind *kind,
                        MPI_Request handle)
{
    p->kind = kind;
    p->request.handle = handle;
    p->request.persistent = true;
    if (!cpl_request_add(&p->request))
        return false;
    DL_APPEND(cpl_context.requests.persistent, p);
    return true;
}

struct cpl_persistent *cpl_persistent_find(MPI_Request handle)
{
    struct cpl_request *request = cpl_request_find(handle);
    return request && request->persistent ? (struct cpl_persistent *)(void *)request : NULL;
}

static void take_out(struct cpl_persistent *p)
{
    cpl_request_remove(&p->request);
    cpl_context.requests.n_forgotten++;
    DL_DELETE(cpl_context.requests.persistent, p);
}

void cpl_persistent_forget(struct cpl_persistent *p)
{
    take_out(p);
    p->kind->free(p);
}

int cpl_persistent_start(MPI_Request *request)
{
    struct cpl_request *found = cpl_request_find(*request);
    if (found && found->active) { /* it is active already, or not persistent */
        PMPI_Comm_call_errhandler(found->comm, MPI_ERR_REQUEST);
        return MPI_ERR_REQUEST;
    }
    struct cpl_persistent *p = (struct cpl_persistent *)(void *)found;
    return found && found->persistent ? p->kind->start(p, request) : PMPI_Start(request);
}

static void gone(struct cpl_request *request)
{
    struct cpl_persistent *p = (struct cpl_persistent *)(void *)request;
    p->kind->free(p);
}

void cpl_persistent_free(MPI_Request handle)
{
    struct cpl_persistent *p = cpl_persistent_find(handle);
    if (!p)
        return;
    if (p->kind->is_waited_for) {
        while (p->request.active && !cpl_request_is_done(&p->request))
            cpl_progress_poll();
        if (p->request.active)
            cpl_request_settle(&p->request, &handle, MPI_STATUS_IGNORE);
    }
    if (!p->request.active) {
        cpl_persistent_forget(p);
        return;
    }
    take_out(p);
    p->request.freed = true;
    p->request.gone = gone;
    cpl_request_abandon(&p->request);
}

void cpl_persistent_end(void)
{
    while (cpl_context.requests.persistent)
        cpl_persistent_forget(cpl_context.requests.persistent);
}
