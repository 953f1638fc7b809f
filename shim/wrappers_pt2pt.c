/* The intercepted point-to-point calls (doc/point-to-point.md). Each is MPI's unless its
 * communicator is managed; while learning it is noted; while anything is managed, calls that wait
 * poll. Switched off, a call costs one branch. */
#include "comm_state.h"
#include "pt2pt_calls.h"
#include "pt2pt_complete.h"
#include "pt2pt_messages.h"
#include "pt2pt_persistent.h"
#include "pt2pt_requests.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

/* What a call does that does not pass: a function of its own with the same parameters, so that a
 * call that passes saves no registers and jumps on. */
#define WATCHED static __attribute__((noinline)) int

/* Whether a call is MPI's without a further look. */
static inline bool passes(MPI_Comm comm)
{
    if (comm == cpl_context.alone_comm || !cpl_context.active)
        return true;
    if (cpl_context.first_pending) /* what waits must poll */
        return false;
    const struct cpl_recent *recent = cpl_context_recent(comm);
    return comm == recent->comm && recent->alone;
}

/* The state of a communicator that is still learning; NULL: there is nothing to note. */
static struct cpl_comm_state *learning(MPI_Comm comm)
{
    struct cpl_comm_state *state = cpl_comm_state_get(comm);
    if (state && state->pt2pt.phase == CPL_PT2PT_LEARNING && !state->pt2pt.blind)
        return state;
    if (state && cpl_context.n_managed == 0) {
        cpl_context_recent(comm)->alone = true;
        if (!cpl_context.first_pending)
            cpl_context.alone_comm = comm;
    }
    return NULL;
}

static void note_send(MPI_Comm comm, MPI_Count count, MPI_Datatype type, int dest, int tag)
{
    struct cpl_comm_state *state = learning(comm);
    if (state)
        cpl_pt2pt_learn_send(state, dest, tag, cpl_type_size(type) * (int64_t)count);
}

static void note_receive(MPI_Comm comm, int source, int tag, bool blocking)
{
    struct cpl_comm_state *state = learning(comm);
    if (state)
        cpl_pt2pt_learn_receive(state, source, tag, blocking);
}

/* A call that may wait: batches leave. */
static void leave(void)
{
    if (cpl_context.n_open_batches > 0)
        cpl_pt2pt_leave();
}

/* A count above int's as one element of a type of so many; *type is then to be freed. */
static bool shrink(MPI_Count *count, MPI_Datatype *type)
{
    if (*count <= INT_MAX)
        return false;
    PMPI_Type_contiguous_c(*count, *type, type);
    PMPI_Type_commit(type);
    *count = 1;
    return true;
}

/* The managed state of a communicator for a call's arguments, or NULL. */
static struct cpl_comm_state *managed(MPI_Comm comm, const void *buffer, MPI_Count count,
                                      MPI_Datatype type, int peer, int tag, bool receives,
                                      struct cpl_span *span)
{
    if (cpl_context.n_managed == 0)
        return NULL;
    bool made = shrink(&count, &type);
    struct cpl_comm_state *state =
        cpl_pt2pt_managed(comm, buffer, (int)count, type, peer, tag, receives, span);
    if (made && !state)
        PMPI_Type_free(&type);
    return state;
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

#define SEND_FORM(name, nonblocking, mode, count_t)                                                \
    WATCHED watched_##name(const void *buf, count_t count, MPI_Datatype type, int dest, int tag,   \
                           MPI_Comm comm)                                                          \
    {                                                                                              \
        struct cpl_span span;                                                                      \
        MPI_Request request;                                                                       \
        struct cpl_comm_state *state = managed(comm, buf, count, type, dest, tag, false, &span);   \
        if (state)                                                                                 \
            return send(state, &span, dest, tag, mode);                                            \
        note_send(comm, count, type, dest, tag);                                                   \
        if (!cpl_pt2pt_any_managed())                                                              \
            return PMPI_##name(buf, count, type, dest, tag, comm);                                 \
        int result = PMPI_##nonblocking(buf, count, type, dest, tag, comm, &request);              \
        return result == MPI_SUCCESS ? cpl_pt2pt_wait(&request, MPI_STATUS_IGNORE) : result;       \
    }                                                                                              \
    EXPORT int MPI_##name(const void *buf, count_t count, MPI_Datatype type, int dest, int tag,    \
                          MPI_Comm comm)                                                           \
    {                                                                                              \
        if (passes(comm))                                                                          \
            return PMPI_##name(buf, count, type, dest, tag, comm);                                 \
        return watched_##name(buf, count, type, dest, tag, comm);                                  \
    }
