/* Folding by any variant (fold.h). */
#include "fold.h"

#include <stdlib.h>

static const char *const names[CPL_N_VARIANTS] = {[CPL_VARIANT_SORT] = "sort",
                                                  [CPL_VARIANT_HASH] = "hash",
                                                  [CPL_VARIANT_TREE] = "tree",
                                                  [CPL_VARIANT_ENVELOPE_SORT] = "envelope-sort",
                                                  [CPL_VARIANT_ENVELOPE_HASH] = "envelope-hash"};

const char *cpl_variant_name(enum cpl_variant variant)
{
    return names[variant];
}

bool cpl_fold_make(enum cpl_variant variant, const struct cpl_fold_input *input,
                   struct cpl_fold *fold)
{
    size_t n = (size_t)input->first[input->n_segments];
    struct cpl_fold made = {.index = malloc((n + !n) * sizeof *made.index),
                            .slot = malloc((n + !n) * sizeof *made.slot)};
    bool is_made = made.index && made.slot;
    if (is_made && variant == CPL_VARIANT_TREE)
        is_made = cpl_fold_tree(input, &made);
    else if (is_made && (variant == CPL_VARIANT_HASH || variant == CPL_VARIANT_ENVELOPE_HASH))
        is_made = cpl_fold_hash(input, &made);
    else if (is_made)
        is_made = cpl_fold_sort(input, &made);
    if (is_made)
        *fold = made;
    else
        cpl_fold_free(&made);
    return is_made;
}

void cpl_fold_free(struct cpl_fold *fold)
{
    free(fold->index);
    free(fold->slot);
    *fold = (struct cpl_fold){0};
}

int32_t cpl_fold_search(const int64_t *sorted, int32_t from, int32_t n, int64_t target)
{
    int32_t step = 1, low = from;
    while (step < n - from && sorted[from + step] < target) {
        low = from + step;
        step = step < INT32_MAX / 2 ? 2 * step : INT32_MAX;
    }
    int32_t high = step < n - from ? from + step : n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (sorted[middle] < target)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
