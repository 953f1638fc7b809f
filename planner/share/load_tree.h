/* The most (or least) loaded of n ranks, ties broken by the lower rank: a tournament tree over the
 * ranks.
 *
 * A bucket queue finds a most loaded rank in O(1), but not the lowest of equals, which the planner
 * needs so that the same pattern gives the same plan; here a change of a load costs O(log n) and
 * the winner O(1). */
#ifndef CARPOOL_LOAD_TREE_H
#define CARPOOL_LOAD_TREE_H

#include "planner/arena.h"
#include "planner/status.h"

#include <stdbool.h>
#include <stdint.h>

struct cpl_load_tree {
    int32_t n;
    int32_t n_leaves; /* power of two >= n */
    bool least;       /* winner is the least loaded instead of the most loaded */
    const int64_t *load;
    int32_t *winner; /* 2 * n_leaves entries, node 1 is the root; -1 where there is no rank */
};

/* A tree over load[0 .. n-1], which the caller owns and keeps alive. Memory from the arena. Returns
 * CPL_OK or CPL_ERR_NOMEM. */
enum cpl_status cpl_load_tree_init(struct cpl_load_tree *tree, struct cpl_arena *arena,
                                   const int64_t *load, int32_t n, bool least);

/* To be called after load[rank] changed. */
void cpl_load_tree_update(struct cpl_load_tree *tree, int32_t rank);

/* The winning rank. */
static inline int32_t cpl_load_tree_top(const struct cpl_load_tree *tree)
{
    return tree->winner[1];
}

#endif
