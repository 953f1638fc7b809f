/* Folding by a B-tree (fold.h). Full nodes are split on the way down, so an insertion never goes
 * up again. Elements are numbered as they are inserted and renumbered in order at the end. */
#include "fold.h"
#include "work.h"

#include <stdlib.h>
#include <string.h>

enum { HALF = 16, MOST = 2 * HALF - 1 }; /* least and most keys of a node are HALF - 1 and MOST */

struct node {
    int32_t n_keys, is_leaf;
    int64_t key[MOST];
    int32_t element[MOST];
    int32_t child[MOST + 1];
};

struct tree {
    struct node *node;
    int32_t n_nodes, room, root;
};

/* Makes room for `more` nodes: a split adds one, a new root another. */
static bool reserve(struct tree *tree, int32_t more)
{
    if (tree->n_nodes + more <= tree->room)
        return true;
    int32_t room = 2 * tree->room + 16;
    struct node *node = realloc(tree->node, (size_t)room * sizeof *node);
    if (!node)
        return false;
    tree->node = node;
    tree->room = room;
    return true;
}

static int32_t add_node(struct tree *tree, int32_t is_leaf)
{
    tree->node[tree->n_nodes].n_keys = 0;
    tree->node[tree->n_nodes].is_leaf = is_leaf;
    return tree->n_nodes++;
}

/* Splits the full child number k of a node that is not full. */
static void split_child(struct tree *tree, int32_t parent_number, int32_t k)
{
    int32_t left_number = tree->node[parent_number].child[k];
    int32_t right_number = add_node(tree, tree->node[left_number].is_leaf);
    struct node *parent = &tree->node[parent_number], *left = &tree->node[left_number];
    struct node *right = &tree->node[right_number];
    size_t after = (size_t)(parent->n_keys - k);
    right->n_keys = HALF - 1;
    left->n_keys = HALF - 1;
    memcpy(right->key, left->key + HALF, (HALF - 1) * sizeof *right->key);
    memcpy(right->element, left->element + HALF, (HALF - 1) * sizeof *right->element);
    memcpy(right->child, left->child + HALF, HALF * sizeof *right->child);
    memmove(parent->key + k + 1, parent->key + k, after * sizeof *parent->key);
    memmove(parent->element + k + 1, parent->element + k, after * sizeof *parent->element);
    memmove(parent->child + k + 2, parent->child + k + 1, after * sizeof *parent->child);
    parent->key[k] = left->key[HALF - 1];
    parent->element[k] = left->element[HALF - 1];
    parent->child[k + 1] = right_number;
    parent->n_keys++;
}

/* The first key of a node that is not before index; behind equal ones if these are no match. */
static int32_t find_key(const struct node *node, int64_t index, bool keeps_all)
{
    int32_t low = 0, high = node->n_keys;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (node->key[middle] < index || (keeps_all && node->key[middle] == index))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert_key(struct node *node, int32_t k, int64_t index, int32_t element)
{
    size_t after = (size_t)(node->n_keys - k);
    memmove(node->key + k + 1, node->key + k, after * sizeof *node->key);
    memmove(node->element + k + 1, node->element + k, after * sizeof *node->element);
    node->key[k] = index;
    node->element[k] = element;
    node->n_keys++;
}

/* The element of an index, which becomes element `fresh` where there is none; -1: no memory. */
static int32_t find_or_insert(struct tree *tree, int64_t index, bool keeps_all, int32_t fresh)
{
    if (!reserve(tree, 2 + 32)) /* more than a tree has levels */
        return -1;
    if (tree->node[tree->root].n_keys == MOST) {
        int32_t root = add_node(tree, 0);
        tree->node[root].child[0] = tree->root;
        tree->root = root;
        split_child(tree, root, 0);
    }
    for (int32_t at = tree->root;;) {
        int32_t k = find_key(&tree->node[at], index, keeps_all);
        if (k < tree->node[at].n_keys && tree->node[at].key[k] == index && !keeps_all)
            return tree->node[at].element[k];
        if (tree->node[at].is_leaf) {
            insert_key(&tree->node[at], k, index, fresh);
            return fresh;
        }
        int32_t child = tree->node[at].child[k];
        if (tree->node[child].n_keys == MOST)
            split_child(tree, at, k); /* and look again at this node */
        else
            at = child;
    }
}

/* Elements below a node in order: their indices, and the place of each. */
static void number_elements(const struct tree *tree, int32_t at, struct cpl_fold *fold,
                            int32_t *order)
{
    const struct node *node = &tree->node[at];
    for (int32_t k = 0; k <= node->n_keys; k++) {
        if (!node->is_leaf)
            number_elements(tree, node->child[k], fold, order);
        if (k == node->n_keys)
            break;
        order[node->element[k]] = fold->n;
        fold->index[fold->n++] = node->key[k];
    }
}

bool cpl_fold_tree(const struct cpl_fold_input *input, struct cpl_fold *fold)
{
    int64_t n = input->first[input->n_segments];
    struct tree tree = {.node = NULL};
    int32_t n_elements = 0, *order = NULL;
    bool has_memory = reserve(&tree, 1);
    double sorted_ns = CPL_WORK_TREE_ONE + CPL_WORK_TREE_LOG * cpl_fold_matches(input->n_segments);
    cpl_array_work((double)n * (input->is_sorted ? sorted_ns : CPL_WORK_TREE));
    if (has_memory)
        tree.root = add_node(&tree, 1);
    for (int64_t k = 0; k < n && has_memory; k++) {
        int32_t element = find_or_insert(&tree, input->index[k], input->keeps_all, n_elements);
        has_memory = element >= 0;
        n_elements += element == n_elements;
        fold->slot[k] = element;
    }
    if (has_memory)
        order = malloc(((size_t)n_elements + 1) * sizeof *order);
    if (order) {
        number_elements(&tree, tree.root, fold, order);
        for (int64_t k = 0; k < n; k++)
            fold->slot[k] = order[fold->slot[k]];
    }
    free(order);
    free(tree.node);
    return order != NULL;
}
