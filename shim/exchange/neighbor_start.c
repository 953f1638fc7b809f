/* Nonblocking neighborhood collectives: their calls (neighbor.h). What becomes of them is decided
 * in neighbor_serve.c; until then a rank notes what the agreement will need. */
#include "shim/carry/requests.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/meet/meeting.h"
#include "shim/state/context.h"
#include "shim/state/memory.h"

#include <stdlib.h>

/* The number that names the communicator, unless it has one: given by its first rank. */
static void name_communicator(struct cpl_comm_state *state)
{
    if (state->serve->named)
        return;
    state->serve->named = true;
    state->serve->id = (int64_t)cpl_context.rank << 32 | cpl_context.exchanges.n_serve_ids++;
    PMPI_Ibcast(&state->serve->id, 1, MPI_INT64_T, 0, state->comm, &state->serve->request);
}

/* A call begins: from the first one on, the pace of collectives is taken. */
static void count_started(void)
{
    if (cpl_context.exchanges.n_started++ == 0)
        cpl_meeting_end_grants();
}

/* Notes the messages: of neighborhood collectives, those of the first call of a kind, in which all
 * ranks start an exchange of tokens, at the same place in the communicator's sequence of
 * collectives; of MPI_Ialltoallv and _w, those of the latest one. */
static void note(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                 struct cpl_exchange *x)
{
    struct cpl_neighbor_notes **notes = &x->nonblocking.notes;
    name_communicator(state);
    int tries = 0; /* until then all ranks start an exchange of tokens, or none */
    while (!*notes && !(*notes = cpl_neighbor_notes_make(state, x)) && call->kind < CPL_ALLTOALLV)
        cpl_memory_wait(&tries, "the notes of a nonblocking call");
    if (*notes)
        cpl_neighbor_notes_fill(*notes, call, state, x);
}

/* A request that the program has not seen. */
static void give_back(struct cpl_request *request, int error)
{
    MPI_Request handle;
    if (!request)
        return;
    cpl_request_open_collective(request);
    cpl_request_close_collective(request, error);
    cpl_request_settle(request, &handle, MPI_STATUS_IGNORE);
}

/* Makes the request of an operation and starts it; op: NULL, there is no memory. Returns MPI's
 * result, after the error handler when it is an error. */
static int start_made(struct cpl_neighbor_op *op, MPI_Comm comm, struct cpl_exchange *x,
                      MPI_Request *request)
{
    struct cpl_request *handle = op ? cpl_request_make(comm, true) : NULL;
    int result = handle ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    x->nonblocking.n_planned += cpl_exchange_is_served(x);
    cpl_context.exchanges.n_carried += cpl_exchange_is_served(x);
    if (handle && op->carrying.way->begin)
        result = op->carrying.way->begin(op);
    if (result != MPI_SUCCESS) {
        give_back(handle, result);
        if (op)
            cpl_neighbor_op_free(op);
        PMPI_Comm_call_errhandler(comm, result);
        return result;
    }
    cpl_request_open_collective(handle);
    op->request = handle;
    *request = handle->handle;
    cpl_neighbor_op_start(op);
    return MPI_SUCCESS;
}

/* Starts a call that a way takes, or that is served. Returns false when it is MPI's, or MPI is to
 * refuse it. */
static bool start(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                  struct cpl_exchange *x, MPI_Request *request, int *result)
{
    bool refused;
    const struct cpl_way *way = cpl_ways_taking(state, x);
    if (!way && !cpl_exchange_is_served(x))
        return false;
    struct cpl_neighbor_op *op =
        cpl_neighbor_op_make(call, state, x, way ? way : x->plans.candidate[0].way, &refused);
    if (refused)
        return false;
    *result = start_made(op, call->comm, x, request);
    return true;
}

struct cpl_comm_state *cpl_neighbor_describe(struct cpl_neighbor_call *call)
{
    if (call->kind >= CPL_ALLTOALLV)
        return cpl_alltoall_describe(call);
    struct cpl_comm_state *state = cpl_comm_state_get(call->comm);
    return state && state->watched ? state : NULL;
}

bool cpl_neighbor_start(struct cpl_neighbor_call *call, MPI_Request *request, int *result)
{
    struct cpl_comm_state *state = cpl_neighbor_describe(call);
    if (!state)
        return false;
    struct cpl_exchange *x = cpl_exchange_of(state, call->kind);
    bool first = x->nonblocking.n++ == 0;
    count_started();
    if (cpl_neighbor_may_be_served(state) &&
        (call->kind < CPL_ALLTOALLV ? first : x->nonblocking.phase == CPL_STARTED_OPEN))
        note(call, state, x);
    return start(call, state, x, request, result);
}
