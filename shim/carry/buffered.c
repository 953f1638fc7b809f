/* Sends from copies in the shim's memory (buffered.h). */
#include "shim/carry/buffered.h"
#include "shim/state/hooks.h"
#include "shim/wait/progress.h"

#include "shim/carry/requests.h"
#include "shim/state/context.h"
#include "shim/state/describe.h"

#include <stdlib.h>
#include <utlist.h>

struct cpl_copied {
    struct cpl_copied *prev, *next;
    MPI_Comm comm;
    MPI_Request request;
    int64_t charged; /* bytes that count against the attached buffer */
    unsigned char payload[];
};

void cpl_buffered_attach(int64_t size)
{
    cpl_context.requests.buffered.attached = true;
    cpl_context.requests.buffered.size = size;
    cpl_context.requests.buffered.used = 0;
}

void cpl_buffered_detach(void)
{
    while (cpl_context.requests.buffered.first)
        cpl_progress_poll();
    cpl_context.requests.buffered.attached = false;
}

bool cpl_buffered_has_room(int64_t bytes)
{
    const struct cpl_buffered *b = &cpl_context.requests.buffered;
    return b->attached && bytes + MPI_BSEND_OVERHEAD <= b->size - b->used;
}

int cpl_buffered_send(const struct cpl_span *span, int dest, int tag, MPI_Comm comm, bool buffered)
{
    int64_t bytes = cpl_span_bytes(span);
    struct cpl_copied *copied = malloc(sizeof *copied + (size_t)bytes);
    if (!copied)
        return MPI_ERR_NO_MEM;
    copied->comm = comm;
    copied->charged = buffered ? bytes + MPI_BSEND_OVERHEAD : 0;
    int result = cpl_span_pack(span, copied->payload);
    if (result == MPI_SUCCESS)
        result =
            PMPI_Isend_c(copied->payload, bytes, MPI_PACKED, dest, tag, comm, &copied->request);
    if (result != MPI_SUCCESS) {
        free(copied);
        return result;
    }
    cpl_context.requests.buffered.used += copied->charged;
    DL_APPEND(cpl_context.requests.buffered.first, copied);
    return MPI_SUCCESS;
}

bool cpl_buffered_any(MPI_Comm comm)
{
    const struct cpl_copied *copied;
    DL_SEARCH_SCALAR(cpl_context.requests.buffered.first, copied, comm, comm);
    return copied;
}

bool cpl_buffered_isend(const void *buffer, MPI_Count count, MPI_Datatype type, int dest, int tag,
                        MPI_Comm comm, MPI_Request *request, int *result)
{
    struct cpl_span span;
    if (!request || dest == MPI_PROC_NULL || !cpl_is_peer(comm, dest, false) ||
        !cpl_describe(buffer, count, type, tag, false, &span) ||
        !cpl_buffered_has_room(cpl_span_bytes(&span)))
        return false;
    *result = cpl_buffered_send(&span, dest, tag, comm, true);
    if (*result == MPI_SUCCESS)
        *request = cpl_request_complete_send();
    if (*result == MPI_SUCCESS && *request == MPI_REQUEST_NULL)
        *result = MPI_ERR_NO_MEM;
    if (*result != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(comm, *result);
    return true;
}

static bool poll(void)
{
    struct cpl_copied *copied, *next;
    bool any = false;
    DL_FOREACH_SAFE(cpl_context.requests.buffered.first, copied, next)
    {
        int done = 0;
        if (PMPI_Test(&copied->request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
            continue;
        cpl_context.requests.buffered.used -= copied->charged;
        DL_DELETE(cpl_context.requests.buffered.first, copied);
        free(copied);
        any = true;
    }
    return any;
}

const struct cpl_hooks cpl_buffered_hooks = {.name = "buffered sends", .poll = poll};
