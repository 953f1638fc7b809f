/* The intercepted point-to-point calls (doc/point-to-point.md). A call is MPI's unless its
 * communicator is managed. While the communicator is learning, the shim notes the call; while
 * anything is managed, calls that wait poll. Switched off, a call costs one branch. */
#include "shim/calls/wrappers_pt2pt.h"
#include "shim/calls/pt2pt_complete.h"
#include "shim/calls/pt2pt_persistent.h"
#include "shim/calls/pt2pt_watch.h"
#include "shim/carry/buffered.h"
#include "shim/carry/messages.h"
#include "shim/carry/requests.h"
#include "shim/wait/progress.h"

#include <mpi.h>

void cpl_wrap_note_send(MPI_Comm comm, MPI_Count count, MPI_Datatype type, int dest, int tag)
{
    struct cpl_comm_state *state = cpl_watch_learning(comm);
    if (state)
        cpl_pt2pt_learn_send(state, dest, tag, cpl_type_size(type) * (int64_t)count);
}

void cpl_wrap_note_receive(MPI_Comm comm, int source, int tag)
{
    struct cpl_comm_state *state = cpl_watch_learning(comm);
    if (state)
        cpl_pt2pt_learn_receive(state, source, tag, true);
}

int cpl_wrap_posted(MPI_Comm comm, int source, int tag, int result, MPI_Request *request)
{
    struct cpl_comm_state *state = result == MPI_SUCCESS ? cpl_watch_learning(comm) : NULL;
    if (state && !cpl_watch_receive(state, source, tag, request))
        cpl_pt2pt_learn_receive(state, source, tag, false);
    return result;
}

void cpl_wrap_note_received(MPI_Comm comm, int source, int tag, int result,
                            const MPI_Status *status)
{
    if (result == MPI_SUCCESS && source != MPI_PROC_NULL)
        cpl_wrap_note_receive(comm, status->MPI_SOURCE, status->MPI_TAG);
    else
        cpl_wrap_note_receive(comm, source, tag);
}

static int send(struct cpl_comm_state *state, const struct cpl_span *span, int dest, int tag,
                enum cpl_send_mode mode)
{
    struct cpl_sending sending;
    int result = cpl_pt2pt_send(state, span, dest, tag, mode, &sending);
    return result == MPI_SUCCESS ? cpl_pt2pt_finish_send(&sending) : result;
}

static int isend(struct cpl_comm_state *state, const struct cpl_span *span, int dest, int tag,
                 enum cpl_send_mode mode, MPI_Request *request)
{
    struct cpl_sending sending;
    int result = cpl_pt2pt_send(state, span, dest, tag, mode, &sending);
    return result == MPI_SUCCESS ? cpl_pt2pt_request_send(state, &sending, request) : result;
}

/* A nonblocking send by MPI. While something is managed, MPI_Buffer_detach must not wait in MPI, so
 * the shim itself keeps buffered messages. */
#define START_FORM(name, mode, count_t)                                                            \
    static int start_##name(const void *buf, count_t count, MPI_Datatype type, int dest, int tag,  \
                            MPI_Comm comm, MPI_Request *request)                                   \
    {                                                                                              \
        int result;                                                                                \
        if ((mode) == CPL_SEND_BUFFERED && cpl_progress_needed() &&                                \
            cpl_buffered_isend(buf, count, type, dest, tag, comm, request, &result))               \
            return result;                                                                         \
        return PMPI_##name(buf, count, type, dest, tag, comm, request);                            \
    }
#define ISEND(name, mode)                                                                          \
    START_FORM(name, mode, int)                                                                    \
    START_FORM(name##_c, mode, MPI_Count)
#include "shim/tables/pt2pt.def"

#define SEND_FORM(name, nonblocking, mode, count_t)                                                \
    PASSING(name,                                                                                  \
            (const void *buf, count_t count, MPI_Datatype type, int dest, int tag, MPI_Comm comm), \
            (buf, count, type, dest, tag, comm), is_mpis(comm, dest, tag, 1))                      \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        struct cpl_span span;                                                                      \
        MPI_Request request;                                                                       \
        struct cpl_comm_state *state =                                                             \
            cpl_pt2pt_managed(comm, buf, count, type, dest, tag, false, &span);                    \
        if (state)                                                                                 \
            return send(state, &span, dest, tag, mode);                                            \
        cpl_wrap_note_send(comm, count, type, dest, tag);                                          \
        if (!cpl_progress_needed()) {                                                              \
            CPL_OUTSIDE;                                                                           \
            return PMPI_##name(buf, count, type, dest, tag, comm);                                 \
        }                                                                                          \
        int result = start_##nonblocking(buf, count, type, dest, tag, comm, &request);             \
        return result == MPI_SUCCESS ? cpl_complete_one(&request, NULL, MPI_STATUS_IGNORE)         \
                                     : result;                                                     \
    }
