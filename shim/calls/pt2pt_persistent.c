/* Persistent requests of messages (pt2pt_persistent.h). */
#include "shim/calls/pt2pt_persistent.h"
#include "shim/base/names.h"
#include "shim/calls/pt2pt_watch.h"
#include "shim/calls/wrappers_pt2pt.h"

#include "shim/carry/requests.h"
#include "shim/state/comm_state.h"

#include <stdlib.h>
#include <string.h>

/* Requests that were started together, and what they add to the balance of their communicator. */
struct series {
    int n;
    int64_t n_forgotten; /* persistent requests until then: handles are used again */
    struct cpl_balance balance;
    MPI_Request handle[];
};

struct persistent_message {
    struct cpl_persistent persistent; /* the first member */
    struct cpl_persistent_call call;
    struct cpl_type type;  /* the call's, kept */
    struct series *series; /* that begins with this request; NULL: there is none */
};

static int start_managed(struct persistent_message *p, struct cpl_comm_state *state,
                         const struct cpl_span *span)
{
    const struct cpl_persistent_call *call = &p->call;
    int result = MPI_SUCCESS;
    cpl_request_activate(&p->persistent.request, state->comm, call->receives);
    if (call->receives)
        cpl_pt2pt_post(state, &p->persistent.request.receive, span, call->peer, call->tag);
    else
        result = cpl_pt2pt_send(state, span, call->peer, call->tag, call->mode,
                                &p->persistent.request.sending);
    if (result != MPI_SUCCESS)
        cpl_request_abandon(&p->persistent.request);
    return result;
}

static void learn(struct persistent_message *p)
{
    const struct cpl_persistent_call *call = &p->call;
    struct cpl_comm_state *state = cpl_watch_learning(call->comm);
    if (!state)
        return;
    if (call->receives &&
        cpl_watch_persistent(state, call->peer, call->tag, &p->persistent.request))
        return;
    if (call->receives)
        cpl_pt2pt_learn_receive(state, call->peer, call->tag, false);
    else
        cpl_pt2pt_learn_send(state, call->peer, call->tag, cpl_type_size(call->type) * call->count);
}

static int start(struct cpl_persistent *persistent, MPI_Request *handle)
{
    struct persistent_message *p = (struct persistent_message *)(void *)persistent;
    const struct cpl_persistent_call *call = &p->call;
    struct cpl_span span;
    if (is_mpis(call->comm, call->peer, call->tag, call->receives ? -1 : 1))
        return PMPI_Start(handle);
    struct cpl_comm_state *state =
        cpl_pt2pt_managed(call->comm, call->buffer, call->count, call->type, call->peer, call->tag,
                          call->receives, &span);
    if (state)
        return start_managed(p, state, &span);
    learn(p);
    return PMPI_Start(handle);
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

/* NULL: not all of the requests are messages of `state` without wildcards, or memory ran out. */
static const struct series *make_series(struct persistent_message *first,
                                        const struct cpl_comm_state *state, int n,
                                        const MPI_Request *requests)
{
    const size_t bytes = (size_t)n * sizeof *requests;
    struct series *s = realloc(first->series, sizeof *s + bytes);
    if (!s)
        return NULL;
    first->series = s;
    *s = (struct series){.n_forgotten = cpl_context.requests.n_forgotten};
    memcpy(s->handle, requests, bytes);
    for (int k = 0; k < n; k++) {
        const struct persistent_message *p = find(requests[k]);
        const struct cpl_persistent_call *call = p ? &p->call : NULL;
        if (!call || call->comm != state->comm ||
            !count_message(&s->balance, state, call->peer, call->tag, call->receives ? -1 : 1))
            return NULL;
    }
    s->n = n;
    return s;
}

static const struct series *find_series(struct persistent_message *first,
                                        const struct cpl_comm_state *state, int n,
                                        const MPI_Request *requests)
{
    const struct series *s = first->series;
    if (s && s->n == n && s->n_forgotten == cpl_context.requests.n_forgotten &&
        memcmp(s->handle, requests, (size_t)n * sizeof *requests) == 0)
        return s;
    return make_series(first, state, n, requests);
}

bool cpl_persistent_series_passes(int n, const MPI_Request *requests)
{
    struct persistent_message *first = n > 0 ? find(requests[0]) : NULL;
    const struct cpl_recent *recent = first ? resting(first->call.comm) : NULL;
    const struct series *s = recent ? find_series(first, recent->state, n, requests) : NULL;
    if (!s)
        return false;
    recent->balance->n += s->balance.n;
    recent->balance->hash += s->balance.hash;
    recent->balance->hash_again += s->balance.hash_again;
    return true;
}

void cpl_persistent_message(MPI_Request request, const struct cpl_persistent_call *call)
{
    struct persistent_message *p = calloc(1, sizeof *p);
    struct cpl_comm_state *state = cpl_comm_state_get(call->comm);
    if (!p || !cpl_persistent_add(&p->persistent, &messages, request)) {
        /* Nobody knows what the request will send or receive, so the communicator stays MPI's. */
        if (state)
            cpl_comm_state_own(state);
        if (state)
            state->pt2pt->blind = CPL_LEFT_UNABLE;
        free(p);
        return;
    }
    p->call = *call;
    /* The program may free its datatype before it starts the request. */
    p->type = (struct cpl_type){.handle = call->type};
    if (call->type != MPI_DATATYPE_NULL && cpl_type_keep(&p->type))
        p->call.type = p->type.handle;
}
