/* The intercepted calls that make and start persistent requests of messages (carry/requests.h).
 * When started on a managed communicator they are carried; otherwise the shim learns from them and
 * starts them in MPI. */
#include "shim/calls/wrappers.h"
#include "shim/state/memory.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* Requests that were started together, and what they add to the balance of their communicator. */
struct series {
    int n;
    int64_t n_forgotten; /* persistent requests until then: handles are used again */
    struct cpl_balance balance;
    MPI_Request handle[];
};

/* The call that a persistent request stands for. */
struct call {
    bool receives;
    enum cpl_send_mode mode; /* when it sends */
    void *buffer;
    MPI_Count count;
    MPI_Datatype type;
    int peer, tag;
    MPI_Comm comm;
};

struct persistent_message {
    struct cpl_persistent persistent; /* the first member */
    struct call call;
    struct cpl_type type;  /* the call's, kept */
    struct series *series; /* that begins with this request; NULL: there is none */
};

static int start(struct cpl_persistent *persistent, MPI_Request *handle)
{
    const struct call *call = &((struct persistent_message *)(void *)persistent)->call;
    struct cpl_request *request = &persistent->request;
    struct cpl_span span;
    if (is_mpis(call->comm, call->peer, call->tag, call->receives ? -1 : 1))
        return PMPI_Start(handle);
    struct cpl_comm_state *state =
        cpl_pt2pt_managed(call->comm, call->buffer, call->count, call->type, call->peer, call->tag,
                          call->receives, &span);
    if (!state && call->receives)
        cpl_watch_starting(call->comm, call->peer, call->tag, request);
    else if (!state)
        cpl_watch_send(call->comm, call->count, call->type, call->peer, call->tag);
    if (!state)
        return PMPI_Start(handle);
    cpl_request_activate(request, state->comm, call->receives);
    if (call->receives) {
        cpl_pt2pt_post(state, &request->receive, &span, call->peer, call->tag);
        return MPI_SUCCESS;
    }
    int result = cpl_pt2pt_send(state, &span, call->peer, call->tag, call->mode, &request->sending);
    if (result != MPI_SUCCESS)
        cpl_request_abandon(request);
    return result;
}

static void release(struct cpl_persistent *persistent)
{
    struct persistent_message *p = (struct persistent_message *)(void *)persistent;
    cpl_type_release(&p->type);
    free(p->series);
    free(p);
}

static const struct cpl_persistent_kind messages = {.start = start, .free = release};

static struct persistent_message *find(MPI_Request handle)
{
    struct cpl_persistent *p = cpl_persistent_find(handle);
    return p && p->kind == &messages ? (struct persistent_message *)(void *)p : NULL;
}

/* The series that was started last from `first` on, or a new one. NULL: not all of the requests are
 * messages of `state` without wildcards, or memory ran out. */
static const struct series *find_series(struct persistent_message *first,
                                        const struct cpl_comm_state *state, int n,
                                        const MPI_Request *requests)
{
    const size_t bytes = (size_t)n * sizeof *requests;
    struct series *s = first->series;
    if (s && s->n == n && s->n_forgotten == cpl_context.requests.n_forgotten &&
        memcmp(s->handle, requests, bytes) == 0)
        return s;
    s = realloc(first->series, sizeof *s + bytes);
    if (!s)
        return NULL;
    first->series = s;
    *s = (struct series){.n_forgotten = cpl_context.requests.n_forgotten};
    memcpy(s->handle, requests, bytes);
    for (int k = 0; k < n; k++) {
        const struct persistent_message *p = find(requests[k]);
        const struct call *call = p ? &p->call : NULL;
        if (!call || call->comm != state->comm ||
            !count_message(&s->balance, state->rank, state->size, call->peer, call->tag,
                           call->receives ? -1 : 1))
            return NULL;
    }
    s->n = n;
    return s;
}

/* Whether requests that are started together are messages of one communicator that are MPI's
 * without a further look (wrappers.h); counts them. */
static bool series_passes(int n, const MPI_Request *requests)
{
    struct persistent_message *first = n > 0 ? find(requests[0]) : NULL;
    const struct cpl_recent *recent = first ? cpl_context_recent(first->call.comm) : NULL;
    if (!recent || recent->comm != first->call.comm || !recent->balance)
        return false;
    const struct series *s = find_series(first, recent->state, n, requests);
    if (!s)
        return false;
    recent->balance->n += s->balance.n;
    recent->balance->hash += s->balance.hash;
    recent->balance->hash_again += s->balance.hash_again;
    return true;
}

/* A persistent request was made, with this result, which is returned: remembers its call. */
static int made(int result, const MPI_Request *request, const struct call *call)
{
    if (result != MPI_SUCCESS || !cpl_context.active)
        return result;
    struct persistent_message *p = calloc(1, sizeof *p);
    struct cpl_comm_state *state = p ? NULL : cpl_comm_state_get(call->comm);
    if (state) { /* nobody knows what it will send or receive: the communicator stays MPI's */
        cpl_comm_state_own(state);
        state->pt2pt->blind = CPL_LEFT_UNABLE;
    }
    if (!p)
        return result;
    cpl_persistent_add(&p->persistent, &messages, *request);
    p->call = *call;
    /* The program may free its datatype before it starts the request. */
    p->type = (struct cpl_type){.handle = call->type};
    if (call->type != MPI_DATATYPE_NULL && cpl_type_keep(&p->type))
        p->call.type = p->type.handle;
    return result;
}

#define INIT_FORM(name, receives, mode, buffer_t, count_t)                                         \
    EXPORT int MPI_##name(buffer_t buf, count_t count, MPI_Datatype type, int peer, int tag,       \
                          MPI_Comm comm, MPI_Request *request)                                     \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        int result = PMPI_##name(buf, count, type, peer, tag, comm, request);                      \
        const struct call call = {receives, mode, (void *)(uintptr_t)buf, count, type, peer,       \
                                  tag,      comm};                                                 \
        return made(result, request, &call);                                                       \
    }
#define SEND_INIT(name, mode)                                                                      \
    INIT_FORM(name, false, mode, const void *, int)                                                \
    INIT_FORM(name##_c, false, mode, const void *, MPI_Count)
#include "shim/tables/pt2pt.def"
INIT_FORM(Recv_init, true, CPL_SEND_STANDARD, void *, int)
INIT_FORM(Recv_init_c, true, CPL_SEND_STANDARD, void *, MPI_Count)

EXPORT int MPI_Start(MPI_Request *request)
{
    CPL_INSIDE;
    return cpl_context.active && request ? cpl_persistent_start(request) : PMPI_Start(request);
}

EXPORT int MPI_Startall(int count, MPI_Request requests[])
{
    CPL_INSIDE;
    int result = MPI_SUCCESS;
    if (!cpl_context.active || count < 0 || !requests || series_passes(count, requests))
        return PMPI_Startall(count, requests);
    for (int k = 0; k < count && result == MPI_SUCCESS; k++)
        result = cpl_persistent_start(&requests[k]);
    return result;
}
