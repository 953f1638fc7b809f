/* Opens where the ranks of each node assemble (wait/assembly.h) before anything is managed, if they
 * can share memory on all nodes; else they go on by MPI. */
#include "shim/meet/agree.h"
#include "shim/state/context.h"
#include "shim/state/hooks.h"
#include "shim/wait/assembly.h"
#include "shim/wait/collective.h"

/* Simulated ranks have no memory in common that costs what a node's does. Threads could enter
 * barriers that two ranks have in common in different orders. */
static bool can_assemble(void)
{
#ifdef CPL_SIMULATED
    return false;
#else
    return cpl_context.settings.lanes && !cpl_context.service.shared;
#endif
}

static void prepare(void)
{
    MPI_Comm node, leaders = MPI_COMM_NULL, all = cpl_context.comms.away;
    char why[CPL_SHARED_WHY] = "";
    int rank, n;
    if (cpl_context.comms.assembly || !cpl_agree_all(all, can_assemble()) ||
        !cpl_agree_split_node(all, &node))
        return;
    PMPI_Comm_rank(node, &rank);
    PMPI_Comm_size(node, &n);
    int result =
        cpl_collective_Comm_split(all, rank == 0 ? 0 : MPI_UNDEFINED, cpl_context.rank, &leaders);
    int64_t bytes = CPL_SHARED_HEAD + cpl_assembly_bytes(n);
    unsigned char *memory = cpl_node_memory_open(node, bytes, why);
    struct cpl_assembly *assembly = cpl_assembly_make(node, leaders, memory, bytes);
    if (cpl_agree_all(all, assembly && memory && result == MPI_SUCCESS))
        cpl_context.comms.assembly = assembly;
    else
        cpl_assembly_free(assembly);
}

const struct cpl_hooks cpl_node_hooks = {.name = "node", .prepare = prepare};
