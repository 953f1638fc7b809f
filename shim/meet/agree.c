/* What all ranks settle together (agree.h). */
#include "shim/meet/agree.h"
#include "shim/wait/progress.h"

#include "planner/machine/memory_domain.h"
#include "shim/state/context.h"
#include "shim/state/hooks.h"
#include "shim/wait/assembly.h"
#include "shim/wait/collective.h"

#include <limits.h>

bool cpl_agree_all(MPI_Comm comm, bool yes)
{
    int mine = yes, all = 0;
    return cpl_collective_settle(&mine, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all;
}

int64_t cpl_agree_ns(double seconds)
{
    const double most = 1e15; /* eleven days, and a sum over many ranks fits */
    double ns = seconds * 1e9;
    return (int64_t)(ns > most ? most : ns > -most ? ns : 0);
}

/* A communicator was made of comm with this result: keeps it if all ranks have theirs, whose errors
 * return then. The same result on all ranks. Collective. */
static bool keep_made(MPI_Comm comm, int result, MPI_Comm *made)
{
    bool all = cpl_agree_all(comm, result == MPI_SUCCESS);
    if (all)
        PMPI_Comm_set_errhandler(*made, MPI_ERRORS_RETURN);
    else if (result == MPI_SUCCESS)
        PMPI_Comm_free(made);
    if (!all)
        *made = MPI_COMM_NULL;
    return all;
}

bool cpl_agree_split(MPI_Comm comm, int key, MPI_Comm *made)
{
    MPI_Errhandler handler;
    /* Communicators may run out: that is ours to know, not the program's error handler's. */
    PMPI_Comm_get_errhandler(comm, &handler);
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    bool all = keep_made(comm, cpl_collective_Comm_split(comm, 0, key, made), made);
    PMPI_Comm_set_errhandler(comm, handler);
    PMPI_Errhandler_free(&handler);
    return all;
}

/* The number of this rank's node: what the user has set, or was found out over all ranks before;
 * else MPI's word, and what is found out here (planner/machine/memory_domain.h). False on all ranks
 * when MPI fails on one. Collective. */
static bool find_node(MPI_Comm comm, int *number)
{
    const int64_t set = cpl_context.settings.ranks_per_node;
    const bool of_world = cpl_collective_of_this_world(comm);
    int64_t *known = &cpl_context.machine.node;
    MPI_Comm node;
    int n = 0, most = 0, first, size;
    *number = (int)(set > 0 ? cpl_context.rank / set : *known - 1);
    if (set > 0 || (of_world && *known > 0))
        return true;
    PMPI_Comm_rank(comm, &first);
    int result =
        cpl_collective_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, first, MPI_INFO_NULL, &node);
    if (!keep_made(comm, result, &node))
        return false;
    PMPI_Comm_size(node, &n);
    cpl_collective_Bcast(&first, 1, MPI_INT, 0, node);
    PMPI_Comm_free(&node);
    result = cpl_collective_Allreduce(&n, &most, 1, MPI_INT, MPI_MAX, comm);
    if (!cpl_agree_all(comm, result == MPI_SUCCESS))
        return false;
    *number = (int)(cpl_memory_node(first, most > 1) & INT_MAX);
    PMPI_Comm_size(comm, &size);
    if (of_world && size == cpl_context.size)
        *known = (int64_t)*number + 1;
    return true;
}

bool cpl_agree_split_node(MPI_Comm comm, MPI_Comm *node)
{
    int rank, number;
    if (!find_node(comm, &number))
        return false;
    PMPI_Comm_rank(comm, &rank);
    return keep_made(comm, cpl_collective_Comm_split(comm, number, rank, node), node);
}

struct cpl_seat cpl_agree_seat(MPI_Comm comm)
{
    int rank, number;
    PMPI_Comm_rank(comm, &rank);
    return (struct cpl_seat){.node = find_node(comm, &number) ? number : rank,
                             .world_rank = cpl_context.rank};
}

bool cpl_agree_world(MPI_Comm over)
{
    MPI_Comm *away = &cpl_context.comms.away;
    return *away != MPI_COMM_NULL || cpl_agree_split(over, cpl_context.rank, away);
}

bool cpl_agree_service(MPI_Comm over)
{
    bool ready =
        cpl_agree_all(over, cpl_service_prepare(cpl_progress_serve)) && cpl_agree_world(over);
    if (!ready || cpl_context.busy.n_managed + cpl_context.busy.n_served > 0)
        return ready;
    CPL_CALL_HOOKS(prepare, ());
    cpl_assembly_gather(over); /* no rank goes on before all are ready */
    return true;
}
