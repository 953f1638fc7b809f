/* The pass of the writes: folded and combined before every stage, and once more by the owner. */
#include "policy.h"
#include "transfer.h"
#include "work.h"

#include <stdlib.h>
#include <string.h>

/* Writes at a rank before a stage: those of the slice, or those received in the last stage. */
struct held {
    const struct cpl_slice *slice; /* NULL: batch */
    struct cpl_batch batch;
    const int64_t *first; /* of the batch's segments */
    int n_segments;
};

static const char *value_of(const struct cpl_array *array, const struct held *held, int32_t k)
{
    if (held->slice)
        return array->writes.value + (size_t)cpl_slice_position(held->slice, k) * array->size;
    return held->batch.value + (size_t)k * array->size;
}

static bool fold_held(const struct cpl_array *array, const struct held *held, bool keeps_all,
                      struct cpl_fold *fold)
{
    int64_t whole[2] = {0, held->slice ? held->slice->n : 0};
    struct cpl_fold_input input = {
        .index = held->slice ? held->slice->index : held->batch.index,
        .first = held->slice ? whole : held->first,
        .n_segments = held->slice ? 1 : held->n_segments,
        .is_sorted = !held->slice,
        .keeps_all = keeps_all,
    };
    return cpl_fold_make(array->variant, &input, fold);
}

/* Combines what is held into out, where the element in slot k has place target[k] (NULL: k). */
static void combine(struct cpl_array *array, const struct held *held, const struct cpl_fold *fold,
                    const int32_t *target, struct cpl_batch *out)
{
    int32_t n = held->slice ? held->slice->n : held->batch.n;
    cpl_array_work((double)n * cpl_policy_work_ns(array));
    for (int32_t k = 0; k < out->n; k++) {
        out->index[target ? target[k] : k] = fold->index[k];
        out->extra[k] = -1;
    }
    for (int32_t k = 0; k < n; k++) {
        int32_t place = target ? target[fold->slot[k]] : fold->slot[k];
        int32_t rank = held->batch.extra ? held->batch.extra[k] : array->rank;
        cpl_policy_combine(array, out->value + (size_t)place * array->size, &out->extra[place],
                           value_of(array, held, k), rank);
    }
}

/* Makes the batch to be sent in a stage; in stage n_stages the writes that the owner stores. */
static bool next_batch(struct cpl_array *array, int s, const struct held *held,
                       struct cpl_batch *out)
{
    static const struct cpl_record all = {.has_value = true, .has_extra = true};
    enum carpool_array_aggregation aggregation = array->options.aggregation;
    bool is_last = s == array->route->n_stages;
    bool keeps_all = !is_last && (s == 0 ? aggregation == CARPOOL_ARRAY_NONE
                                         : aggregation != CARPOOL_ARRAY_GLOBAL);
    struct cpl_fold fold = {0};
    bool is_made = fold_held(array, held, keeps_all, &fold);
    if (s == 0)
        array->kept[0] += fold.n;
    int32_t *target = is_made && !is_last ? cpl_array_alloc(fold.n, sizeof *target) : NULL;
    if (is_made && (target || is_last) && cpl_batch_make(array, &all, fold.n, out)) {
        if (target)
            cpl_route_place(array->route, s, array->block, fold.n, fold.index, target);
        combine(array, held, &fold, target, out);
    } else {
        is_made = false;
    }
    free(target);
    cpl_fold_free(&fold);
    return is_made;
}

static void store(struct cpl_array *array, const struct cpl_batch *batch)
{
    cpl_array_work_move(batch->n, (int64_t)array->size);
    for (int32_t k = 0; k < batch->n; k++)
        memcpy(array->elements + (size_t)(batch->index[k] - array->first) * array->size,
               batch->value + (size_t)k * array->size, array->size);
}

enum cpl_outcome cpl_pass_writes(struct cpl_array *array, const struct cpl_slice *slice)
{
    struct cpl_record record = {
        .tag = CPL_TAG_WRITES, .has_value = true, .has_extra = cpl_policy_needs_rank(array)};
    struct held held = {.slice = slice};
    enum cpl_outcome outcome = CPL_DONE;
    struct cpl_batch out = {0};
    for (int s = 0; s < array->route->n_stages && outcome != CPL_TOO_MUCH; s++) {
        struct cpl_batch in;
        if (outcome == CPL_DONE && !next_batch(array, s, &held, &out))
            outcome = CPL_NO_MEMORY;
        cpl_transfer_forward(array, s, &record, &out, &in, &outcome);
        if (outcome == CPL_DONE)
            cpl_count_stage(array, s, array->counts.writes_sent, array->counts.writes_received);
        cpl_batch_free(&out);
        cpl_batch_free(&held.batch);
        held =
            (struct held){NULL, in, array->route->stage[s].in_first, array->route->stage[s].n_from};
    }
    if (outcome == CPL_DONE && !next_batch(array, array->route->n_stages, &held, &out))
        outcome = CPL_NO_MEMORY;
    if (outcome == CPL_DONE)
        store(array, &out);
    cpl_batch_free(&out);
    cpl_batch_free(&held.batch);
    return outcome;
}
