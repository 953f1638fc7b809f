/* Folding by any variant (fold.h). */
#include "fold.h"
#include "work.h"

#include <stdlib.h>
#include <string.h>

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

void cpl_fold_spread(const struct cpl_fold *fold, int64_t n, const int32_t *place,
                     const char *result, size_t size, char *answer)
{
    cpl_array_work_move(n, (int64_t)size);
    for (int64_t k = 0; k < n; k++) {
        int32_t element = fold->slot[k];
        memcpy(answer + (size_t)k * size,
               result + (size_t)(place ? place[element] : element) * size, size);
    }
}
