/* MPI_Sendrecv and its relatives (doc/point-to-point.md). Both halves of a call are started before
 * either is waited for. Arguments that MPI would refuse are detected before anything is started;
 * MPI then gets the call and refuses it. */
#include "shim/calls/pt2pt_complete.h"
#include "shim/calls/wrappers_pt2pt.h"
#include "shim/carry/requests.h"
#include "shim/wait/progress.h"

#include <mpi.h>
#include <stdlib.h>

/* One half of a call: which buffer, to or from whom. */
struct half {
    struct cpl_span span;
    int peer, tag;
    bool receives;
};

/* Describes a half; false: MPI would refuse the call. */
static bool describe(struct half *half, MPI_Comm comm, const void *buffer, MPI_Count count,
                     MPI_Datatype type, int peer, int tag, bool receives)
{
    *half = (struct half){.peer = peer, .tag = tag, .receives = receives};
    return cpl_is_peer(comm, peer, receives) &&
           cpl_describe(buffer, count, type, tag, receives, &half->span);
}

static int start_by_mpi(const struct half *half, MPI_Comm comm, MPI_Request *request)
{
    const struct cpl_span *span = &half->span;
    if (half->receives) {
        int result = PMPI_Irecv_c(span->address, span->count, span->type.handle, half->peer,
                                  half->tag, comm, request);
        return cpl_wrap_posted(comm, half->peer, half->tag, result, request);
    }
    cpl_wrap_note_send(comm, span->count, span->type.handle, half->peer, half->tag);
    return PMPI_Isend_c(span->address, span->count, span->type.handle, half->peer, half->tag, comm,
                        request);
}

/* Fills a status as MPI does for a receive from MPI_PROC_NULL; a receive that is waited for leaves
 * it unchanged.
 */
static int receive_nothing(const struct half *half, MPI_Comm comm, MPI_Status *status)
{
    const struct cpl_span *span = &half->span;
    return PMPI_Recv_c(span->address, span->count, span->type.handle, MPI_PROC_NULL, half->tag,
                       comm, status);
}

static int both_by_mpi(const struct half *sent, const struct half *received, MPI_Comm comm,
                       MPI_Status *status)
{
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int result = start_by_mpi(received, comm, &requests[0]);
    if (result == MPI_SUCCESS)
        result = start_by_mpi(sent, comm, &requests[1]);
    if (result == MPI_SUCCESS)
        result = cpl_complete_one(&requests[0], NULL, status);
    int other = cpl_complete_one(&requests[1], NULL, MPI_STATUS_IGNORE);
    if (result == MPI_SUCCESS && received->peer == MPI_PROC_NULL)
        result = receive_nothing(received, comm, status);
    return result == MPI_SUCCESS ? other : result;
}

/* Both halves on a managed communicator. */
static int both(struct cpl_comm_state *state, const struct half *sent, const struct half *received,
                enum cpl_send_mode mode, MPI_Status *status)
{
    struct cpl_receive receive;
    struct cpl_sending sending = {MPI_REQUEST_NULL, NULL};
    bool receives = received->peer != MPI_PROC_NULL;
    int result = MPI_SUCCESS;
    if (receives)
        cpl_pt2pt_post(state, &receive, &received->span, received->peer, received->tag);
    if (sent->peer != MPI_PROC_NULL)
        result = cpl_pt2pt_send(state, &sent->span, sent->peer, sent->tag, mode, &sending);
    if (result != MPI_SUCCESS && receives)
        cpl_match_cancel(&receive);
    if (result != MPI_SUCCESS && (!receives || receive.cancelled))
        return result;
    int received_result = receives ? cpl_pt2pt_finish_receive(state, &receive, status)
                                   : receive_nothing(received, state->comm, status);
    int other = cpl_pt2pt_finish_send(&sending);
    result = result == MPI_SUCCESS ? received_result : result;
    return result == MPI_SUCCESS ? other : result;
}

static int sendrecv(const struct half *sent, const struct half *received, MPI_Comm comm,
                    enum cpl_send_mode mode, MPI_Status *status)
{
    struct cpl_comm_state *state = cpl_pt2pt_managed_state(comm);
    return state ? both(state, sent, received, mode, status)
                 : both_by_mpi(sent, received, comm, status);
}

/* A packed copy of the sent data, because the buffer is received into; the caller frees it. NULL:
 * no memory, or MPI's error in *result. */
static unsigned char *copy_of(const struct half *received, struct half *sent, MPI_Comm comm,
                              int *result)
{
    int64_t bytes = cpl_span_bytes(&received->span);
    unsigned char *copy = malloc((size_t)bytes + 1);
    *result = copy ? cpl_span_pack(&received->span, copy) : MPI_ERR_NO_MEM;
    if (*result != MPI_SUCCESS) {
        PMPI_Comm_call_errhandler(comm, *result);
        free(copy);
        return NULL;
    }
    sent->span = (struct cpl_span){(char *)copy, bytes, {MPI_PACKED, 1, 1, true, false}};
    return copy;
}