#define SEND(name, nonblocking, mode)                                                              \
    SEND_FORM(name, nonblocking, mode, int)                                                        \
    SEND_FORM(name##_c, nonblocking##_c, mode, MPI_Count)
#include "shim/tables/pt2pt.def"

#define ISEND_FORM(name, mode, count_t)                                                            \
    PASSING(name,                                                                                  \
            (const void *buf, count_t count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,  \
             MPI_Request *request),                                                                \
            (buf, count, type, dest, tag, comm, request), is_mpis(comm, dest, tag, 1))             \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        struct cpl_span span;                                                                      \
        struct cpl_comm_state *state =                                                             \
            cpl_pt2pt_managed(comm, buf, count, type, dest, tag, false, &span);                    \
        if (state && request)                                                                      \
            return isend(state, &span, dest, tag, mode, request);                                  \
        if (cpl_pt2pt_null(comm, buf, count, type, dest, tag, false, request))                     \
            return MPI_SUCCESS;                                                                    \
        cpl_wrap_note_send(comm, count, type, dest, tag);                                          \
        return start_##name(buf, count, type, dest, tag, comm, request);                           \
    }
#define ISEND(name, mode)                                                                          \
    ISEND_FORM(name, mode, int)                                                                    \
    ISEND_FORM(name##_c, mode, MPI_Count)
#include "shim/tables/pt2pt.def"

static int recv(struct cpl_comm_state *state, const struct cpl_span *span, int source, int tag,
                MPI_Status *status)
{
    struct cpl_receive receive;
    cpl_pt2pt_post(state, &receive, span, source, tag);
    return cpl_pt2pt_finish_receive(state, &receive, status);
}

#define RECV_FORM(name, nonblocking, count_t)                                                      \
    PASSING(name,                                                                                  \
            (void *buf, count_t count, MPI_Datatype type, int source, int tag, MPI_Comm comm,      \
             MPI_Status *status),                                                                  \
            (buf, count, type, source, tag, comm, status),                                         \
            cpl_context.busy.n_open_batches == 0 && is_mpis(comm, source, tag, -1))                \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        struct cpl_span span;                                                                      \
        MPI_Status own;                                                                            \
        MPI_Request request;                                                                       \
        leave();                                                                                   \
        if (passes(comm)) {                                                                        \
            CPL_OUTSIDE;                                                                           \
            return PMPI_##name(buf, count, type, source, tag, comm, status);                       \
        }                                                                                          \
        struct cpl_comm_state *state =                                                             \
            cpl_pt2pt_managed(comm, buf, count, type, source, tag, true, &span);                   \
        if (state && has_status(status))                                                           \
            return recv(state, &span, source, tag, status);                                        \
        MPI_Status *to = status == MPI_STATUS_IGNORE ? &own : status;                              \
        int result;                                                                                \
        if (!cpl_progress_needed() || source == MPI_PROC_NULL || !has_status(status)) {            \
            CPL_OUTSIDE;                                                                           \
            result = PMPI_##name(buf, count, type, source, tag, comm, to);                         \
        } else {                                                                                   \
            result = PMPI_##nonblocking(buf, count, type, source, tag, comm, &request);            \
            if (result == MPI_SUCCESS)                                                             \
                result = cpl_progress_wait(&request, to);                                          \
        }                                                                                          \
        cpl_wrap_note_received(comm, source, tag, result, to);                                     \
        return result;                                                                             \
    }
RECV_FORM(Recv, Irecv, int)
RECV_FORM(Recv_c, Irecv_c, MPI_Count)

#define IRECV_FORM(name, count_t)                                                                  \
    PASSING(name,                                                                                  \
            (void *buf, count_t count, MPI_Datatype type, int source, int tag, MPI_Comm comm,      \
             MPI_Request *request),                                                                \
            (buf, count, type, source, tag, comm, request), is_mpis(comm, source, tag, -1))        \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        struct cpl_span span;                                                                      \
        struct cpl_comm_state *state =                                                             \
            cpl_pt2pt_managed(comm, buf, count, type, source, tag, true, &span);                   \
        if (state && request)                                                                      \
            return cpl_pt2pt_irecv(state, &span, source, tag, request);                            \
        if (cpl_pt2pt_null(comm, buf, count, type, source, tag, true, request))                    \
            return MPI_SUCCESS;                                                                    \
        int result = PMPI_##name(buf, count, type, source, tag, comm, request);                    \
        return cpl_wrap_posted(comm, source, tag, result, request);                                \
    }
IRECV_FORM(Irecv, int)
IRECV_FORM(Irecv_c, MPI_Count)

/* Whether a message handle is the shim's and MPI would accept the arguments; describes the
 * buffer. */
static bool is_taken(const MPI_Message *message, void *buf, MPI_Count count, MPI_Datatype type,
                     struct cpl_span *span)
{
    return message && cpl_pt2pt_has_message(*message) &&
           cpl_describe(buf, count, type, 0, true, span);
}

