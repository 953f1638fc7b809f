/* The ranks of each node (node_ranks.h): a counting sort by node. */
#include "planner/strategies/node_ranks.h"

enum cpl_status cpl_node_ranks_build(const struct cpl_machine *machine, struct cpl_arena *arena,
                                     struct cpl_node_ranks *nodes)
{
    struct cpl_node_ranks built = {.machine = machine,
                                   .n_nodes = machine->n_nodes,
                                   .first = CPL_ARENA_ARRAY(arena, int32_t, machine->n_nodes + 1),
                                   .rank = CPL_ARENA_ARRAY(arena, int32_t, machine->n_ranks),
                                   .local = CPL_ARENA_ARRAY(arena, int32_t, machine->n_ranks)};
    if (!built.first || !built.rank || !built.local)
        return CPL_ERR_NOMEM;
    for (int32_t i = 0; i < machine->n_ranks; i++)
        built.local[i] = built.first[machine->node[i] + 1]++;
    for (int32_t k = 0; k < built.n_nodes; k++) {
        if (built.first[k + 1] > built.largest)
            built.largest = built.first[k + 1];
        built.first[k + 1] += built.first[k];
    }
    for (int32_t i = 0; i < machine->n_ranks; i++)
        built.rank[built.first[machine->node[i]] + built.local[i]] = i;
    *nodes = built;
    return CPL_OK;
}
