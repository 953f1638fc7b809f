/* The ranks of each node, and the place of a rank among them. Nodes may have different numbers of
 * ranks, and these need not be consecutive. Where they are, and all nodes but the last have the
 * same number, there are no arrays: ranks that plan together keep dozens of these.
 *
 * Built once for a machine, in an arena of the caller's; then only read. Time O(ranks). */
#ifndef CARPOOL_NODE_RANKS_H
#define CARPOOL_NODE_RANKS_H

#include "planner/arena.h"
#include "planner/machine.h"
#include "planner/status.h"

#include <stdint.h>

struct cpl_node_ranks {
    const struct cpl_machine *machine;
    int32_t n_nodes;
    int32_t largest; /* ranks of the largest node */
    /* NULL where rank i is on node i / largest: */
    int32_t *first; /* n_nodes + 1 entries, into rank */
    int32_t *rank;  /* n_ranks entries: node by node, ascending inside a node */
    int32_t *local; /* n_ranks entries: how many ranks of its node come before a rank */
};

/* Returns CPL_OK, CPL_ERR_NOMEM. The arrays belong to the arena, the machine stays the caller's. */
enum cpl_status cpl_node_ranks_build(const struct cpl_machine *machine, struct cpl_arena *arena,
                                     struct cpl_node_ranks *nodes);

/* Number of ranks of a node, at least one. */
static inline int32_t cpl_node_size(const struct cpl_node_ranks *nodes, int32_t node)
{
    if (nodes->first)
        return nodes->first[node + 1] - nodes->first[node];
    return node < nodes->n_nodes - 1 ? nodes->largest
                                     : nodes->machine->n_ranks - node * nodes->largest;
}

/* How many ranks of its node come before a rank. */
static inline int32_t cpl_node_local(const struct cpl_node_ranks *nodes, int32_t rank)
{
    return nodes->local ? nodes->local[rank] : rank % nodes->largest;
}

/* The rank with the given place inside a node, modulo the node's size. */
static inline int32_t cpl_node_rank_at(const struct cpl_node_ranks *nodes, int32_t node,
                                       int64_t local)
{
    int32_t place = (int32_t)(local % cpl_node_size(nodes, node));
    return nodes->rank ? nodes->rank[nodes->first[node] + place] : node * nodes->largest + place;
}

#endif
