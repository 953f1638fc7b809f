/* Persistent neighborhood collectives, MPI_Alltoallv_init, MPI_Alltoallw_init (neighbor.h) and
 * allgathers (allgather.h).
 * Making the request is collective and may wait (MPI 4.0, 6.13), so it is planned at once, as an
 * exchange of its own with tags of its own: the requests of a communicator may be started in any
 * order, by each rank in its own. It is carried even where that gains nothing: MPICH's own requests
 * (4.0.2) fail in MPI_Testall, and its alltoallw damages memory where a rank's in- and out-degree
 * differ. */
#include "shim/carry/requests.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/meet/agree.h"
#include "shim/state/context.h"
#include "shim/wait/progress.h"

#include <stdlib.h>

#define FIRST_TAG 32768 /* above the tags of other exchanges and of point-to-point messages */

static int first_tag(const struct cpl_comm_state *state)
{
    int most = (cpl_context.tag_ub - FIRST_TAG) / CPL_NEIGHBOR_TAGS;
    return state->persistent.n < most ? FIRST_TAG + state->persistent.n * CPL_NEIGHBOR_TAGS : -1;
}

/* Makes the exchange of a new request; NULL on all ranks when one cannot take part. Collective. */
static struct cpl_exchange *new_exchange(const struct cpl_neighbor_call *call,
                                         struct cpl_comm_state *state, bool able)
{
    struct cpl_exchange *x = calloc(1, sizeof *x);
    int tag = first_tag(state);
    able = able && x && tag >= 0 && (state->watched || call->kind >= CPL_ALLTOALLV) &&
           cpl_context.n_epochs == 0 && !cpl_context.met_others && !cpl_context.service.barred;
    if (!cpl_agree_all(state->private_comm, able)) {
        free(x);
        return NULL;
    }
    *x = (struct cpl_exchange){.kind = call->kind,
                               .first_tag = tag,
                               .adjacency = call->kind < CPL_ALLTOALLV ? &state->adjacency
                                                                       : &x->learned.own};
    x->mpi_distrusted = true; /* see above */
    return x;
}

/* A request: one that is carried, or one that stays MPI's and whose starts are counted. */
struct collective {
    struct cpl_persistent persistent; /* the first member */
    struct cpl_neighbor_op *op;       /* of one that is carried; NULL: it has gone */
    struct cpl_exchange *exchange;    /* of one that is counted */
    int rank, n_ranks;                /* of its communicator */
};

static struct collective *collective_of(struct cpl_persistent *p)
{
    return (struct collective *)(void *)p;
}

static int start_carried(struct cpl_persistent *p, MPI_Request *handle)
{
    struct cpl_neighbor_op *op = collective_of(p)->op;
    (void)handle;
    cpl_request_activate(&p->request, op->carrying.state->comm, true);
    cpl_request_open_collective(&p->request);
    op->carrying.x->nonblocking.n++;
    op->carrying.x->nonblocking.n_planned++;
    cpl_neighbor_op_start(op);
    return MPI_SUCCESS;
}

/* Waits until it is complete. */
static void free_carried(struct cpl_persistent *p)
{
    struct cpl_neighbor_op *op = collective_of(p)->op;
    if (!op) {
        free(p);
        return;
    }
    struct cpl_exchange *x = op->carrying.x;
    cpl_neighbor_drain(x);
    free(p); /* the operation marked the request as complete */
    op->carrying.state->persistent.n_left--;
    cpl_exchange_record(x, MPI_COMM_NULL, op->carrying.state->rank, op->carrying.state->size);
    cpl_neighbor_op_free(op);
    cpl_exchange_release(x);
    free(x);
}

static int start_watched(struct cpl_persistent *p, MPI_Request *handle)
{
    collective_of(p)->exchange->nonblocking.n++;
    return PMPI_Start(handle);
}

static void free_watched(struct cpl_persistent *p)
{
    const struct collective *w = collective_of(p);
    cpl_exchange_record(w->exchange, MPI_COMM_NULL, w->rank, w->n_ranks);
    cpl_exchange_release(w->exchange);
    free(w->exchange);
    free(p);
}

static const struct cpl_persistent_kind carried = {
    .start = start_carried, .free = free_carried, .is_waited_for = true};
static const struct cpl_persistent_kind watched = {.start = start_watched, .free = free_watched};

/* Makes a request known by its handle; NULL when memory ran out. */
static struct collective *add(MPI_Request handle, const struct cpl_persistent_kind *kind)
{
    struct collective *p = calloc(1, sizeof *p);
    if (p && cpl_persistent_add(&p->persistent, kind, handle))
        return p;
    free(p);
    return NULL;
}

