/* The pass of the reads with envelopes: each request names its asker, and so does its answer
 * (Peters 2024, 4.3). A rank remembers only requests that it folded into another one; all other
 * answers find their way by the asker's route. */
#include "transfer.h"
#include "work.h"

#include "planner/base/hash.h"

#include <stdlib.h>
#include <string.h>

/* Requests that were folded before a stage: chains of them by element. */
struct folded {
    int32_t n; /* in all chains */
    int64_t *index;
    int32_t *asker;
    int32_t *next;    /* of the same place of the table, +1; 0: none */
    int32_t *place;   /* table: +1 */
    int64_t n_places; /* a power of two */
};

static void free_folded(struct folded *folded)
{
    free(folded->index);
    free(folded->asker);
    free(folded->next);
    free(folded->place);
    *folded = (struct folded){0};
}

static bool make_folded(int32_t n, struct folded *folded)
{
    folded->n_places = 16;
    while (folded->n_places < n)
        folded->n_places *= 2;
    folded->index = cpl_array_alloc(n, sizeof *folded->index);
    folded->asker = cpl_array_alloc(n, sizeof *folded->asker);
    folded->next = cpl_array_alloc(n, sizeof *folded->next);
    folded->place = calloc((size_t)folded->n_places, sizeof *folded->place);
    return folded->index && folded->asker && folded->next && folded->place;
}

static int32_t *place_of(const struct folded *folded, int64_t index)
{
    uint64_t hash = cpl_hash_mix((uint64_t)index);
    return &folded->place[hash & (uint64_t)(folded->n_places - 1)];
}

static void remember(struct folded *folded, int64_t index, int32_t asker)
{
    int32_t *place = place_of(folded, index), k = folded->n++;
    folded->index[k] = index;
    folded->asker[k] = asker;
    folded->next[k] = *place;
    *place = k + 1;
}

/* Requests held by a rank: those it queued, or those received. */
struct held {
    int32_t n;
    const int64_t *index, *first;
    const int32_t *asker; /* NULL: this rank */
    int n_segments;
    bool is_sorted, keeps_all;
};

/* Folds the requests held: out gets the first request for each element in the order of the stage,
 * folded remembers the others; slot gets the elements of this rank's own requests (NULL: not
 * needed). */
static bool prepare(struct cpl_array *array, int s, const struct held *held, struct cpl_batch *out,
                    struct folded *folded)
{
    static const struct cpl_record record = {.has_extra = true};
    struct cpl_fold_input input = {held->index, held->first, held->n_segments, held->is_sorted,
                                   held->keeps_all};
    struct cpl_fold fold = {0};
    bool is_made = cpl_fold_make(array->variant, &input, &fold);
    int32_t *target = is_made ? cpl_array_alloc(fold.n, sizeof *target) : NULL;
    is_made = target && cpl_batch_make(array, &record, fold.n, out) &&
              (s == 0 || make_folded(held->n - fold.n, folded));
    for (int32_t k = 0; k < fold.n && is_made; k++)
        out->extra[k] = -1;
    if (is_made)
        cpl_route_place(array->route, s, array->block, fold.n, fold.index, target);
    for (int32_t k = 0; k < held->n && is_made; k++) {
        int32_t place = target[fold.slot[k]];
        int32_t asker = held->asker ? held->asker[k] : array->rank;
        if (out->extra[place] < 0) {
            out->index[place] = held->index[k];
            out->extra[place] = asker;
        } else if (s > 0) {
            remember(folded, held->index[k], asker);
        }
    }
    free(target);
    cpl_fold_free(&fold);
    return is_made;
}

/* Where the request of asker for an owner's element was before a stage: its answer goes there. */
static int before_stage(const struct cpl_array *array, int stage, int asker, int owner)
{
    int at = asker;
    for (int s = 0; s < stage; s++)
        at = cpl_route_next(array->route, s, at, owner);
    return at;
}

/* Answers that are being sorted by destination. */
struct answers {
    struct cpl_batch batch; /* value: the answers, extra: who asked */
    int32_t *peer;          /* of each, a number of the stage's `from` */
};

