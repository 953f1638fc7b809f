/* The pass of the reads with traced routes: requests go to the owners, folded before every stage,
 * and each rank remembers which requests it folded, so that answers find their way back (Peters
 * 2024, 4.3 and 4.5). Answers are in the order of the requests, so they carry values only. */
#include "transfer.h"
#include "work.h"

#include <stdlib.h>
#include <string.h>

/* A rank's memory of a stage. */
struct level {
    struct cpl_fold fold; /* of the requests held before the stage; slots only */
    int32_t *target;      /* places of the elements in the sent batch; NULL: the same */
    struct cpl_batch in;  /* requests received in the stage; its values become their answers */
    char *result;         /* answers received */
};

/* Folds and places the requests held; out becomes the batch to be sent. */
static bool prepare(struct cpl_array *array, int s, const struct cpl_fold_input *held,
                    struct level *level, struct cpl_batch *out)
{
    static const struct cpl_record record = {.has_value = false};
    if (!cpl_fold_make(array->variant, held, &level->fold))
        return false;
    if (s == 0)
        array->kept[1] += level->fold.n;
    level->target = cpl_array_alloc(level->fold.n, sizeof *level->target);
    level->result = cpl_array_alloc(level->fold.n, array->size);
    if (!level->target || !level->result || !cpl_batch_make(array, &record, level->fold.n, out))
        return false;
    bool stay = cpl_route_place(array->route, s, array->block, level->fold.n, level->fold.index,
                                level->target);
    cpl_array_work_move(level->fold.n, 0);
    for (int32_t k = 0; k < level->fold.n; k++)
        out->index[level->target[k]] = level->fold.index[k];
    if (stay) {
        free(level->target);
        level->target = NULL;
    }
    free(level->fold.index);
    level->fold.index = NULL;
    return true;
}

static const char *answer_to(const struct cpl_array *array, const struct level *level,
                             int32_t element)
{
    size_t place = (size_t)(level->target ? level->target[element] : element);
    return level->result + place * array->size;
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
    enum carpool_array_aggregation aggregation = array->options.aggregation;
    int64_t whole[2] = {0, slice->n};
    struct cpl_fold_input held = {slice->index, whole, 1, false, aggregation == CARPOOL_ARRAY_NONE};
    for (int s = 0; s < array->route->n_stages; s++) {
        struct level *here = &level[s];
        const struct cpl_stage *stage = &array->route->stage[s];
        struct cpl_batch out = {0};
        if (*outcome == CPL_DONE && !prepare(array, s, &held, here, &out))
            *outcome = CPL_NO_MEMORY;
        if (s > 0) {
            free(level[s - 1].in.index);
            level[s - 1].in.index = NULL;
        }
        cpl_transfer_forward(array, s, &record, &out, &here->in, outcome);
        if (*outcome == CPL_DONE)
            cpl_count_stage(array, s, array->counts.reads_sent, array->counts.reads_received);
        cpl_batch_free(&out);
        held = (struct cpl_fold_input){here->in.index, stage->in_first, stage->n_from, true,
                                       aggregation != CARPOOL_ARRAY_GLOBAL};
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
        else if (is_well)
            cpl_fold_spread(&level[s].fold, level[s - 1].in.n, level[s].target, level[s].result,
                            array->size, answer);
    }
}

enum cpl_outcome cpl_pass_reads(struct cpl_array *array, const struct cpl_slice *slice)
{
    struct level level[CARPOOL_ARRAY_MAX_STAGES] = {{.result = NULL}};
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