static int replace(const struct half *sent, const struct half *received, MPI_Comm comm,
                   MPI_Status *status)
{
    struct half copied = *sent;
    int result;
    unsigned char *copy = copy_of(received, &copied, comm, &result);
    if (copy)
        result = sendrecv(&copied, received, comm, CPL_SEND_STANDARD, status);
    if (copy && status != MPI_STATUS_IGNORE)
        status->MPI_ERROR = result; /* as MPICH does in this call */
    free(copy);
    return result;
}

/* Starts both halves on a managed communicator: one request, complete when both are. */
static int start_both(struct cpl_comm_state *state, const struct half *sent,
                      const struct half *received, enum cpl_send_mode mode, MPI_Request *request)
{
    struct cpl_request *made = cpl_request_make(state->comm, true);
    if (!made) {
        PMPI_Comm_call_errhandler(state->comm, MPI_ERR_NO_MEM);
        return MPI_ERR_NO_MEM;
    }
    made->sends = true;
    made->sending = (struct cpl_sending){MPI_REQUEST_NULL, NULL};
    if (received->peer == MPI_PROC_NULL)
        made->receive = (struct cpl_receive){.from = MPI_PROC_NULL,
                                             .from_tag = MPI_ANY_TAG,
                                             .inner = MPI_REQUEST_NULL,
                                             .done = true};
    else
        cpl_pt2pt_post(state, &made->receive, &received->span, received->peer, received->tag);
    *request = made->handle;
    if (sent->peer == MPI_PROC_NULL)
        return MPI_SUCCESS;
    int result = cpl_pt2pt_send(state, &sent->span, sent->peer, sent->tag, mode, &made->sending);
    if (result == MPI_SUCCESS)
        return MPI_SUCCESS;
    if (!made->receive.done)
        cpl_match_cancel(&made->receive);
    cpl_request_free(made, request);
    return result;
}

static int start_replace(struct cpl_comm_state *state, const struct half *sent,
                         const struct half *received, MPI_Request *request)
{
    struct half copied = *sent;
    int result;
    unsigned char *copy = copy_of(received, &copied, state->comm, &result);
    if (copy)
        result = start_both(state, &copied, received, CPL_SEND_COPIED, request);
    free(copy);
    return result;
}

/* The data of a half: buffer, count and type; without the buffer. */
#define DATA(...)                  __VA_ARGS__
#define SHAPE(buffer, count, type) count, type

/* A call that waits: the data of its halves, and what carries it where the library has to. */
#define BLOCKING(name, parameters, arguments, sent_data, received_data, carried)                   \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        MPI_Status own;                                                                            \
        struct half sent, received;                                                                \
        if (!cpl_context.active)                                                                   \
            return PMPI_##name arguments;                                                          \
        CPL_INSIDE;                                                                                \
        if (cpl_progress_needed() && has_status(status) &&                                         \
            describe(&sent, comm, DATA sent_data, dest, sendtag, false) &&                         \
            describe(&received, comm, DATA received_data, source, recvtag, true)) {                \
            leave();                                                                               \
            return carried;                                                                        \
        }                                                                                          \
        status = status == MPI_STATUS_IGNORE ? &own : status;                                      \
        cpl_wrap_note_send(comm, SHAPE sent_data, dest, sendtag);                                  \
        leave();                                                                                   \
        int result;                                                                                \
        {                                                                                          \
            CPL_OUTSIDE;                                                                           \
            result = PMPI_##name arguments;                                                        \
        }                                                                                          \
        cpl_wrap_note_received(comm, source, recvtag, result, status);                             \
        return result;                                                                             \
    }

/* The same of a call that does not wait. */
#define STARTING(name, parameters, arguments, sent_data, received_data, carried)                   \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        struct half sent, received;                                                                \
        struct cpl_comm_state *state = cpl_pt2pt_managed_state(comm);                              \
        if (state && request && describe(&sent, comm, DATA sent_data, dest, sendtag, false) &&     \
            describe(&received, comm, DATA received_data, source, recvtag, true))                  \
            return carried;                                                                        \
        cpl_wrap_note_send(comm, SHAPE sent_data, dest, sendtag);                                  \
        int result = PMPI_##name arguments;                                                        \
        return cpl_wrap_posted(comm, source, recvtag, result, request);                            \
    }

#define COUNT            int
#define SENDRECV_C(...)  BLOCKING(__VA_ARGS__)
#define ISENDRECV_C(...) STARTING(__VA_ARGS__)
#include "shim/tables/pt2pt.def"
#undef COUNT
#define COUNT                  MPI_Count
#define SENDRECV_C(name, ...)  BLOCKING(name##_c, __VA_ARGS__)
#define ISENDRECV_C(name, ...) STARTING(name##_c, __VA_ARGS__)
#include "shim/tables/pt2pt.def"
