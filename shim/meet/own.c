/* A communicator's private one, and who of its ranks takes part (agree.h). */
#include "shim/meet/agree.h"

#include "shim/state/comm_state.h"
#include "shim/state/graph.h"
#include "shim/state/memory.h"
#include "shim/wait/away.h"
#include "shim/wait/collective.h"

#include <stdlib.h>

#define OWN_TAG 0 /* of no message of the program's: MPI has them in another context */

/* MPI_COMM_NULL: MPI has none to give, on no rank. */
static MPI_Comm try_own(const struct cpl_comm_state *state)
{
    MPI_Comm made;
#ifdef CPL_SIMULATED
    int result = PMPI_Comm_split(state->comm, 0, state->rank, &made);
#else
    MPI_Group group = cpl_comm_state_group(state);
    cpl_away_group(group);
    CPL_OUTSIDE;
    int result = PMPI_Comm_create_group(state->comm, group, OWN_TAG, &made);
    PMPI_Group_free(&group);
#endif
    return result == MPI_SUCCESS ? made : MPI_COMM_NULL;
}

MPI_Comm cpl_agree_own(struct cpl_comm_state *state)
{
    MPI_Errhandler handler;
    if (state->private_comm != MPI_COMM_NULL || state->planned_number < 0)
        return state->private_comm;
    PMPI_Comm_get_errhandler(state->comm, &handler);
    PMPI_Comm_set_errhandler(state->comm, MPI_ERRORS_RETURN);
    MPI_Comm made = try_own(state);
    PMPI_Comm_set_errhandler(state->comm, handler);
    PMPI_Errhandler_free(&handler);
    if (made != MPI_COMM_NULL) {
        PMPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
        if (!cpl_agree_all(made, cpl_context.comms.n_planned < CPL_MAX_PLANNED &&
                                     cpl_context.comms.n_states < CPL_MANY_STATES))
            PMPI_Comm_free(&made);
    }
    cpl_comm_state_keep_own(state, made);
    return made;
}

void cpl_agree_graph(MPI_Comm made)
{
    int topology = MPI_UNDEFINED, n = 0;
    PMPI_Topo_test(made, &topology);
    if (topology != MPI_DIST_GRAPH && topology != MPI_GRAPH) /* in a grid all have some */
        return;
    PMPI_Comm_size(made, &n);
    unsigned char *has = cpl_memory_need((size_t)n, "a graph's ranks");
    unsigned char mine = cpl_graph_has_neighbors(made);
    if (cpl_collective_Allgather(&mine, 1, MPI_BYTE, has, 1, MPI_BYTE, made) == MPI_SUCCESS)
        cpl_graph_keep(made, has, n);
    free(has);
}