#define SEND(name, nonblocking, mode)                                                              \
    SEND_FORM(name, nonblocking, mode, int)                                                        \
    SEND_FORM(name##_c, nonblocking##_c, mode, MPI_Count)
#include "pt2pt.def"

#define ISEND_FORM(name, mode, count_t)                                                            \
    WATCHED watched_##name(const void *buf, count_t count, MPI_Datatype type, int dest, int tag,   \
                           MPI_Comm comm, MPI_Request *request)                                    \
    {                                                                                              \
        struct cpl_span span;                                                                      \
        struct cpl_comm_state *state = managed(comm, buf, count, type, dest, tag, false, &span);   \
        if (state)                                                                                 \
            return isend(state, &span, dest, tag, mode, request);                                  \
        note_send(comm, count, type, dest, tag);                                                   \
        return PMPI_##name(buf, count, type, dest, tag, comm, request);                            \
    }                                                                                              \
    EXPORT int MPI_##name(const void *buf, count_t count, MPI_Datatype type, int dest, int tag,    \
                          MPI_Comm comm, MPI_Request *request)                                     \
    {                                                                                              \
        if (passes(comm))                                                                          \
            return PMPI_##name(buf, count, type, dest, tag, comm, request);                        \
        return watched_##name(buf, count, type, dest, tag, comm, request);                         \
    }
#define ISEND(name, mode)                                                                          \
    ISEND_FORM(name, mode, int)                                                                    \
    ISEND_FORM(name##_c, mode, MPI_Count)
#include "pt2pt.def"

static int recv(struct cpl_comm_state *state, const struct cpl_span *span, int source, int tag,
                MPI_Status *status)
{
    struct cpl_receive receive;
    cpl_pt2pt_post(state, &receive, span, source, tag);
    return cpl_pt2pt_finish_receive(state, &receive, status);
}

/* After a blocking receive by MPI: what came is known even of wildcards. */
static void note_received(MPI_Comm comm, int source, int tag, int result, const MPI_Status *status)
{
    if (result == MPI_SUCCESS && source != MPI_PROC_NULL)
        note_receive(comm, status->MPI_SOURCE, status->MPI_TAG, true);
    else
        note_receive(comm, source, tag, true);
}

#define RECV_FORM(name, nonblocking, count_t)                                                      \
    WATCHED watched_##name(void *buf, count_t count, MPI_Datatype type, int source, int tag,       \
                           MPI_Comm comm, MPI_Status *status)                                      \
    {                                                                                              \
        struct cpl_span span;                                                                      \
        MPI_Status own;                                                                            \
        MPI_Request request;                                                                       \
        leave();                                                                                   \
        if (passes(comm))                                                                          \
            return PMPI_##name(buf, count, type, source, tag, comm, status);                       \
        struct cpl_comm_state *state = managed(comm, buf, count, type, source, tag, true, &span);  \
        if (state)                                                                                 \
            return recv(state, &span, source, tag, status);                                        \
        MPI_Status *to = status == MPI_STATUS_IGNORE ? &own : status;                              \
        int result;                                                                                \
        if (!cpl_pt2pt_any_managed()) {                                                            \
            result = PMPI_##name(buf, count, type, source, tag, comm, to);                         \
        } else {                                                                                   \
            result = PMPI_##nonblocking(buf, count, type, source, tag, comm, &request);            \
            if (result == MPI_SUCCESS)                                                             \
                result = cpl_pt2pt_wait(&request, to);                                             \
        }                                                                                          \
        note_received(comm, source, tag, result, to);                                              \
        return result;                                                                             \
    }                                                                                              \
    EXPORT int MPI_##name(void *buf, count_t count, MPI_Datatype type, int source, int tag,        \
                          MPI_Comm comm, MPI_Status *status)                                       \
    {                                                                                              \
        if (passes(comm) && cpl_context.n_open_batches == 0)                                       \
            return PMPI_##name(buf, count, type, source, tag, comm, status);                       \
        return watched_##name(buf, count, type, source, tag, comm, status);                        \
    }
