/* Tournament tree over loads (load_tree.h).
 *
 * The leaves are the ranks in order, so the left child of a node always holds the lower ranks and
 * a tie goes to the left. */
#include "planner/share/load_tree.h"

/* The winner of left, whose ranks are all lower, and right; -1 stands for nobody. */
static int32_t better(const struct cpl_load_tree *tree, int32_t left, int32_t right)
{
    if (right < 0)
        return left;
    int64_t a = tree->load[left];
    int64_t b = tree->load[right];
    return (tree->least ? b < a : b > a) ? right : left;
}

static int32_t play(const struct cpl_load_tree *tree, int32_t node)
{
    return better(tree, tree->winner[2 * node], tree->winner[2 * node + 1]);
}

enum cpl_status cpl_load_tree_init(struct cpl_load_tree *tree, struct cpl_arena *arena,
                                   const int64_t *load, int32_t n, bool least)
{
    int32_t n_leaves = 1;
    while (n_leaves < n)
        n_leaves *= 2;
    int32_t *winner = CPL_ARENA_ARRAY(arena, int32_t, 2 * (size_t)n_leaves);
    if (!winner)
        return CPL_ERR_NOMEM;
    *tree = (struct cpl_load_tree){
        .n = n, .n_leaves = n_leaves, .least = least, .load = load, .winner = winner};
    for (int32_t i = 0; i < n_leaves; i++)
        winner[n_leaves + i] = i < n ? i : -1;
    for (int32_t node = n_leaves - 1; node >= 1; node--)
        winner[node] = play(tree, node);
    return CPL_OK;
}

void cpl_load_tree_update(struct cpl_load_tree *tree, int32_t rank)
{
    for (int32_t node = (tree->n_leaves + rank) / 2; node >= 1; node /= 2) {
        int32_t winner = play(tree, node);
        /* Another rank won here before and wins again: nothing changes further up. */
        if (winner == tree->winner[node] && winner != rank)
            return;
        tree->winner[node] = winner;
    }
}