/* Adds an answer for an asker; value is the element's. */
static void add_answer(const struct cpl_array *array, int s, struct answers *answers, int64_t index,
                       int32_t asker, const char *value)
{
    int32_t k = answers->batch.n++;
    int at = before_stage(array, s, asker, cpl_array_owner(array, index));
    answers->batch.index[k] = index;
    answers->batch.extra[k] = asker;
    memcpy(answers->batch.value + (size_t)k * array->size, value, array->size);
    const struct cpl_stage *stage = &array->route->stage[s];
    answers->peer[k] = cpl_stage_number(stage->n_from, stage->from, at);
}

/* Puts the answers in the order of the peers they go to; the stage's in_first says how many. */
static bool sort_answers(const struct cpl_array *array, int s, struct answers *answers,
                         struct cpl_batch *sorted)
{
    static const struct cpl_record record = {.has_value = true, .has_extra = true};
    struct cpl_stage *stage = &array->route->stage[s];
    int64_t *first = stage->in_first;
    const struct cpl_batch *batch = &answers->batch;
    if (!cpl_batch_make(array, &record, batch->n, sorted))
        return false;
    memset(first, 0, ((size_t)stage->n_from + 1) * sizeof *first);
    for (int32_t k = 0; k < batch->n; k++)
        first[answers->peer[k] + 1]++;
    for (int p = 0; p < stage->n_from; p++)
        first[p + 1] += first[p];
    for (int32_t k = 0; k < batch->n; k++) {
        int64_t to = first[answers->peer[k]]++;
        sorted->index[to] = batch->index[k];
        sorted->extra[to] = batch->extra[k];
        memcpy(sorted->value + (size_t)to * array->size, batch->value + (size_t)k * array->size,
               array->size);
    }
    for (int p = stage->n_from; p > 0; p--)
        first[p] = first[p - 1];
    first[0] = 0;
    return true;
}

/* Makes the answers to the requests received in stage s: all[] are the answers from the next stage,
 * or all requests at the owner (folded NULL). */
static bool make_answers(const struct cpl_array *array, int s, const struct cpl_batch *all,
                         const struct folded *folded, struct cpl_batch *sorted)
{
    static const struct cpl_record record = {.has_value = true, .has_extra = true};
    struct answers answers;
    int64_t most = (int64_t)all->n + (folded ? folded->n : 0);
    if (!cpl_batch_make(array, &record, most, &answers.batch))
        return false;
    cpl_array_work((double)most * CPL_WORK_ENVELOPE);
    answers.batch.n = 0;
    answers.peer = cpl_array_alloc(most, sizeof *answers.peer);
    for (int32_t k = 0; k < all->n && answers.peer; k++) {
        const char *value = all->value + (size_t)k * array->size;
        add_answer(array, s, &answers, all->index[k], all->extra[k], value);
        for (int32_t at = folded ? *place_of(folded, all->index[k]) : 0; at;
             at = folded->next[at - 1])
            if (folded->index[at - 1] == all->index[k])
                add_answer(array, s, &answers, all->index[k], folded->asker[at - 1], value);
    }
    bool is_made = answers.peer && sort_answers(array, s, &answers, sorted);
    free(answers.peer);
    cpl_batch_free(&answers.batch);
    return is_made;
}

/* Delivers the values to this rank's own requests, by folding the answers and requests together:
 * the answer of each element comes first. */
static bool deliver(struct cpl_array *array, const struct cpl_slice *slice,
                    const struct cpl_batch *answers)
{
    int64_t n = (int64_t)answers->n + slice->n, first[2] = {0, n};
    struct cpl_fold fold = {0};
    int64_t *index = cpl_array_alloc(n, sizeof *index);
    int32_t *answer = NULL;
    if (!index || n > INT32_MAX) {
        free(index);
        return false;
    }
    memcpy(index, answers->index, (size_t)answers->n * sizeof *index);
    if (slice->n > 0)
        memcpy(index + answers->n, slice->index, (size_t)slice->n * sizeof *index);
    bool is_made = cpl_fold_make(array->variant,
                                 &(struct cpl_fold_input){index, first, 1, false, false}, &fold);
    if (is_made)
        answer = cpl_array_alloc(fold.n, sizeof *answer);
    for (int32_t k = 0; k < fold.n && answer; k++)
        answer[k] = -1; /* and so it remains where a rank on the way has failed */
    for (int32_t k = 0; k < answers->n && answer; k++)
        answer[fold.slot[k]] = k;
    for (int32_t k = 0; k < slice->n && answer; k++) {
        int32_t from = answer[fold.slot[answers->n + k]];
        if (from >= 0)
            memcpy(array->reads.address[cpl_slice_position(slice, k)],
                   answers->value + (size_t)from * array->size, array->size);
    }
    free(index);
    free(answer);
    cpl_fold_free(&fold);
    return answer != NULL;
}