RECV_FORM(Recv, Irecv, int)
RECV_FORM(Recv_c, Irecv_c, MPI_Count)

#define IRECV_FORM(name, count_t)                                                                  \
    WATCHED watched_##name(void *buf, count_t count, MPI_Datatype type, int source, int tag,       \
                           MPI_Comm comm, MPI_Request *request)                                    \
    {                                                                                              \
        struct cpl_span span;                                                                      \
        struct cpl_comm_state *state = managed(comm, buf, count, type, source, tag, true, &span);  \
        if (state)                                                                                 \
            return cpl_pt2pt_irecv(state, &span, source, tag, request);                            \
        note_receive(comm, source, tag, false);                                                    \
        return PMPI_##name(buf, count, type, source, tag, comm, request);                          \
    }                                                                                              \
    EXPORT int MPI_##name(void *buf, count_t count, MPI_Datatype type, int source, int tag,        \
                          MPI_Comm comm, MPI_Request *request)                                     \
    {                                                                                              \
        if (passes(comm))                                                                          \
            return PMPI_##name(buf, count, type, source, tag, comm, request);                      \
        return watched_##name(buf, count, type, source, tag, comm, request);                       \
    }
IRECV_FORM(Irecv, int)
IRECV_FORM(Irecv_c, MPI_Count)

/* Starts a send or receive, managed or not, while something is managed. */
static int start_send(const void *buf, MPI_Count count, MPI_Datatype type, int dest, int tag,
                      MPI_Comm comm, MPI_Request *request)
{
    struct cpl_span span;
    struct cpl_comm_state *state = managed(comm, buf, count, type, dest, tag, false, &span);
    if (state)
        return isend(state, &span, dest, tag, CPL_SEND_STANDARD, request);
    note_send(comm, count, type, dest, tag);
    return PMPI_Isend_c(buf, count, type, dest, tag, comm, request);
}

static int start_receive(void *buf, MPI_Count count, MPI_Datatype type, int source, int tag,
                         MPI_Comm comm, MPI_Request *request)
{
    struct cpl_span span;
    struct cpl_comm_state *state = managed(comm, buf, count, type, source, tag, true, &span);
    if (state)
        return cpl_pt2pt_irecv(state, &span, source, tag, request);
    note_receive(comm, source, tag, false);
    return PMPI_Irecv_c(buf, count, type, source, tag, comm, request);
}

/* Both halves while something is managed; either may be MPI's (a peer that is MPI_PROC_NULL). */
static int sendrecv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest,
                    int sendtag, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                    int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Request receive = MPI_REQUEST_NULL, sent = MPI_REQUEST_NULL;
    int result = start_receive(recvbuf, recvcount, recvtype, source, recvtag, comm, &receive);
    if (result == MPI_SUCCESS)
        result = start_send(sendbuf, sendcount, sendtype, dest, sendtag, comm, &sent);
    if (result == MPI_SUCCESS)
        result = cpl_complete_one(&receive, NULL, status);
    int other = cpl_complete_one(&sent, NULL, MPI_STATUS_IGNORE);
    return result == MPI_SUCCESS ? other : result;
}

