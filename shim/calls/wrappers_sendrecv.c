/* MPI_Sendrecv and its relatives (doc/point-to-point.md). Both halves of a call are started before
 * either is waited for. Arguments that MPI would refuse are detected before anything is started;
 * MPI then gets the call and refuses it. */
#include "shim/calls/wrappers.h"
#include "shim/state/memory.h"
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

/* Starts both halves on a managed communicator: one request, complete when both are. */
static int start_both(struct cpl_comm_state *state, const struct half *sent,
                      const struct half *received, enum cpl_send_mode mode, MPI_Request *request)
{
    struct cpl_request *made = cpl_request_make(state->comm, true);
    made->sends = true;
    made->sending = CPL_SENT;
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

/* On a managed communicator, or by MPI. */
static int sendrecv(const struct half *sent, const struct half *received, MPI_Comm comm,
                    MPI_Status *status)
{
    struct cpl_comm_state *state = cpl_pt2pt_managed_state(comm);
    const struct cpl_span *from = &sent->span, *to = &received->span;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status own;
    int result;
    status = status == MPI_STATUS_IGNORE ? &own : status;
    if (state) {
        result = start_both(state, sent, received, CPL_SEND_STANDARD, &requests[0]);
    } else {
        cpl_watch_send(comm, from->count, from->type.handle, sent->peer, sent->tag);
        result = PMPI_Irecv_c(to->address, to->count, to->type.handle, received->peer,
                              received->tag, comm, &requests[0]);
        if (result == MPI_SUCCESS)
            result = PMPI_Isend_c(from->address, from->count, from->type.handle, sent->peer,
                                  sent->tag, comm, &requests[1]);
    }
    if (result != MPI_SUCCESS)
        return result;
    result = cpl_complete_one(&requests[0], NULL, status, CPL_WAITS);
    int other = cpl_complete_one(&requests[1], NULL, MPI_STATUS_IGNORE, CPL_WAITS);
    if (!state)
        cpl_watch_received(comm, received->peer, received->tag, result, status);
    if (result == MPI_SUCCESS && received->peer == MPI_PROC_NULL) /* what MPI says of that */
        result = PMPI_Recv_c(to->address, to->count, to->type.handle, MPI_PROC_NULL, received->tag,
                             comm, status);
    return result == MPI_SUCCESS ? other : result;
}

/* Sends a packed copy, because the buffer is received into. request: NULL if the call waits. */
static int replace(const struct half *sent, const struct half *received, MPI_Comm comm,
                   MPI_Status *status, MPI_Request *request)
{
    const int64_t bytes = cpl_span_bytes(&received->span);
    unsigned char *copy = cpl_memory_need((size_t)bytes + 1, "a message");
    struct half copied = *sent;
    copied.span = (struct cpl_span){(char *)copy, bytes, {MPI_PACKED, 1, 1, true, false}};
    int result = cpl_raise(comm, cpl_span_pack(&received->span, copy));
    if (result == MPI_SUCCESS && request) {
        result =
            start_both(cpl_pt2pt_managed_state(comm), &copied, received, CPL_SEND_COPIED, request);
    } else if (result == MPI_SUCCESS) {
        result = sendrecv(&copied, received, comm, status);
        if (status != MPI_STATUS_IGNORE)
            status->MPI_ERROR = result; /* as MPICH does in this call */
    }
    free(copy);
    return result;
}

/* The data of a half: buffer, count and type; without the buffer. */
#define DATA(...)                  __VA_ARGS__
#define SHAPE(buffer, count, type) count, type

/* A call that waits: the data of its halves, and what carries it where the library has to. */
#define BLOCKING(name, parameters, arguments, sent_data, received_data, carried)                   \
    PASSING(name, parameters, arguments, !cpl_context.active)                                      \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        MPI_Status own;                                                                            \
        struct half sent, received;                                                                \
        if (cpl_progress_needed() && has_status(status) &&                                         \
            describe(&sent, comm, DATA sent_data, dest, sendtag, false) &&                         \
            describe(&received, comm, DATA received_data, source, recvtag, true)) {                \
            cpl_progress_leave();                                                                  \
            return carried;                                                                        \
        }                                                                                          \
        status = status == MPI_STATUS_IGNORE ? &own : status;                                      \
        cpl_watch_send(comm, SHAPE sent_data, dest, sendtag);                                      \
        cpl_progress_leave();                                                                      \
        int result = CPL_AWAY(PMPI_##name arguments);                                              \
        cpl_watch_received(comm, source, recvtag, result, status);                                 \
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
        cpl_watch_send(comm, SHAPE sent_data, dest, sendtag);                                      \
        int result = PMPI_##name arguments;                                                        \
        return cpl_watch_posted(comm, source, recvtag, result, request);                           \
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