#define MRECV_FORM(name, nonblocking, count_t)                                                     \
    EXPORT int MPI_##name(void *buf, count_t count, MPI_Datatype type, MPI_Message *message,       \
                          MPI_Status *status)                                                      \
    {                                                                                              \
        struct cpl_span span;                                                                      \
        MPI_Request request;                                                                       \
        if (!cpl_progress_needed() || !message || *message == MPI_MESSAGE_NO_PROC ||               \
            !has_status(status))                                                                   \
            return PMPI_##name(buf, count, type, message, status);                                 \
        CPL_INSIDE;                                                                                \
        leave();                                                                                   \
        if (is_taken(message, buf, count, type, &span))                                            \
            return cpl_pt2pt_mrecv(&span, message, status);                                        \
        int result = PMPI_##nonblocking(buf, count, type, message, &request);                      \
        return result == MPI_SUCCESS ? cpl_progress_wait(&request, status) : result;               \
    }                                                                                              \
    EXPORT int MPI_##nonblocking(void *buf, count_t count, MPI_Datatype type,                      \
                                 MPI_Message *message, MPI_Request *request)                       \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        struct cpl_span span;                                                                      \
        if (cpl_context.active && request && is_taken(message, buf, count, type, &span))           \
            return cpl_pt2pt_imrecv(&span, message, request);                                      \
        return PMPI_##nonblocking(buf, count, type, message, request);                             \
    }
MRECV_FORM(Mrecv, Imrecv, int)
MRECV_FORM(Mrecv_c, Imrecv_c, MPI_Count)

static void add_persistent(int result, const MPI_Request *request, void *buf, MPI_Count count,
                           MPI_Datatype type, int peer, int tag, MPI_Comm comm, bool receives,
                           enum cpl_send_mode mode)
{
    if (result == MPI_SUCCESS && cpl_context.active)
        cpl_persistent_message(*request, &(struct cpl_persistent_call){.receives = receives,
                                                                       .mode = mode,
                                                                       .buffer = buf,
                                                                       .count = count,
                                                                       .type = type,
                                                                       .peer = peer,
                                                                       .tag = tag,
                                                                       .comm = comm});
}

#define SEND_INIT_FORM(name, mode, count_t)                                                        \
    EXPORT int MPI_##name(const void *buf, count_t count, MPI_Datatype type, int dest, int tag,    \
                          MPI_Comm comm, MPI_Request *request)                                     \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        int result = PMPI_##name(buf, count, type, dest, tag, comm, request);                      \
        add_persistent(result, request, (void *)(uintptr_t)buf, count, type, dest, tag, comm,      \
                       false, mode);                                                               \
        return result;                                                                             \
    }
#define SEND_INIT(name, mode)                                                                      \
    SEND_INIT_FORM(name, mode, int)                                                                \
    SEND_INIT_FORM(name##_c, mode, MPI_Count)
#include "shim/tables/pt2pt.def"

#define RECV_INIT_FORM(name, count_t)                                                              \
    EXPORT int MPI_##name(void *buf, count_t count, MPI_Datatype type, int source, int tag,        \
                          MPI_Comm comm, MPI_Request *request)                                     \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        int result = PMPI_##name(buf, count, type, source, tag, comm, request);                    \
        add_persistent(result, request, buf, count, type, source, tag, comm, true,                 \
                       CPL_SEND_STANDARD);                                                         \
        return result;                                                                             \
    }
RECV_INIT_FORM(Recv_init, int)
RECV_INIT_FORM(Recv_init_c, MPI_Count)

EXPORT int MPI_Start(MPI_Request *request)
{
    CPL_INSIDE;
    return cpl_context.active && request ? cpl_persistent_start(request) : PMPI_Start(request);
}

EXPORT int MPI_Startall(int count, MPI_Request requests[])
{
    CPL_INSIDE;
    int result = MPI_SUCCESS;
    if (!cpl_context.active || count < 0 || !requests ||
        cpl_persistent_series_passes(count, requests))
        return PMPI_Startall(count, requests);
    for (int k = 0; k < count && result == MPI_SUCCESS; k++)
        result = cpl_persistent_start(&requests[k]);
    return result;
}

EXPORT int MPI_Request_free(MPI_Request *request)
{
    CPL_INSIDE;
    struct cpl_request *managed = request ? cpl_request_active(*request) : NULL;
    if (managed && !managed->persistent) {
        cpl_request_free(managed, request);
        return MPI_SUCCESS;
    }
    if (cpl_context.active && request)
        cpl_persistent_free(*request);
    return PMPI_Request_free(request);
}

/* Sends cannot be cancelled: cancelling a managed send has no effect. */
EXPORT int MPI_Cancel(MPI_Request *request)
{
    CPL_INSIDE;
    struct cpl_request *managed = request ? cpl_request_active(*request) : NULL;
    if (!managed)
        return PMPI_Cancel(request);
    if (managed->by_mpi)
        return managed->receive.done ? MPI_SUCCESS : PMPI_Cancel(&managed->receive.inner);
    if (managed->receives && !managed->collective && !managed->sends)
        cpl_match_cancel(&managed->receive);
    return MPI_SUCCESS;
}