#define SENDRECV_FORM(name, count_t)                                                               \
    EXPORT int MPI_##name(const void *sendbuf, count_t sendcount, MPI_Datatype sendtype, int dest, \
                          int sendtag, void *recvbuf, count_t recvcount, MPI_Datatype recvtype,    \
                          int source, int recvtag, MPI_Comm comm, MPI_Status *status)              \
    {                                                                                              \
        MPI_Status own;                                                                            \
        if (!cpl_context.active)                                                                   \
            return PMPI_##name(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,    \
                               recvtype, source, recvtag, comm, status);                           \
        if (cpl_pt2pt_any_managed()) {                                                             \
            leave();                                                                               \
            return sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,       \
                            recvtype, source, recvtag, comm, status);                              \
        }                                                                                          \
        MPI_Status *to = status == MPI_STATUS_IGNORE ? &own : status;                              \
        note_send(comm, sendcount, sendtype, dest, sendtag);                                       \
        leave();                                                                                   \
        int result = PMPI_##name(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,  \
                                 recvtype, source, recvtag, comm, to);                             \
        note_received(comm, source, recvtag, result, to);                                          \
        return result;                                                                             \
    }
SENDRECV_FORM(Sendrecv, int)
SENDRECV_FORM(Sendrecv_c, MPI_Count)

/* Data in packed form, to be freed; NULL with *result set when that fails. */
static unsigned char *pack(const void *buf, MPI_Count count, MPI_Datatype type, MPI_Comm comm,
                           MPI_Count *bytes, int *result)
{
    MPI_Count room = 0;
    *bytes = 0;
    *result = PMPI_Pack_size_c(count, type, comm, &room);
    if (*result != MPI_SUCCESS)
        return NULL;
    unsigned char *copy = malloc((size_t)room + 1);
    if (!copy) {
        *result = MPI_ERR_NO_MEM;
        PMPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
        return NULL;
    }
    *result = PMPI_Pack_c(buf, count, type, copy, room, bytes, comm);
    return copy;
}

/* The data to be sent is packed first: the buffer is received into. */
static int replace(void *buf, MPI_Count count, MPI_Datatype type, int dest, int sendtag, int source,
                   int recvtag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Count bytes;
    int result;
    unsigned char *copy = pack(buf, count, type, comm, &bytes, &result);
    if (result == MPI_SUCCESS)
        result = sendrecv(copy, bytes, MPI_PACKED, dest, sendtag, buf, count, type, source, recvtag,
                          comm, status);
    free(copy);
    return result;
}

/* Starts both halves; returns when the send is complete. */
static int isendrecv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest,
                     int sendtag, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                     int source, int recvtag, MPI_Comm comm, MPI_Request *request)
{
    MPI_Request sent = MPI_REQUEST_NULL;
    int result = start_receive(recvbuf, recvcount, recvtype, source, recvtag, comm, request);
    if (result == MPI_SUCCESS)
        result = start_send(sendbuf, sendcount, sendtype, dest, sendtag, comm, &sent);
    return result == MPI_SUCCESS ? cpl_complete_one(&sent, NULL, MPI_STATUS_IGNORE) : result;
}

static int ireplace(void *buf, MPI_Count count, MPI_Datatype type, int dest, int sendtag,
                    int source, int recvtag, MPI_Comm comm, MPI_Request *request)
{
    MPI_Count bytes;
    int result;
    unsigned char *copy = pack(buf, count, type, comm, &bytes, &result);
    if (result == MPI_SUCCESS)
        result = isendrecv(copy, bytes, MPI_PACKED, dest, sendtag, buf, count, type, source,
                           recvtag, comm, request);
    free(copy);
    return result;
}

static bool is_managed(MPI_Comm comm)
{
    struct cpl_span none;
    return managed(comm, NULL, 0, MPI_BYTE, 0, 0, false, &none) != NULL;
}

/* What goes by a communicator is not all seen: it stays MPI's. */
static void blind(MPI_Comm comm)
{
    if (cpl_context.active)
        note_receive(comm, MPI_ANY_SOURCE, MPI_ANY_TAG, false);
}

