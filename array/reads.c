/* The pass of the reads with traced routes: requests go to the owners, folded before every stage,
 * and each rank remembers what it folded, so that answers find their way back (Peters 2024, 4.3 and
 * 4.5). Answers are in the order of the requests, so they carry values only. */
#include "transfer.h"
#include "work.h"

#include <stdlib.h>
#include <string.h>

/* What a rank remembers of a stage. */
struct level {
    int32_t n;            /* requests held before the stage */
    const int64_t *index; /* sort: of each, as held */
    const int64_t *first; /* of their segments */
    int n_segments;
    struct cpl_fold fold; /* sort from the second stage on: without slots, these are searched */
    int32_t *target;      /* places of the elements in what is sent; NULL: the same */
    struct cpl_batch in;  /* received in the stage; its values are the answers to be given */
    char *result;         /* answers received */
};

/* Where duplicates of the folded requests are found by searching. */
static bool searches(const struct cpl_array *array, int s)
{
    return array->variant == CPL_VARIANT_SORT && s > 0 &&
           array->options.aggregation == CARPOOL_ARRAY_GLOBAL;
}

static bool fold_level(const struct cpl_array *array, int s, struct level *level)
{
    enum carpool_array_aggregation aggregation = array->options.aggregation;
    struct cpl_fold_input input = {
        .index = level->index,
        .first = level->first,
        .n_segments = level->n_segments,
        .is_sorted = s > 0,
        .keeps_all =
            s == 0 ? aggregation == CARPOOL_ARRAY_NONE : aggregation != CARPOOL_ARRAY_GLOBAL,
    };
    return cpl_fold_make(array->variant, &input, &level->fold);
}

/* Folds and places the requests held; out gets what is to be sent. */
static bool prepare(struct cpl_array *array, int s, struct level *level, struct cpl_batch *out)
{
    static const struct cpl_record record = {.has_value = false};
    if (!fold_level(array, s, level))
        return false;
    level->target = cpl_array_alloc(level->fold.n, sizeof *level->target);
    level->result = cpl_array_alloc(level->fold.n, array->size);
    if (!level->target || !level->result || !cpl_batch_make(array, &record, level->fold.n, out))
        return false;
    bool stay = cpl_route_place(array->route, s, array->rank, array->block, level->fold.n,
                                level->fold.index, level->target);
    cpl_array_work_move(level->fold.n, 0);
    for (int32_t k = 0; k < level->fold.n; k++)
        out->index[level->target[k]] = level->fold.index[k];
    if (stay) {
        free(level->target);
        level->target = NULL;
    }
    if (searches(array, s)) {
        free(level->fold.slot);
        level->fold.slot = NULL;
    } else {
        free(level->fold.index);
        level->fold.index = NULL;
    }
    return true;
}

static const char *answer_to(const struct cpl_array *array, const struct level *level,
                             int32_t element)
{
    size_t place = (size_t)(level->target ? level->target[element] : element);
    return level->result + place * array->size;
}

/* The requests of each segment are ascending, so each search starts where the last one ended. */
static void spread_by_search(const struct cpl_array *array, const struct level *level, char *answer)
{
    cpl_array_work((double)level->n * CPL_WORK_SEARCH);
    for (int seg = 0; seg < level->n_segments; seg++) {
        int32_t at = 0;
        for (int64_t k = level->first[seg]; k < level->first[seg + 1]; k++) {
            at = cpl_fold_search(level->fold.index, at, level->fold.n, level->index[k]);
            memcpy(answer + (size_t)k * array->size, answer_to(array, level, at), array->size);
        }
    }
}

static void spread_by_slots(const struct cpl_array *array, const struct level *level, char *answer)
{
    cpl_array_work_move(level->n, (int64_t)array->size);
    for (int32_t k = 0; k < level->n; k++)
        memcpy(answer + (size_t)k * array->size, answer_to(array, level, level->fold.slot[k]),
               array->size);
}

static void deliver(struct cpl_array *array, const struct level *level,
                    const struct cpl_slice *slice)
{
    cpl_array_work_move(slice->n, (int64_t)array->size);
    for (int32_t k = 0; k < slice->n; k++)
        memcpy(array->reads.address[cpl_slice_position(slice, k)],
               answer_to(array, level, level->fold.slot[k]), array->size);
}

static void look_up(const struct cpl_array *array, struct cpl_batch *batch)
{
    cpl_array_work_move(batch->n, (int64_t)array->size);
    for (int32_t k = 0; k < batch->n; k++)
        memcpy(batch->value + (size_t)k * array->size,
               array->elements + (size_t)(batch->index[k] - array->first) * array->size,
               array->size);
}

static void forward(struct cpl_array *array, struct level *level, const struct cpl_slice *slice,
                    enum cpl_outcome *outcome)
{
    static const struct cpl_record record = {.tag = CPL_TAG_READS, .is_answered = true};
    int64_t whole[2] = {0, slice->n};
    for (int s = 0; s < array->route->n_stages; s++) {
        struct level *here = &level[s];
        struct cpl_stage *before = s > 0 ? &array->route->stage[s - 1] : NULL;
        struct cpl_batch out = {0};
        here->n = before ? level[s - 1].in.n : slice->n;
        here->index = before ? level[s - 1].in.index : slice->index;
        here->first = before ? before->in_first : whole;
        here->n_segments = before ? before->n_from : 1;
        if (*outcome == CPL_DONE && !prepare(array, s, here, &out))
            *outcome = CPL_NO_MEMORY;
        if (before && !searches(array, s)) {
            free(level[s - 1].in.index);
            level[s - 1].in.index = NULL;
        }
        cpl_transfer_forward(array, s, &record, &out, &here->in, outcome);
        if (*outcome == CPL_DONE)
            cpl_count_stage(array, s, array->counts.reads_sent, array->counts.reads_received);
        cpl_batch_free(&out);
        if (*outcome == CPL_TOO_MUCH || (*outcome != CPL_DONE && array->route->is_plain))
            return;
    }
}

static void backward(struct cpl_array *array, struct level *level, const struct cpl_slice *slice,
                     enum cpl_outcome outcome)
{
    int last = array->route->n_stages - 1;
    bool is_well = outcome == CPL_DONE;
    if (is_well)
        look_up(array, &level[last].in);
    for (int s = last; s >= 0; s--) {
        char *answer = s > 0 ? level[s - 1].in.value : NULL;
        cpl_transfer_back(array, s, CPL_TAG_ANSWERS, is_well ? level[s].in.value : NULL,
                          level[s].result);
        if (is_well && s == 0)
            deliver(array, &level[0], slice);
        else if (is_well && searches(array, s))
            spread_by_search(array, &level[s], answer);
        else if (is_well)
            spread_by_slots(array, &level[s], answer);
    }
}

enum cpl_outcome cpl_pass_reads(struct cpl_array *array, const struct cpl_slice *slice)
{
    struct level level[CARPOOL_ARRAY_MAX_STAGES] = {{.n = 0}};
    enum cpl_outcome outcome = CPL_DONE;
    forward(array, level, slice, &outcome);
    if (outcome != CPL_TOO_MUCH && (outcome == CPL_DONE || !array->route->is_plain))
        backward(array, level, slice, outcome);
    for (int s = 0; s < array->route->n_stages; s++) {
        cpl_fold_free(&level[s].fold);
        cpl_batch_free(&level[s].in);
        free(level[s].target);
        free(level[s].result);
    }
    return outcome;
}
