/* Persistent requests and completion calls (pt2pt_persistent.h). */
#include "pt2pt_persistent.h"

#include "comm_state.h"
#include "neighbor_internal.h"
#include "pt2pt_calls.h"
#include "pt2pt_failed.h"

#include <stdlib.h>
#include <uthash.h>

struct cpl_persistent {
    MPI_Request request; /* the key */
    struct cpl_persistent_call call;
    struct cpl_neighbor_op *collective;  /* a neighborhood collective; NULL: send or receive */
    struct cpl_type type;                /* the call's, kept */
    const struct cpl_comm_state *active; /* started managed on this communicator; NULL: not */
    struct cpl_receive receive;
    struct cpl_sending sending;
    UT_hash_handle hh;
};

static struct cpl_persistent *find(MPI_Request request)
{
    struct cpl_persistent *p = NULL;
    if (cpl_context.persistent)
        HASH_FIND(hh, cpl_context.persistent, &request, sizeof request, p);
    return p;
}

void cpl_persistent_add(MPI_Request request, const struct cpl_persistent_call *call)
{
    struct cpl_persistent *p = calloc(1, sizeof *p);
    struct cpl_comm_state *state = cpl_comm_state_get(call->comm);
    if (!p) { /* what it will send or receive is not known: the communicator stays MPI's */
        if (state)
            state->pt2pt.blind = true;
        return;
    }
    p->request = request;
    p->call = *call;
    /* The program may free its datatype before it starts the request. */
    p->type = (struct cpl_type){.handle = call->type};
    if (call->type != MPI_DATATYPE_NULL && cpl_type_keep(&p->type))
        p->call.type = p->type.handle;
    HASH_ADD(hh, cpl_context.persistent, request, sizeof request, p);
}

bool cpl_persistent_add_collective(MPI_Request request, struct cpl_neighbor_op *op)
{
    struct cpl_persistent *p = calloc(1, sizeof *p);
    if (!p)
        return false;
    p->request = request;
    p->collective = op;
    HASH_ADD(hh, cpl_context.persistent, request, sizeof request, p);
    return true;
}

void cpl_persistent_forget(MPI_Request request)
{
    struct cpl_persistent *p = find(request);
    if (p)
        HASH_DEL(cpl_context.persistent, p);
    free(p);
}

static int start_collective(struct cpl_persistent *p)
{
    p->active = p->collective->ride.state;
    cpl_context.n_active_persistent++;
    p->collective->ride.x->started++;
    p->collective->ride.x->started_planned++;
    cpl_neighbor_op_start(p->collective);
    return MPI_SUCCESS;
}

static int start_managed(struct cpl_persistent *p, struct cpl_comm_state *state,
                         const struct cpl_span *span)
{
    const struct cpl_persistent_call *call = &p->call;
    int result = MPI_SUCCESS;
    p->active = state;
    cpl_context.n_active_persistent++;
    if (call->receives)
        cpl_pt2pt_post(state, &p->receive, span, call->peer, call->tag);
    else
        result = cpl_pt2pt_send(state, span, call->peer, call->tag,
                                call->synchronous ? CPL_SEND_SYNCHRONOUS : CPL_SEND_STANDARD,
                                &p->sending);
    return result;
}

static void learn(const struct cpl_persistent_call *call)
{
    struct cpl_comm_state *state = cpl_comm_state_get(call->comm);
    if (!state || state->pt2pt.phase != CPL_PT2PT_LEARNING || state->pt2pt.blind)
        return;
    if (call->receives)
        cpl_pt2pt_learn_receive(state, call->peer, call->tag);
    else
        cpl_pt2pt_learn_send(state, call->peer, call->tag, cpl_type_size(call->type) * call->count);
}

int cpl_persistent_start(MPI_Request *request)
{
    struct cpl_persistent *p = find(*request);
    struct cpl_span span;
    if (!p)
        return PMPI_Start(request);
    if (p->collective)
        return start_collective(p);
    const struct cpl_persistent_call *call = &p->call;
    struct cpl_comm_state *state =
        cpl_pt2pt_managed(call->comm, call->buffer, call->count, call->type, call->peer, call->tag,
                          call->receives, &span);
    if (state)
        return start_managed(p, state, &span);
    learn(call);
    return PMPI_Start(request);
}

