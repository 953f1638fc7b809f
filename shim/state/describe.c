/* Arguments of a message (describe.h). */
#include "shim/state/describe.h"

#include "shim/state/comm_state.h"

/* Whether MPI accepts the arguments, without a message. SimGrid miscounts such requests; simulated
 * programs have no wrong arguments. */
#ifdef CPL_SIMULATED
#define is_refused(buffer, count, type, tag, receives) false
#else
static bool is_refused(const void *buffer, MPI_Count count, MPI_Datatype type, int tag,
                       bool receives)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int result = receives ? PMPI_Irecv_c((void *)(uintptr_t)buffer, count, type, MPI_PROC_NULL, tag,
                                         cpl_context.comms.self, &request)
                          : PMPI_Isend_c(buffer, count, type, MPI_PROC_NULL, tag,
                                         cpl_context.comms.self, &request);
    if (result == MPI_SUCCESS)
        PMPI_Wait(&request, MPI_STATUS_IGNORE);
    return result != MPI_SUCCESS;
}
#endif

bool cpl_describe_with_care(const void *buffer, MPI_Count count, MPI_Datatype type, int tag,
                            bool receives, struct cpl_span *span)
{
    bool plain_tag = (tag >= 0 && tag <= cpl_context.tag_ub) || (receives && tag == MPI_ANY_TAG);
    if (!(cpl_type_named(type) && plain_tag && buffer && count >= 0) &&
        is_refused(buffer, count, type, tag, receives))
        return false;
    span->address = (char *)(uintptr_t)buffer;
    span->count = count;
    return cpl_type_describe(type, &span->type);
}

bool cpl_is_peer(MPI_Comm comm, int peer, bool receives)
{
    const struct cpl_comm_state *state = cpl_comm_state_get(comm);
    return state && !state->inter &&
           (peer == MPI_PROC_NULL || cpl_is_rank(peer, state->size, receives));
}
