/* Memory of a node (agree.h). */
#include "shim/meet/agree.h"

#include "shim/wait/collective.h"

#include <stdio.h>

unsigned char *cpl_node_memory_open(MPI_Comm node, int64_t bytes, char why[CPL_SHARED_WHY])
{
    struct cpl_shared_name name = {.name = ""};
    unsigned char *memory = NULL;
    int rank;
    PMPI_Comm_rank(node, &rank);
    if (rank == 0)
        memory = cpl_shared_make(bytes, &name, why);
    if (cpl_collective_Bcast(&name, sizeof name, MPI_BYTE, 0, node) != MPI_SUCCESS)
        snprintf(why, CPL_SHARED_WHY, "MPI failed");
    else if (rank > 0 && name.name[0])
        memory = cpl_shared_attach(&name, why);
    bool all = cpl_agree_all(node, memory && !why[0]);
    if (rank == 0 && name.name[0])
        cpl_shared_unname(&name);
    if (all || !memory)
        return all ? memory : NULL;
    cpl_shared_free(memory, bytes);
    return NULL;
}