static bool is_done(struct cpl_persistent *p)
{
    if (p->collective)
        return p->collective->done;
    return p->call.receives ? p->receive.done : cpl_pt2pt_send_done(&p->sending);
}

/* Takes over the result of a request that is done; it may be started again. */
static int settle(struct cpl_persistent *p, MPI_Status *status)
{
    const struct cpl_comm_state *state = p->active;
    p->active = NULL;
    cpl_context.n_active_persistent--;
    if (p->collective) {
        cpl_match_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false);
        return cpl_neighbor_persistent_result(p->collective);
    }
    if (p->call.receives)
        return cpl_pt2pt_finish_receive(state, &p->receive, status);
    cpl_match_status(status, MPI_UNDEFINED, MPI_UNDEFINED, 0, false);
    return cpl_pt2pt_finish_send(&p->sending);
}

/* The managed active request behind a handle; NULL: it is MPI's. */
static struct cpl_persistent *active(MPI_Request request)
{
    struct cpl_persistent *p =
        cpl_context.n_active_persistent > 0 && request != MPI_REQUEST_NULL ? find(request) : NULL;
    return p && p->active ? p : NULL;
}

static void free_persistent(struct cpl_persistent *p)
{
    if (p->collective)
        cpl_neighbor_persistent_free(p->collective);
    cpl_type_release(&p->type);
    free(p);
}

void cpl_persistent_free(MPI_Request request)
{
    struct cpl_persistent *p = find(request);
    if (!p)
        return;
    if (p->active) { /* what has been started goes on until it is complete */
        while (!is_done(p))
            cpl_pt2pt_poll();
        settle(p, MPI_STATUS_IGNORE);
    }
    HASH_DEL(cpl_context.persistent, p);
    free_persistent(p);
}

bool cpl_persistent_cancel(MPI_Request request)
{
    struct cpl_persistent *p = active(request);
    if (p && p->call.receives)
        cpl_match_cancel(p->receive.match, &p->receive);
    return p != NULL;
}

bool cpl_persistent_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    struct cpl_persistent *p = active(request);
    if (!p)
        return false;
    *flag = is_done(p);
    if (*flag && p->collective)
        cpl_match_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false);
    else if (*flag && p->call.receives)
        cpl_match_status(status, p->receive.from, p->receive.from_tag, p->receive.bytes,
                         p->receive.cancelled);
    return true;
}

/* PMPI_Test, and the error that the receive may have ended with. */
static int test_one(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct cpl_failed *failed = cpl_failed_find(1, request);
    int result = PMPI_Test(request, flag, status);
    return cpl_failed_one(failed, *flag ? 0 : MPI_UNDEFINED, result);
}

int cpl_complete_one(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct cpl_persistent *p = active(*request);
    int done = 0;
    cpl_pt2pt_leave();
    for (;;) {
        int result = MPI_SUCCESS;
        if (p)
            done = is_done(p);
        else
            result = test_one(request, &done, status);
        if (done && p)
            result = settle(p, status);
        if (flag)
            *flag = done;
        if (done || result != MPI_SUCCESS)
            return result;
        cpl_pt2pt_poll();
        if (flag)
            break;
    }
    /* A test that has polled looks once more. */
    if (p && is_done(p)) {
        *flag = 1;
        return settle(p, status);
    }
    return p ? MPI_SUCCESS : test_one(request, flag, status);
}

static MPI_Status *status_at(MPI_Status *statuses, int k)
{
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[k];
}

static bool any_open(int n, const MPI_Request *requests)
{
    for (int k = 0; k < n && cpl_context.n_active_persistent > 0; k++) {
        struct cpl_persistent *p = active(requests[k]);
        if (p && !is_done(p))
            return true;
    }
    return false;
}

/* All are complete: the managed ones' results go to their places. */
static int settle_all(int n, const MPI_Request *requests, MPI_Status *statuses, int result)
{
    for (int k = 0; k < n && cpl_context.n_active_persistent > 0; k++) {
        struct cpl_persistent *p = active(requests[k]);
        if (!p)
            continue;
        int error = settle(p, status_at(statuses, k));
        if (statuses != MPI_STATUSES_IGNORE)
            statuses[k].MPI_ERROR = error;
        if (error != MPI_SUCCESS)
            result = MPI_ERR_IN_STATUS;
    }
    return result;
}

