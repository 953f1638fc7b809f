/* Persistent requests of messages (pt2pt_persistent.h). */
#include "shim/calls/pt2pt_persistent.h"
#include "shim/base/names.h"
#include "shim/calls/pt2pt_watch.h"

#include "shim/carry/persistent.h"
#include "shim/state/comm_state.h"

#include <stdlib.h>

struct persistent_message {
    struct cpl_persistent persistent; /* the first member */
    struct cpl_persistent_call call;
    struct cpl_type type; /* the call's, kept */
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
    struct cpl_comm_state *state = cpl_comm_state_get(call->comm);
    if (!state || !cpl_pt2pt_counts(state->pt2pt))
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
    free(p);
}

static const struct cpl_persistent_kind messages = {.start = start, .free = release};

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