/* Makes an operation and its handle; NULL on all ranks when one has no memory. The handle is that
 * of a receive from a real rank, which is never started: after a receive from MPI_PROC_NULL is
 * freed, MPICH's (4.0.2) next persistent collective never completes. Collective. */
static struct cpl_neighbor_op *new_request(const struct cpl_neighbor_call *call,
                                           struct cpl_comm_state *state, struct cpl_exchange *x,
                                           MPI_Request *request)
{
    bool refused;
    MPI_Request handle = MPI_REQUEST_NULL;
    struct cpl_neighbor_op *op = cpl_neighbor_op_make(call, state, x, &refused);
    bool made = op && PMPI_Recv_init(NULL, 0, MPI_BYTE, state->rank, 0, state->private_comm,
                                     &handle) == MPI_SUCCESS;
    struct collective *added = made ? add(handle, &carried) : NULL;
    if (added) {
        added->op = op;
        op->request = &added->persistent.request;
    }
    if (cpl_agree_all(state->private_comm, added)) {
        *request = handle;
        return op;
    }
    if (added) {
        added->op = NULL;
        cpl_persistent_forget(&added->persistent);
    }
    if (made)
        PMPI_Request_free(&handle);
    if (op)
        cpl_neighbor_op_free(op);
    return NULL;
}

/* Plans the request. Returns whether it is carried; else its starts are counted, or it is forgotten
 * (*x is NULL then). Collective, the same result on all ranks. */
static bool plan_alone(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                       struct cpl_exchange **x, MPI_Request *request)
{
    cpl_neighbor_plan(call, state, *x);
    if ((*x)->phase != CPL_PHASE_PLANNED)
        return false;
    if (cpl_agree_service(state->private_comm) && new_request(call, state, *x, request))
        return true;
    cpl_exchange_release(*x);
    free(*x);
    *x = NULL;
    return false;
}

/* The same, unless other threads are in calls: then its starts are counted. */
static bool plan(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                 struct cpl_exchange **x, MPI_Request *request)
{
    if (!cpl_exclusive_take(state->private_comm)) {
        (*x)->phase = CPL_PHASE_DIRECT;
        (*x)->learned.left = CPL_LEFT_THREADS;
        return false;
    }
    bool planned = plan_alone(call, state, x, request);
    cpl_exclusive_leave();
    return planned;
}

/* Whether it is too early to plan. The ranks ask when the 1st, 4th, 16th ... request of the
 * communicator is made: a program may make and free many. Collective; the same result on all ranks.
 */
static bool is_early(const struct cpl_neighbor_call *call, struct cpl_comm_state *state)
{
    struct cpl_plan_turn turn = {.search = CPL_SEARCH_FULL};
    const struct cpl_agree_input input = {
        .sparingly = true,
        .n_messages = call->kind < CPL_ALLTOALLV ? state->adjacency.out.n_messages : state->size,
        .turn = &turn};
    const int64_t n = ++state->persistent.n_asked;
    if (cpl_context.settings.mode == CPL_MODE_FORCE || cpl_context.settings.learn > 0)
        return cpl_agree_own(state) == MPI_COMM_NULL;
    if (n < state->persistent.next || cpl_agree_own(state) == MPI_COMM_NULL)
        return true;
    state->persistent.next = 4 * n;
    if (cpl_plan_is_early(state->private_comm, &input,
                          (PMPI_Wtime() - cpl_context.account.start) * 1e3, n, true))
        return true;
    state->persistent.next = n + 1; /* there may be money for the next one, too */
    return false;
}

bool cpl_neighbor_init(struct cpl_neighbor_call *call, MPI_Request *request, int *result)
{
    struct cpl_comm_state *state = cpl_neighbor_describe(call);
    if (!state || (state->size != cpl_context.size &&
                   !(cpl_context.busy.parts && cpl_neighbor_may_be_served(state))))
        return false;
    cpl_comm_state_own(state);
    if (is_early(call, state))
        return false;
    cpl_progress_leave();
    struct cpl_exchange *x = new_exchange(call, state, request);
    if (!x)
        return false;
    if (!plan(call, state, &x, request)) {
        call->state = state;
        call->watched = x;
        return false;
    }
    state->persistent.n++;
    state->persistent.n_left++;
    cpl_neighbor_count_served(state, true);
    *result = MPI_SUCCESS;
    return true;
}

void cpl_neighbor_init_passed(const struct cpl_neighbor_call *call, int result,
                              const MPI_Request *request)
{
    struct cpl_exchange *x = call->watched;
    struct collective *w = x && result == MPI_SUCCESS ? add(*request, &watched) : NULL;
    if (w) {
        w->exchange = x;
        w->rank = call->state->rank;
        w->n_ranks = call->state->size;
    } else if (x) {
        cpl_exchange_release(x);
        free(x);
    }
}
