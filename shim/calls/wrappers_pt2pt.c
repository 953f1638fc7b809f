/* The intercepted point-to-point calls (doc/point-to-point.md). A call is MPI's unless its
 * communicator is managed. While the communicator is learning, the shim notes the call; while
 * anything is managed, calls that wait poll. */
#include "shim/calls/wrappers.h"
#include "shim/carry/line.h"
#include "shim/carry/requests.h"
#include "shim/wait/progress.h"

#include <mpi.h>

/* Starts a send by MPI, nonblocking. While something is managed, MPI_Buffer_detach must not wait in
 * MPI, so the shim itself keeps buffered messages. */
#define STARTED(name, mode)                                                                        \
    ((mode) == CPL_SEND_BUFFERED && cpl_progress_needed() &&                                       \
             cpl_buffered_isend(buf, count, type, dest, tag, comm, request, &result)               \
         ? result                                                                                  \
         : PMPI_##name(buf, count, type, dest, tag, comm, request))

#define SEND_FORM(name, nonblocking, mode, count_t)                                                \
    PASSING(name,                                                                                  \
            (const void *buf, count_t count, MPI_Datatype type, int dest, int tag, MPI_Comm comm), \
            (buf, count, type, dest, tag, comm), is_mpis(comm, dest, tag, 1))                      \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        struct cpl_span span;                                                                      \
        MPI_Request own, *request = &own;                                                          \
        int result;                                                                                \
        struct cpl_comm_state *state =                                                             \
            cpl_pt2pt_managed(comm, buf, count, type, dest, tag, false, &span);                    \
        if (state)                                                                                 \
            return cpl_pt2pt_send_and_wait(state, &span, dest, tag, mode);                         \
        cpl_watch_send(comm, count, type, dest, tag);                                              \
        if (!cpl_progress_needed())                                                                \
            return CPL_AWAY(PMPI_##name(buf, count, type, dest, tag, comm));                       \
        result = STARTED(nonblocking, mode);                                                       \
        return result == MPI_SUCCESS                                                               \
                   ? cpl_complete_one(request, NULL, MPI_STATUS_IGNORE, CPL_WAITS)                 \
                   : result;                                                                       \
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
        int result;                                                                                \
        struct cpl_comm_state *state =                                                             \
            cpl_pt2pt_managed(comm, buf, count, type, dest, tag, false, &span);                    \
        if (state && request)                                                                      \
            return cpl_pt2pt_isend(state, &span, dest, tag, mode, request);                        \
        if (cpl_pt2pt_null(comm, buf, count, type, dest, tag, false, request))                     \
            return MPI_SUCCESS;                                                                    \
        cpl_watch_send(comm, count, type, dest, tag);                                              \
        return STARTED(name, mode);                                                                \
    }
#define ISEND(name, mode)                                                                          \
    ISEND_FORM(name, mode, int)                                                                    \
    ISEND_FORM(name##_c, mode, MPI_Count)
#include "shim/tables/pt2pt.def"

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
        cpl_progress_leave();                                                                      \
        struct cpl_comm_state *state =                                                             \
            cpl_pt2pt_managed(comm, buf, count, type, source, tag, true, &span);                   \
        if (state && has_status(status))                                                           \
            return cpl_pt2pt_recv(state, &span, source, tag, status);                              \
        MPI_Status *to = status == MPI_STATUS_IGNORE ? &own : status;                              \
        int result;                                                                                \
        if (!cpl_progress_needed() || source == MPI_PROC_NULL || !has_status(status)) {            \
            result = CPL_AWAY(PMPI_##name(buf, count, type, source, tag, comm, to));               \
        } else {                                                                                   \
            result = PMPI_##nonblocking(buf, count, type, source, tag, comm, &request);            \
            if (result == MPI_SUCCESS)                                                             \
                result = cpl_progress_wait(&request, to);                                          \
        }                                                                                          \
        cpl_watch_received(comm, source, tag, result, to);                                         \
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
        return cpl_watch_posted(comm, source, tag, result, request);                               \
    }
IRECV_FORM(Irecv, int)
IRECV_FORM(Irecv_c, MPI_Count)

/* Whether a message handle is the shim's and MPI would accept the arguments; describes the
 * buffer. */
static bool is_taken(const MPI_Message *message, void *buf, MPI_Count count, MPI_Datatype type,
                     struct cpl_span *span)
{
    return message && cpl_line_has_message(*message) &&
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
        int result = is_taken(message, buf, count, type, &span)                                    \
                         ? cpl_pt2pt_imrecv(&span, message, &request)                              \
                         : PMPI_##nonblocking(buf, count, type, message, &request);                \
        return result == MPI_SUCCESS ? cpl_complete_one(&request, NULL, status, CPL_WAITS)         \
                                     : result;                                                     \
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
