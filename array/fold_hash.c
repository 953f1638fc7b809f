/* Folding by a hash table with linear probing (fold.h). */
#include "fold.h"
#include "work.h"

#include "planner/base/hash.h"

#include <stdlib.h>

bool cpl_fold_hash(const struct cpl_fold_input *input, struct cpl_fold *fold)
{
    int64_t n = input->first[input->n_segments], n_places = 16;
    for (int64_t k = 0; k < n && input->keeps_all; k++) {
        fold->index[k] = input->index[k];
        fold->slot[k] = (int32_t)k;
    }
    if (input->keeps_all) {
        fold->n = (int32_t)n;
        return true;
    }
    while (n_places < 2 * n)
        n_places *= 2;
    int32_t *place = calloc((size_t)n_places, sizeof *place); /* slot + 1; 0: free */
    if (!place)
        return false;
    for (int64_t k = 0; k < n; k++) {
        int64_t at = (int64_t)(cpl_hash_mix((uint64_t)input->index[k]) & (uint64_t)(n_places - 1));
        while (place[at] && fold->index[place[at] - 1] != input->index[k])
            at = (at + 1) & (n_places - 1);
        if (!place[at]) {
            fold->index[fold->n++] = input->index[k];
            place[at] = fold->n;
        }
        fold->slot[k] = place[at] - 1;
    }
    cpl_array_work(cpl_work_hash_ns((double)n, fold->n));
    free(place);
    return true;
}
