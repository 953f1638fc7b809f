/* Reductions that may carry messages (reductions.h). */
#include "shim/calls/reductions.h"

#include "shim/carry/embed.h"
#include "shim/carry/embed_memory.h"
#include "shim/carry/line.h"
#include "shim/pt2pt/pt2pt.h"
#include "shim/state/comm_state.h"
#include "shim/wait/collective.h"

/* Carries a reduction out in memory that all ranks share, if it is small and the communicator's
 * ranks have settled something before. It has to poll, which MPI does worse: behind a barrier that
 * polls. */
static bool reduce_in_memory(MPI_Comm comm, const void *send, void *recv, int64_t count,
                             MPI_Datatype type, MPI_Op op, int *result)
{
    struct cpl_comm_state *state = cpl_collective_polls(comm) ? cpl_comm_state_get(comm) : NULL;
    if (!state || state->private_comm == MPI_COMM_NULL || !cpl_embed_in_memory(state))
        return false;
    cpl_comm_state_own(state);
    struct cpl_embed_kind *kind =
        state->line->embed.on ? NULL : cpl_embed_takes(state, send, recv, count, type, op, true);
    if (!kind)
        return false;
    cpl_pt2pt_arrive();
    *result = cpl_embed_allreduce(state, kind, send, recv);
    return true;
}

bool cpl_reduction_carry(MPI_Comm comm, const void *send, void *recv, int64_t count,
                         MPI_Datatype type, MPI_Op op, int *result)
{
    return cpl_pt2pt_allreduce(comm, send, recv, count, type, op, result) ||
           reduce_in_memory(comm, send, recv, count, type, op, result);
}

bool cpl_reduction_start(MPI_Comm comm, const void *send, void *recv, int64_t count,
                         MPI_Datatype type, MPI_Op op, MPI_Request *request, int *result)
{
    return cpl_pt2pt_iallreduce(comm, send, recv, count, type, op, request, result);
}
