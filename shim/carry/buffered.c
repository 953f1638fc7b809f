/* Sends from copies in the shim's memory (requests.h). */
#include "shim/carry/requests.h"

#include "shim/state/describe.h"
#include "shim/state/hooks.h"
#include "shim/state/memory.h"
#include "shim/wait/progress.h"

#include <stdlib.h>
#include <utlist.h>

struct cpl_copied {
    struct cpl_copied *prev, *next;
    MPI_Comm comm, of; /* where it is sent; where the program has sent it */
    MPI_Request request;
    int64_t number;  /* of all copies */
    int64_t charged; /* bytes that count against the attached buffer */
    unsigned char payload[];
};

/* A flush that the program has started. */
struct cpl_flush {
    struct cpl_flush *prev, *next;
    MPI_Comm of;
    int64_t number; /* the last copy that it waits for */
    MPI_Request inner;
    struct cpl_request *request;
};

void cpl_buffered_attach(int64_t size)
{
    cpl_context.requests.buffered.size = size;
    cpl_context.requests.buffered.used = 0;
}

void cpl_buffered_attach_to_comm(bool yes)
{
    cpl_context.requests.buffered.n_of_comms += yes ? 1 : -1;
}

/* Whether a buffered message on a communicator is under way that is not younger than a number. */
static bool is_pending(MPI_Comm of, int64_t number)
{
    const struct cpl_copied *copied;
    DL_FOREACH(cpl_context.requests.buffered.first, copied)
    {
        if (copied->of != MPI_COMM_NULL && (of == MPI_COMM_NULL || copied->of == of))
            return copied->number <= number;
    }
    return false;
}

void cpl_buffered_flush(MPI_Comm of)
{
    while (is_pending(of, INT64_MAX))
        cpl_progress_poll();
}

MPI_Request cpl_buffered_iflush(MPI_Comm of, MPI_Request inner)
{
    struct cpl_flush *flush = cpl_memory_need(sizeof *flush, "a request");
    *flush = (struct cpl_flush){.of = of,
                                .number = cpl_context.requests.buffered.n_sent,
                                .inner = inner,
                                .request = cpl_request_make(MPI_COMM_WORLD, true)};
    cpl_request_open_collective(flush->request);
    DL_APPEND(cpl_context.requests.buffered.flushes, flush);
    return flush->request->handle;
}

bool cpl_buffered_has_room(int64_t bytes)
{
    const struct cpl_buffered *b = &cpl_context.requests.buffered;
    return b->n_of_comms > 0 || bytes + MPI_BSEND_OVERHEAD <= b->size - b->used;
}

int cpl_buffered_send(const struct cpl_span *span, int dest, int tag, MPI_Comm comm, MPI_Comm of)
{
    int64_t bytes = cpl_span_bytes(span);
    struct cpl_copied *copied = malloc(sizeof *copied + (size_t)bytes);
    if (!copied)
        return MPI_ERR_NO_MEM;
    copied->comm = comm;
    copied->of = of;
    copied->charged = of == MPI_COMM_NULL ? 0 : bytes + MPI_BSEND_OVERHEAD;
    int result = cpl_span_pack(span, copied->payload);
    if (result == MPI_SUCCESS)
        result =
            PMPI_Isend_c(copied->payload, bytes, MPI_PACKED, dest, tag, comm, &copied->request);
    if (result != MPI_SUCCESS) {
        free(copied);
        return result;
    }
    copied->number = ++cpl_context.requests.buffered.n_sent;
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
    *result = cpl_buffered_send(&span, dest, tag, comm, comm);
    if (*result == MPI_SUCCESS)
        *request = cpl_request_complete_send();
    if (*result != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(comm, *result);
    return true;
}

static bool poll_flushes(void)
{
    struct cpl_flush *flush, *next;
    bool any = false;
    DL_FOREACH_SAFE(cpl_context.requests.buffered.flushes, flush, next)
    {
        int done = 0, result = PMPI_Test(&flush->inner, &done, MPI_STATUS_IGNORE);
        if ((result == MPI_SUCCESS && !done) || is_pending(flush->of, flush->number))
            continue;
        cpl_request_close_collective(flush->request, result);
        DL_DELETE(cpl_context.requests.buffered.flushes, flush);
        free(flush);
        cpl_progress_update();
        any = true;
    }
    return any;
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
    return poll_flushes() || any;
}

const struct cpl_hooks cpl_buffered_hooks = {.poll = poll};
