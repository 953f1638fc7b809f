/* Persistent neighborhood collectives (neighbor.h). Making the request is collective and may wait
 * (MPI 4.0, 6.13), so it is planned at once, as an exchange of its own with tags of its own: the
 * requests of a communicator may be started in any order, by each rank in its own. It is carried
 * even where nothing is gained: MPICH's own (4.0.2) fail in MPI_Testall and do damage in
 * alltoallw. */
#include "shim/calls/pt2pt_persistent.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/pt2pt/pt2pt.h"
#include "shim/state/context.h"
#include "shim/wait/away.h"
#include "shim/wait/collective.h"

#include <stdlib.h>

#define FIRST_TAG 32768 /* above those of the other exchanges and of point-to-point messages */

static int largest_tag(void)
{
    int *bound, found;
    PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &found);
    return found ? *bound : FIRST_TAG;
}

static int first_tag(const struct cpl_comm_state *state)
{
    int most = (largest_tag() - FIRST_TAG) / CPL_NEIGHBOR_TAGS;
    return state->n_persistent < most ? FIRST_TAG + state->n_persistent * CPL_NEIGHBOR_TAGS : -1;
}

/* The exchange of a new request; NULL on all ranks when one cannot take part. Collective. */
static struct cpl_exchange *new_exchange(const struct cpl_neighbor_call *call,
                                         struct cpl_comm_state *state)
{
    const struct cpl_adjacency *a = &state->adjacency;
    struct cpl_exchange *x = calloc(1, sizeof *x);
    int tag = first_tag(state);
    bool able = x && tag >= 0 && state->has_adjacency && !cpl_context.waits_elsewhere &&
                !cpl_context.met_others;
    if (!cpl_agree_all(call->comm, able)) {
        free(x);
        return NULL;
    }
    *x = (struct cpl_exchange){.kind = call->kind, .first_tag = tag, .adjacency = a};
    x->mpi_distrusted = true; /* see above */
    return x;
}

/* The operation behind a new handle; NULL on all ranks when one has no memory. The handle is that
 * of a receive from a real rank, never started: when one from MPI_PROC_NULL is freed, MPICH's
 * (4.0.2) next persistent collective never completes. Collective. */
static struct cpl_neighbor_op *new_request(const struct cpl_neighbor_call *call,
                                           struct cpl_comm_state *state, struct cpl_exchange *x,
                                           MPI_Request *request)
{
    bool refused;
    MPI_Request handle = MPI_REQUEST_NULL;
    struct cpl_neighbor_op *op = cpl_neighbor_op_make(call, state, x, &refused);
    bool made = op && PMPI_Recv_init(NULL, 0, MPI_BYTE, state->rank, 0, state->private_comm,
                                     &handle) == MPI_SUCCESS;
    bool added = made && cpl_persistent_add_collective(handle, op);
    if (cpl_agree_all(state->private_comm, added)) {
        *request = handle;
        return op;
    }
    if (added)
        cpl_persistent_forget_collective(handle);
    if (made)
        PMPI_Request_free(&handle);
    if (op)
        cpl_neighbor_op_free(op);
    return NULL;
}

bool cpl_neighbor_init(struct cpl_neighbor_call *call, MPI_Request *request, int *result)
{
    struct cpl_comm_state *state = cpl_comm_state_get(call->comm);
    if (!state || !state->watched || state->size != cpl_context.size)
        return false;
    cpl_pt2pt_leave();
    struct cpl_exchange *x = new_exchange(call, state);
    if (!x)
        return false;
    cpl_neighbor_plan(call, state, x);
    if (cpl_context.settings.mode == CPL_MODE_PROFILE) {
        call->state = state;
        call->watched = x;
        return false;
    }
    if (x->phase != CPL_PHASE_PLANNED || !cpl_away_prepare(state->private_comm) ||
        !new_request(call, state, x, request)) {
        cpl_exchange_release(x);
        free(x);
        return false;
    }
    state->n_persistent++;
    state->n_left++;
    cpl_context.n_served += !state->serve.counted;
    state->serve.counted = true;
    cpl_context_update_service();
    *result = MPI_SUCCESS;
    return true;
}

void cpl_neighbor_init_passed(const struct cpl_neighbor_call *call, int result, MPI_Request request)
{
    struct cpl_exchange *x = call->watched;
    if (!x || (result == MPI_SUCCESS &&
               cpl_persistent_watch(request, x, call->state->rank, call->state->size)))
        return;
    cpl_exchange_release(x);
    free(x);
}

void cpl_neighbor_persistent_free(struct cpl_neighbor_op *op)
{
    struct cpl_exchange *x = op->ride.x;
    cpl_neighbor_drain(x);
    op->ride.state->n_left--;
    cpl_exchange_record(x, op->ride.state->rank, op->ride.state->size);
    cpl_neighbor_op_free(op);
    cpl_exchange_release(x);
    free(x);
}
