/* Persistent requests (pt2pt_persistent.h). */
#include "shim/calls/pt2pt_persistent.h"

#include "shim/calls/pt2pt_calls.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/report/report.h"
#include "shim/state/comm_state.h"
#include "shim/wait/pt2pt_requests.h"

#include <stdlib.h>
#include <utlist.h>

struct cpl_persistent {
    struct cpl_request request; /* the first member: what is found by the handle */
    struct cpl_persistent_call call;
    struct cpl_neighbor_op *collective; /* a neighborhood collective that is carried; or NULL */
    struct cpl_exchange *watched;       /* one that is MPI's; or NULL */
    int rank, n_ranks;                  /* of its communicator */
    struct cpl_type type;               /* the call's, kept */
    struct cpl_persistent *prev, *next;
};

/* A new request among the known ones; NULL: no memory. */
static struct cpl_persistent *add(MPI_Request handle)
{
    struct cpl_persistent *p = calloc(1, sizeof *p);
    if (p) {
        p->request.handle = handle;
        p->request.persistent = true;
    }
    if (p && cpl_request_add(&p->request)) {
        DL_APPEND(cpl_context.persistent, p);
        return p;
    }
    free(p);
    return NULL;
}

static struct cpl_persistent *find(MPI_Request handle)
{
    struct cpl_request *request = cpl_request_find(handle);
    return request && request->persistent ? (struct cpl_persistent *)(void *)request : NULL;
}

void cpl_persistent_add(MPI_Request request, const struct cpl_persistent_call *call)
{
    struct cpl_persistent *p = add(request);
    struct cpl_comm_state *state = cpl_comm_state_get(call->comm);
    if (!p) {
        /* What it will send or receive is not known: the communicator stays MPI's. */
        if (state)
            state->pt2pt.blind = CPL_LEFT_UNABLE;
        return;
    }
    p->call = *call;
    /* The program may free its datatype before it starts the request. */
    p->type = (struct cpl_type){.handle = call->type};
    if (call->type != MPI_DATATYPE_NULL && cpl_type_keep(&p->type))
        p->call.type = p->type.handle;
}

bool cpl_persistent_add_collective(MPI_Request request, struct cpl_neighbor_op *op)
{
    struct cpl_persistent *p = add(request);
    if (!p)
        return false;
    p->collective = op;
    op->request = &p->request;
    return true;
}

bool cpl_persistent_watch(MPI_Request request, struct cpl_exchange *exchange, int rank, int n_ranks)
{
    struct cpl_persistent *p = add(request);
    if (!p)
        return false;
    p->watched = exchange;
    p->rank = rank;
    p->n_ranks = n_ranks;
    return true;
}

static int start_collective(struct cpl_persistent *p)
{
    struct cpl_neighbor_op *op = p->collective;
    cpl_request_activate(&p->request, op->ride.state->comm, true);
    cpl_request_open_collective(&p->request);
    op->ride.x->started++;
    op->ride.x->started_planned++;
    cpl_neighbor_op_start(op);
    return MPI_SUCCESS;
}

static int start_managed(struct cpl_persistent *p, struct cpl_comm_state *state,
                         const struct cpl_span *span)
{
    const struct cpl_persistent_call *call = &p->call;
    int result = MPI_SUCCESS;
    cpl_request_activate(&p->request, state->comm, call->receives);
    if (call->receives)
        cpl_pt2pt_post(state, &p->request.receive, span, call->peer, call->tag);
    else
        result =
            cpl_pt2pt_send(state, span, call->peer, call->tag, call->mode, &p->request.sending);
    if (result != MPI_SUCCESS)
        cpl_request_abandon(&p->request);
    return result;
}

static void learn(const struct cpl_persistent_call *call)
{
    struct cpl_comm_state *state = cpl_comm_state_get(call->comm);
    if (!state || state->pt2pt.phase != CPL_PT2PT_LEARNING || state->pt2pt.blind)
        return;
    if (call->receives)
        cpl_pt2pt_learn_receive(state, call->peer, call->tag, false);
    else
        cpl_pt2pt_learn_send(state, call->peer, call->tag, cpl_type_size(call->type) * call->count);
}

int cpl_persistent_start(MPI_Request *request)
{
    struct cpl_persistent *p = find(*request);
    const struct cpl_request *active = cpl_request_active(*request);
    struct cpl_span span;
    if (active) { /* already, or it is not persistent */
        PMPI_Comm_call_errhandler(active->comm, MPI_ERR_REQUEST);
        return MPI_ERR_REQUEST;
    }
    if (!p)
        return PMPI_Start(request);
    if (p->collective)
        return start_collective(p);
    if (p->watched) {
        p->watched->started++;
        return PMPI_Start(request);
    }
    const struct cpl_persistent_call *call = &p->call;
    struct cpl_comm_state *state =
        cpl_pt2pt_managed(call->comm, call->buffer, call->count, call->type, call->peer, call->tag,
                          call->receives, &span);
    if (state)
        return start_managed(p, state, &span);
    learn(call);
    return PMPI_Start(request);
}

static void free_memory(struct cpl_persistent *p)
{
    if (p->collective)
        cpl_neighbor_persistent_free(p->collective);
    if (p->watched) {
        cpl_exchange_record(p->watched, p->rank, p->n_ranks);
        cpl_exchange_release(p->watched);
        free(p->watched);
    }
    cpl_type_release(&p->type);
    free(p);
}

static void forget(struct cpl_persistent *p)
{
    cpl_request_remove(&p->request);
    DL_DELETE(cpl_context.persistent, p);
    free_memory(p);
}

static void gone(struct cpl_request *request)
{
    free_memory((struct cpl_persistent *)(void *)request);
}

void cpl_persistent_forget_collective(MPI_Request request)
{
    struct cpl_persistent *p = find(request);
    p->collective = NULL;
    forget(p);
}

void cpl_persistent_free(MPI_Request handle)
{
    struct cpl_persistent *p = find(handle);
    if (!p)
        return;
    if (p->collective) { /* MPI does not allow it while it is active */
        while (p->request.active && !cpl_request_is_done(&p->request))
            cpl_pt2pt_poll();
        if (p->request.active)
            cpl_request_settle(&p->request, &handle, MPI_STATUS_IGNORE);
    }
    if (!p->request.active) {
        forget(p);
        return;
    }
    cpl_request_remove(&p->request);
    DL_DELETE(cpl_context.persistent, p);
    p->request.freed = true;
    p->request.gone = gone;
    cpl_request_abandon(&p->request);
}

void cpl_persistent_end(void)
{
    while (cpl_context.persistent)
        forget(cpl_context.persistent);
}