#define REPLACE_FORM(name, count_t)                                                                \
    EXPORT int MPI_##name(void *buf, count_t count, MPI_Datatype type, int dest, int sendtag,      \
                          int source, int recvtag, MPI_Comm comm, MPI_Status *status)              \
    {                                                                                              \
        MPI_Status own;                                                                            \
        if (!cpl_context.active)                                                                   \
            return PMPI_##name(buf, count, type, dest, sendtag, source, recvtag, comm, status);    \
        if (cpl_pt2pt_any_managed()) {                                                             \
            leave();                                                                               \
            return replace(buf, count, type, dest, sendtag, source, recvtag, comm, status);        \
        }                                                                                          \
        MPI_Status *to = status == MPI_STATUS_IGNORE ? &own : status;                              \
        note_send(comm, count, type, dest, sendtag);                                               \
        leave();                                                                                   \
        int result = PMPI_##name(buf, count, type, dest, sendtag, source, recvtag, comm, to);      \
        note_received(comm, source, recvtag, result, to);                                          \
        return result;                                                                             \
    }
REPLACE_FORM(Sendrecv_replace, int)
REPLACE_FORM(Sendrecv_replace_c, MPI_Count)

/* Rare: a communicator on which they are used is not managed; on one that is, the send is waited
 * for, after the receive has been posted. */
#define ISENDRECV_FORM(name, count_t)                                                              \
    EXPORT int MPI_##name(const void *sendbuf, count_t sendcount, MPI_Datatype sendtype, int dest, \
                          int sendtag, void *recvbuf, count_t recvcount, MPI_Datatype recvtype,    \
                          int source, int recvtag, MPI_Comm comm, MPI_Request *request)            \
    {                                                                                              \
        if (cpl_context.active && is_managed(comm))                                                \
            return isendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,      \
                             recvtype, source, recvtag, comm, request);                            \
        blind(comm);                                                                               \
        return PMPI_##name(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,        \
                           recvtype, source, recvtag, comm, request);                              \
    }
ISENDRECV_FORM(Isendrecv, int)
ISENDRECV_FORM(Isendrecv_c, MPI_Count)

#define ISENDRECV_REPLACE_FORM(name, count_t)                                                      \
    EXPORT int MPI_##name(void *buf, count_t count, MPI_Datatype type, int dest, int sendtag,      \
                          int source, int recvtag, MPI_Comm comm, MPI_Request *request)            \
    {                                                                                              \
        if (cpl_context.active && is_managed(comm))                                                \
            return ireplace(buf, count, type, dest, sendtag, source, recvtag, comm, request);      \
        blind(comm);                                                                               \
        return PMPI_##name(buf, count, type, dest, sendtag, source, recvtag, comm, request);       \
    }
ISENDRECV_REPLACE_FORM(Isendrecv_replace, int)
ISENDRECV_REPLACE_FORM(Isendrecv_replace_c, MPI_Count)

/* Whether a message handle is the shim's; describes the buffer. */
static bool is_taken(MPI_Message message, void *buf, MPI_Count count, MPI_Datatype type,
                     struct cpl_span *span)
{
    if (!cpl_pt2pt_has_message(message))
        return false;
    shrink(&count, &type);
    *span = (struct cpl_span){.address = buf, .count = (int)count};
    return cpl_type_describe(type, &span->type);
}

#define MRECV_FORM(name, nonblocking, count_t)                                                     \
    EXPORT int MPI_##name(void *buf, count_t count, MPI_Datatype type, MPI_Message *message,       \
                          MPI_Status *status)                                                      \
    {                                                                                              \
        struct cpl_span span;                                                                      \
        MPI_Request request;                                                                       \
        if (!cpl_context.active || !cpl_pt2pt_any_managed())                                       \
            return PMPI_##name(buf, count, type, message, status);                                 \
        if (is_taken(*message, buf, count, type, &span))                                           \
            return cpl_pt2pt_mrecv(&span, message, status);                                        \
        int result = PMPI_##nonblocking(buf, count, type, message, &request);                      \
        return result == MPI_SUCCESS ? cpl_pt2pt_wait(&request, status) : result;                  \
    }                                                                                              \
    EXPORT int MPI_##nonblocking(void *buf, count_t count, MPI_Datatype type,                      \
                                 MPI_Message *message, MPI_Request *request)                       \
    {                                                                                              \
        struct cpl_span span;                                                                      \
        if (cpl_context.active && is_taken(*message, buf, count, type, &span))                     \
            return cpl_pt2pt_imrecv(&span, message, request);                                      \
        return PMPI_##nonblocking(buf, count, type, message, request);                             \
    }
