/* Reductions that may carry messages (reductions.h). */
#include "shim/calls/reductions.h"

#include "shim/carry/embed_kind.h"
#include "shim/exchange/neighbor_embed.h"
#include "shim/pt2pt/pt2pt.h"
#include "shim/state/comm_state.h"

/* Tells open neighborhood collectives which reduction comes next. */
static void note(MPI_Comm comm, int64_t count, MPI_Datatype type, MPI_Op op, bool blocking)
{
    struct cpl_comm_state *state = cpl_comm_state_get(comm);
    if (state && cpl_context.busy.first_open)
        cpl_neighbor_embed_note(state, cpl_embed_judge(count, type, op, blocking));
}

bool cpl_reduction_carry(MPI_Comm comm, const void *send, void *recv, int64_t count,
                         MPI_Datatype type, MPI_Op op, int *result)
{
    note(comm, count, type, op, true);
    return cpl_pt2pt_allreduce(comm, send, recv, count, type, op, result);
}

bool cpl_reduction_start(MPI_Comm comm, const void *send, void *recv, int64_t count,
                         MPI_Datatype type, MPI_Op op, MPI_Request *request, int *result)
{
    note(comm, count, type, op, false);
    return cpl_pt2pt_iallreduce(comm, send, recv, count, type, op, request, result);
}
