/* Opens where the ranks of each node assemble (wait/assembly.h) before anything is managed, if they
 * can share memory on all nodes; else they go on by MPI. */
#include "shim/meet/agree.h"
#include "shim/state/context.h"
#include "shim/state/hooks.h"
#include "shim/wait/assembly.h"
#include "shim/wait/collective.h"

/* On the ranks of one node. Returns whether it is open on this one. */
static bool assemble(MPI_Comm node, struct cpl_assembly *assembly)
{
    char why[CPL_SHARED_WHY] = "";
    int n;
    PMPI_Comm_size(node, &n);
    int64_t bytes = CPL_SHARED_HEAD + cpl_assembly_bytes(n);
    if (!cpl_agree_all(node, assembly))
        return false;
    unsigned char *memory = cpl_node_memory_open(node, bytes, why);
    cpl_assembly_use(assembly, memory, bytes);
    return memory;
}

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
    MPI_Comm node, all = cpl_context.comms.away;
    if (cpl_context.comms.assembly || !cpl_agree_all(all, can_assemble()) ||
        !cpl_agree_split_node(all, &node))
        return;
    MPI_Comm leaders = MPI_COMM_NULL;
    int rank;
    PMPI_Comm_rank(node, &rank);
    int result =
        cpl_collective_Comm_split(all, rank == 0 ? 0 : MPI_UNDEFINED, cpl_context.rank, &leaders);
    struct cpl_assembly *assembly = result == MPI_SUCCESS ? cpl_assembly_make(node, leaders) : NULL;
    bool open = assemble(node, assembly);
    if (cpl_agree_all(all, open)) {
        cpl_context.comms.assembly = assembly;
        return;
    }
    cpl_assembly_free(assembly);
    if (assembly)
        return;
    PMPI_Comm_free(&node);
    if (leaders != MPI_COMM_NULL)
        PMPI_Comm_free(&leaders);
}

const struct cpl_hooks cpl_node_hooks = {.name = "node", .prepare = prepare};