MRECV_FORM(Mrecv, Imrecv, int)
MRECV_FORM(Mrecv_c, Imrecv_c, MPI_Count)

static void add_persistent(int result, MPI_Request request, void *buf, MPI_Count count,
                           MPI_Datatype type, int peer, int tag, MPI_Comm comm, bool receives,
                           bool synchronous)
{
    if (result != MPI_SUCCESS || !cpl_context.active)
        return;
    shrink(&count, &type);
    cpl_persistent_add(request, &(struct cpl_persistent_call){.receives = receives,
                                                              .synchronous = synchronous,
                                                              .buffer = buf,
                                                              .count = (int)count,
                                                              .type = type,
                                                              .peer = peer,
                                                              .tag = tag,
                                                              .comm = comm});
}

#define SEND_INIT_FORM(name, synchronous, count_t)                                                 \
    EXPORT int MPI_##name(const void *buf, count_t count, MPI_Datatype type, int dest, int tag,    \
                          MPI_Comm comm, MPI_Request *request)                                     \
    {                                                                                              \
        int result = PMPI_##name(buf, count, type, dest, tag, comm, request);                      \
        add_persistent(result, *request, (void *)(uintptr_t)buf, count, type, dest, tag, comm,     \
                       false, synchronous);                                                        \
        return result;                                                                             \
    }
#define SEND_INIT(name, synchronous)                                                               \
    SEND_INIT_FORM(name, synchronous, int)                                                         \
    SEND_INIT_FORM(name##_c, synchronous, MPI_Count)
#include "pt2pt.def"

#define RECV_INIT_FORM(name, count_t)                                                              \
    EXPORT int MPI_##name(void *buf, count_t count, MPI_Datatype type, int source, int tag,        \
                          MPI_Comm comm, MPI_Request *request)                                     \
    {                                                                                              \
        int result = PMPI_##name(buf, count, type, source, tag, comm, request);                    \
        add_persistent(result, *request, buf, count, type, source, tag, comm, true, false);        \
        return result;                                                                             \
    }
RECV_INIT_FORM(Recv_init, int)
RECV_INIT_FORM(Recv_init_c, MPI_Count)

EXPORT int MPI_Start(MPI_Request *request)
{
    return cpl_context.active ? cpl_persistent_start(request) : PMPI_Start(request);
}

EXPORT int MPI_Startall(int count, MPI_Request requests[])
{
    int result = MPI_SUCCESS;
    if (!cpl_context.active || count < 0)
        return PMPI_Startall(count, requests);
    for (int k = 0; k < count && result == MPI_SUCCESS; k++)
        result = cpl_persistent_start(&requests[k]);
    return result;
}

EXPORT int MPI_Request_free(MPI_Request *request)
{
    struct cpl_request *managed = cpl_request_active(*request);
    if (managed && !managed->persistent) {
        cpl_request_free(managed, request);
        return MPI_SUCCESS;
    }
    if (cpl_context.active)
        cpl_persistent_free(*request);
    return PMPI_Request_free(request);
}

/* Sends are not taken back: cancelling one that is managed has no effect. */
EXPORT int MPI_Cancel(MPI_Request *request)
{
    struct cpl_request *managed = cpl_request_active(*request);
    if (!managed)
        return PMPI_Cancel(request);
    if (managed->receives && !managed->collective)
        cpl_match_cancel(&managed->receive);
    return MPI_SUCCESS;
}
