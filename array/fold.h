/* Folding: requests for the same element are merged into one (Peters 2024, 4.4).
 *
 * Three algorithms. Sort: merges runs that are sorted already where that is faster, else sorts by
 * digits. Hash: a table with linear probing. Tree: a B-tree. All give the same elements: sort and
 * tree in ascending order, hash in the order of first appearance. Local, no state. */
#ifndef CARPOOL_ARRAY_FOLD_H
#define CARPOOL_ARRAY_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cpl_variant {
    CPL_VARIANT_SORT,
    CPL_VARIANT_HASH,
    CPL_VARIANT_TREE,
    CPL_VARIANT_ENVELOPE_SORT,
    CPL_VARIANT_ENVELOPE_HASH,
    CPL_N_VARIANTS
};

/* The name of a variant, in lower case with hyphens. */
const char *cpl_variant_name(enum cpl_variant variant);

struct cpl_fold {
    int32_t n;
    int64_t *index; /* n elements */
    int32_t *slot;  /* for each request its element: 0 .. n-1 */
};

/* Input of a fold: requests 0 .. first[n_segments]-1, in runs ("segments") that begin at
 * first[k]. */
struct cpl_fold_input {
    const int64_t *index;
    const int64_t *first; /* n_segments + 1 entries */
    int n_segments;
    bool is_sorted; /* each segment is ascending */
    bool keeps_all; /* nothing is merged: as many elements as requests, in the order of a fold,
                       equal ones in the order of the requests */
};

/* Folds; the caller frees *fold. Returns false when memory ran out. All variants fill slot. O(n log
 * segments) by merging, O(n) by sorting digits and by hashing, O(n log n) by the tree. */
bool cpl_fold_make(enum cpl_variant variant, const struct cpl_fold_input *input,
                   struct cpl_fold *fold);

void cpl_fold_free(struct cpl_fold *fold);

/* Gives each of n folded requests the value of its element, of size bytes: that of element e is
 * result[place[e]] (place NULL: result[e]). answer has room for all requests. */
void cpl_fold_spread(const struct cpl_fold *fold, int64_t n, const int32_t *place,
                     const char *result, size_t size, char *answer);

/* The algorithms behind cpl_fold_make. fold->index and fold->slot have room for all requests. */
bool cpl_fold_sort(const struct cpl_fold_input *input, struct cpl_fold *fold);
bool cpl_fold_hash(const struct cpl_fold_input *input, struct cpl_fold *fold);
bool cpl_fold_tree(const struct cpl_fold_input *input, struct cpl_fold *fold);

/* Comparisons per request when n_segments sorted runs are merged: log2(n_segments), rounded up. */
static inline int cpl_fold_matches(int n_segments)
{
    int n_matches = 0;
    while (1 << n_matches < n_segments)
        n_matches++;
    return n_matches;
}

/* Sorts the positions 0 .. n-1 by key, equal keys by position. Returns false when memory ran
 * out. */
bool cpl_sort_positions(int32_t n, const int64_t *key, int32_t *position);

#endif
