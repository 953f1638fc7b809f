/* Persistent neighborhood collectives, MPI_Alltoallv_init and MPI_Alltoallw_init (neighbor.h).
 * Making the request is collective and may wait (MPI 4.0, 6.13), so it is planned at once, as an
 * exchange of its own with tags of its own: the requests of a communicator may be started in any
 * order, by each rank in its own. It is carried even where that gains nothing: MPICH's own requests
 * (4.0.2) fail in MPI_Testall, and its alltoallw damages memory where a rank's in- and out-degree
 * differ. */
#include "shim/carry/requests.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/meet/agree.h"
#include "shim/state/context.h"
#include "shim/state/memory.h"
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
    int tag = first_tag(state);
    able = able && tag >= 0 && (state->watched || call->kind >= CPL_ALLTOALLV) &&
           cpl_context.n_epochs == 0 && !cpl_context.met_others && !cpl_context.service.barred;
    if (!cpl_agree_all(state->private_comm, able))
        return NULL;
    struct cpl_exchange *x = cpl_memory_need(sizeof *x, "a persistent collective");
    *x = (struct cpl_exchange){.kind = call->kind,
                               .first_tag = tag,
                               .adjacency = &state->adjacency,
                               .mpi_distrusted = true}; /* see above */
    return x;
}

/* A request: one that is carried, or one that stays MPI's and whose starts are counted. */
struct collective {
    struct cpl_persistent persistent; /* the first member */
    struct cpl_neighbor_op *op;       /* NULL: it is MPI's */
    struct cpl_exchange *exchange;
    int rank, n_ranks; /* of its communicator */
};

static void release(struct cpl_exchange *x)
{
    cpl_exchange_release(x);
    free(x);
}

static int start(struct cpl_persistent *p, MPI_Request *handle)
{
    const struct collective *c = (struct collective *)(void *)p;
    c->exchange->nonblocking.n++;
    if (!c->op)
        return PMPI_Start(handle);
    cpl_request_activate(&p->request, c->op->carrying.state->comm, true);
    cpl_request_open_collective(&p->request);
    c->exchange->nonblocking.n_planned++;
    cpl_neighbor_op_start(c->op);
    return MPI_SUCCESS;
}

/* Waits until it is complete. */
static void forget(struct cpl_persistent *p)
{
    struct collective *c = (struct collective *)(void *)p;
    struct cpl_exchange *x = c->exchange;
    cpl_neighbor_drain(x);
    cpl_exchange_record(x, MPI_COMM_NULL, c->rank, c->n_ranks);
    if (c->op) {
        c->op->carrying.state->persistent.n_left--;
        cpl_neighbor_op_free(c->op);
    }
    release(x);
    free(c);
}

/* Only what is carried is ever active. */
static const struct cpl_persistent_kind kind = {
    .start = start, .free = forget, .is_waited_for = true};

/* A request, by its handle, of an operation or (NULL) MPI's. */
static void add(struct collective *c, MPI_Request handle, const struct cpl_comm_state *state,
                struct cpl_exchange *x, struct cpl_neighbor_op *op)
{
    cpl_persistent_add(&c->persistent, &kind, handle);
    c->op = op;
    c->exchange = x;
    c->rank = state->rank;
    c->n_ranks = state->size;
    if (op)
        op->request = &c->persistent.request;
}

/* Makes an operation and its handle; false on all ranks when one cannot. The handle is that
 * of a receive from a real rank, which is never started: after a receive from MPI_PROC_NULL is
 * freed, MPICH's (4.0.2) next persistent collective never completes. Collective. */
static bool new_request(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                        struct cpl_exchange *x, MPI_Request *request)
{
    struct cpl_neighbor_op *op = cpl_neighbor_op_make(call, state, x);
    bool made = op && PMPI_Recv_init(NULL, 0, MPI_BYTE, state->rank, 0, state->private_comm,
                                     request) == MPI_SUCCESS;
    if (cpl_agree_all(state->private_comm, made)) {
        add(cpl_memory_need(sizeof(struct collective), "a persistent request"), *request, state, x,
            op);
        return true;
    }
    if (made)
        PMPI_Request_free(request);
    if (op)
        cpl_neighbor_op_free(op);
    return false;
}

/* Plans the request, unless other threads are in calls. Returns whether it is carried; else its
 * starts are counted. Collective, the same result on all ranks. */
static bool plan(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                 struct cpl_exchange *x, MPI_Request *request)
{
    bool carried = false;
    if (cpl_exclusive_take(state->private_comm)) {
        cpl_neighbor_plan(call, state, x);
        carried = x->phase == CPL_PHASE_PLANNED && cpl_agree_service(state->private_comm) &&
                  new_request(call, state, x, request);
        cpl_exclusive_leave();
    } else {
        x->learned.left = CPL_LEFT_THREADS;
    }
    if (!carried && x->phase == CPL_PHASE_PLANNED)
        x->learned.left = CPL_LEFT_UNABLE;
    if (!carried)
        x->phase = CPL_PHASE_DIRECT;
    return carried;
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

bool cpl_neighbor_init(struct cpl_neighbor_call *call, MPI_Request *request)
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
    if (!plan(call, state, x, request)) {
        call->state = state;
        call->watched = x;
        return false;
    }
    state->persistent.n++;
    state->persistent.n_left++;
    cpl_neighbor_count_served(state, true);
    return true;
}

void cpl_neighbor_init_passed(const struct cpl_neighbor_call *call, int result,
                              const MPI_Request *request)
{
    struct collective *counted =
        call->watched && result == MPI_SUCCESS ? calloc(1, sizeof *counted) : NULL;
    if (counted)
        add(counted, *request, call->state, call->watched, NULL);
    else if (call->watched) /* its starts are not in the report */
        release(call->watched);
}