static int test_all(int n, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    struct cpl_failed *failed = cpl_failed_find(n, requests);
    int result = PMPI_Testall(n, requests, flag, statuses);
    if (*flag)
        return cpl_failed_all(failed, n, statuses, result);
    cpl_failed_forget(failed);
    return result;
}

int cpl_complete_all(int n, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    cpl_pt2pt_leave();
    for (bool looked = false;; looked = true) {
        int done = 0, result = MPI_SUCCESS;
        if (!any_open(n, requests))
            result = test_all(n, requests, &done, statuses);
        if (done || result != MPI_SUCCESS) {
            if (flag)
                *flag = done;
            return settle_all(n, requests, statuses, result);
        }
        if (flag)
            *flag = 0;
        if (flag && looked)
            return MPI_SUCCESS;
        cpl_pt2pt_poll();
    }
}

/* The first managed request that is done; -1: none. *n_open: managed ones that are not. */
static int find_done(int n, const MPI_Request *requests, int *n_open)
{
    *n_open = 0;
    for (int k = 0; k < n && cpl_context.n_active_persistent > 0; k++) {
        struct cpl_persistent *p = active(requests[k]);
        if (p && is_done(p))
            return k;
        *n_open += p != NULL;
    }
    return -1;
}

int cpl_complete_any(int n, MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
    cpl_pt2pt_leave();
    for (bool looked = false;; looked = true) {
        int n_open, done = 0;
        int k = find_done(n, requests, &n_open);
        if (k >= 0) {
            *index = k;
            if (flag)
                *flag = 1;
            return settle(active(requests[k]), status);
        }
        struct cpl_failed *failed = cpl_failed_find(n, requests);
        int result = PMPI_Testany(n, requests, index, &done, status);
        result = cpl_failed_one(failed, done ? *index : MPI_UNDEFINED, result);
        bool nothing = done && *index == MPI_UNDEFINED && n_open > 0;
        if (result != MPI_SUCCESS || (done && !nothing)) {
            if (flag)
                *flag = done;
            return result;
        }
        if (flag)
            *flag = 0;
        if (flag && looked) {
            *index = MPI_UNDEFINED;
            return MPI_SUCCESS;
        }
        cpl_pt2pt_poll();
    }
}

/* Managed requests that are done, behind those that MPI has reported. */
static int add_done(int n, const MPI_Request *requests, int *n_done, int *indices,
                    MPI_Status *statuses, int result)
{
    int n_open;
    for (int k; (k = find_done(n, requests, &n_open)) >= 0; ++*n_done) {
        indices[*n_done] = k;
        int error = settle(active(requests[k]), status_at(statuses, *n_done));
        if (statuses != MPI_STATUSES_IGNORE)
            statuses[*n_done].MPI_ERROR = error;
        if (error != MPI_SUCCESS)
            result = MPI_ERR_IN_STATUS;
    }
    return result;
}

int cpl_complete_some(int n, MPI_Request *requests, int *n_done, int *indices, MPI_Status *statuses,
                      bool waits)
{
    cpl_pt2pt_leave();
    for (bool looked = false;; looked = true) {
        int n_open;
        bool managed = find_done(n, requests, &n_open) >= 0 || n_open > 0;
        struct cpl_failed *failed = cpl_failed_find(n, requests);
        int result = PMPI_Testsome(n, requests, n_done, indices, statuses);
        result = cpl_failed_some(failed, *n_done == MPI_UNDEFINED ? 0 : *n_done, indices, statuses,
                                 result);
        if (managed && *n_done == MPI_UNDEFINED)
            *n_done = 0;
        if (*n_done != MPI_UNDEFINED)
            result = add_done(n, requests, n_done, indices, statuses, result);
        if (result != MPI_SUCCESS || *n_done != 0 || (!waits && looked))
            return result;
        cpl_pt2pt_poll();
    }
}

void cpl_persistent_end(void)
{
    struct cpl_persistent *p, *next;
    HASH_ITER(hh, cpl_context.persistent, p, next)
    {
        HASH_DEL(cpl_context.persistent, p);
        free_persistent(p);
    }
}
