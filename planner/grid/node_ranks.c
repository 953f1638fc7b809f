/* The ranks of each node (node_ranks.h): a counting sort by node. */
#include "planner/grid/node_ranks.h"

/* The ranks of each node where nodes are blocks of as many consecutive ranks, the last one maybe of
 * fewer; else 0. */
static int32_t block_size(const struct cpl_machine *machine)
{
    int32_t size = machine->block;
    if (size > 0)
        return size;
    while (size < machine->n_ranks && machine->node[size] == 0)
        size++;
    for (int32_t i = 0; i < machine->n_ranks && size > 0; i++)
        if (machine->node[i] != i / size)
            return 0;
    return size;
}

enum cpl_status cpl_node_ranks_build(const struct cpl_machine *machine, struct cpl_arena *arena,
                                     struct cpl_node_ranks *nodes)
{
    int32_t size = block_size(machine);
    if (size > 0) {
        *nodes = (struct cpl_node_ranks){
            .machine = machine, .n_nodes = machine->n_nodes, .largest = size};
        return CPL_OK;
    }
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