static void forward(struct cpl_array *array, const struct cpl_slice *slice, struct folded *folded,
                    struct cpl_batch *in, enum cpl_outcome *outcome)
{
    static const struct cpl_record record = {.tag = CPL_TAG_READS, .has_extra = true};
    enum carpool_array_aggregation aggregation = array->options.aggregation;
    int64_t whole[2] = {0, slice->n};
    struct held held = {
        slice->n, slice->index, whole, NULL, 1, false, aggregation == CARPOOL_ARRAY_NONE};
    for (int s = 0; s < array->route->n_stages && *outcome != CPL_TOO_MUCH; s++) {
        const struct cpl_stage *stage = &array->route->stage[s];
        struct cpl_batch out = {0}, received;
        if (*outcome == CPL_DONE && !prepare(array, s, &held, &out, &folded[s]))
            *outcome = CPL_NO_MEMORY;
        cpl_transfer_forward(array, s, &record, &out, &received, outcome);
        if (*outcome == CPL_DONE)
            cpl_count_stage(array, s, array->counts.reads_sent, array->counts.reads_received);
        cpl_batch_free(&out);
        cpl_batch_free(in);
        *in = received;
        held = (struct held){in->n,
                             in->index,
                             stage->in_first,
                             in->extra,
                             stage->n_from,
                             true,
                             aggregation != CARPOOL_ARRAY_GLOBAL};
    }
}

/* The owner's answers, in the place of the requests. */
static bool look_up(const struct cpl_array *array, struct cpl_batch *batch)
{
    batch->value = cpl_array_alloc(batch->n, array->size);
    for (int32_t k = 0; k < batch->n && batch->value; k++)
        memcpy(batch->value + (size_t)k * array->size,
               array->elements + (size_t)(batch->index[k] - array->first) * array->size,
               array->size);
    return batch->value != NULL;
}

static void backward(struct cpl_array *array, const struct cpl_slice *slice, struct folded *folded,
                     struct cpl_batch *batch, enum cpl_outcome *outcome)
{
    static const struct cpl_record record = {
        .tag = CPL_TAG_ANSWERS, .has_value = true, .has_extra = true};
    int last = array->route->n_stages - 1;
    if (*outcome == CPL_DONE && !look_up(array, batch))
        *outcome = CPL_NO_MEMORY;
    for (int s = last; s >= 0; s--) {
        struct cpl_batch sorted = {0}, received;
        if (*outcome == CPL_DONE &&
            !make_answers(array, s, batch, s < last ? &folded[s + 1] : NULL, &sorted))
            *outcome = CPL_NO_MEMORY;
        cpl_turn_stage(&array->route->stage[s]);
        cpl_transfer_forward(array, s, &record, &sorted, &received, outcome);
        cpl_turn_stage(&array->route->stage[s]);
        cpl_batch_free(&sorted);
        cpl_batch_free(batch);
        *batch = received;
    }
    if (*outcome == CPL_DONE && !deliver(array, slice, batch))
        *outcome = CPL_NO_MEMORY;
}

enum cpl_outcome cpl_pass_enveloped(struct cpl_array *array, const struct cpl_slice *slice)
{
    struct folded folded[CARPOOL_ARRAY_MAX_STAGES] = {{.n = 0}};
    struct cpl_batch batch = {0};
    enum cpl_outcome outcome = CPL_DONE;
    forward(array, slice, folded, &batch, &outcome);
    array->checks_memory = false; /* a limit on what answers need was checked with the requests */
    if (outcome != CPL_TOO_MUCH)
        backward(array, slice, folded, &batch, &outcome);
    for (int s = 0; s < array->route->n_stages; s++)
        free_folded(&folded[s]);
    cpl_batch_free(&batch);
    return outcome;
}
