/* The lock step: all writes, then all reads, each in one pass or in rounds.
 *
 * A round carries out the requests for a part of every rank's block: the same elements on all
 * ranks, so that requests for the same element meet in one round and rounds need not know of each
 * other. For this, requests are sorted by their place in the block. When a stage would take more
 * memory than the limit on some rank, all ranks do the round again with half as many elements. */
#include "array_internal.h"
#include "transfer.h"
#include "work.h"

#include <stdlib.h>
#include <string.h>

typedef enum cpl_outcome pass(struct cpl_array *array, const struct cpl_slice *slice);

/* A queue in the order of places in blocks. */
struct sorted_queue {
    int32_t n;
    int64_t *place;    /* of each request of the queue */
    int32_t *position; /* in the queue, by ascending place */
    int64_t *index;    /* in that order */
};

static void free_sorted(struct sorted_queue *sorted)
{
    free(sorted->place);
    free(sorted->position);
    free(sorted->index);
}

/* When memory runs out the queue counts as empty: the step will fail, but this rank takes part. */
static enum cpl_outcome sort_queue(const struct cpl_array *array, const struct cpl_queue *queue,
                                   struct sorted_queue *sorted)
{
    int32_t n = queue->n;
    sorted->place = cpl_array_alloc(n, sizeof *sorted->place);
    sorted->position = cpl_array_alloc(n, sizeof *sorted->position);
    sorted->index = cpl_array_alloc(n, sizeof *sorted->index);
    if (!sorted->place || !sorted->position || !sorted->index)
        return CPL_NO_MEMORY;
    for (int32_t k = 0; k < n; k++)
        sorted->place[k] = queue->index[k] % array->block;
    if (!cpl_sort_positions(n, sorted->place, sorted->position))
        return CPL_NO_MEMORY;
    for (int32_t k = 0; k < n; k++)
        sorted->index[k] = queue->index[sorted->position[k]];
    sorted->n = n;
    return CPL_DONE;
}

/* The first request, from `from` on, whose place is not below `place`. */
static int32_t find_place(const struct sorted_queue *sorted, int32_t from, int64_t place)
{
    int32_t low = from, high = sorted->n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (sorted->place[sorted->position[middle]] < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static enum cpl_outcome worse(enum cpl_outcome a, enum cpl_outcome b)
{
    return a > b ? a : b;
}

/* width: places of the first round. */
static enum cpl_outcome in_rounds(struct cpl_array *array, const struct cpl_queue *queue, pass *run,
                                  int64_t width)
{
    struct sorted_queue sorted = {.n = 0};
    enum cpl_outcome outcome = sort_queue(array, queue, &sorted);
    int32_t from = 0;
    for (int64_t place = 0; place < array->block;) {
        int64_t end = width < array->block - place ? place + width : array->block;
        int32_t to = find_place(&sorted, from, end);
        struct cpl_slice slice = {.n = to - from};
        if (sorted.n) {
            slice.index = sorted.index + from;
            slice.position = sorted.position + from;
        }
        array->checks_memory = width > 1;
        enum cpl_outcome round = run(array, &slice);
        array->checks_memory = false;
        if (round == CPL_TOO_MUCH) {
            width = (width + 1) / 2;
            continue;
        }
        outcome = worse(outcome, round);
        array->counts.rounds++;
        place = end;
        from = to;
    }
    free_sorted(&sorted);
    return outcome;
}

/* All requests of a kind; n_all of them on all ranks, of so many bytes each. */
static enum cpl_outcome run_all(struct cpl_array *array, const struct cpl_queue *queue, pass *run,
                                int64_t n_all, int64_t bytes)
{
    int64_t memory = array->options.memory, fit = memory / bytes;
    if (n_all == 0)
        return CPL_DONE;
    if (n_all <= fit) {
        struct cpl_slice slice = {.n = queue->n, .index = queue->index};
        array->counts.rounds++;
        return run(array, &slice);
    }
    /* as many places as would fit if all ranks had the same load, with some reserve */
    double part = (double)fit * array->n_ranks / (4.0 * (double)n_all);
    int64_t width = part < 1 ? (int64_t)(part * (double)array->block) : array->block;
    return in_rounds(array, queue, run, width > 0 ? width : 1);
}

static int report(carpool_array *handle, enum cpl_outcome outcome)
{
    struct cpl_array *array = handle->body;
    if (outcome == CPL_MPI_ERROR && array->mpi_error != MPI_SUCCESS)
        return cpl_array_mpi_error(handle, array->mpi_error);
    return cpl_array_error(handle, MPI_COMM_NULL, "carpool_array_step",
                           outcome == CPL_MPI_ERROR
                               ? "MPI failed on another rank"
                               : "no memory for the requests on some rank: give options.memory a "
                                 "smaller value, or call carpool_array_step more often");
}

int carpool_array_step(carpool_array *handle)
{
    if (!handle || !handle->body)
        return cpl_array_error(handle, MPI_COMM_WORLD, __func__, "the array is NULL or was freed");
    struct cpl_array *array = handle->body;
    struct cpl_step_sums sums = {
        {array->writes.n, array->reads.n}, array->last_ns, {array->kept[0], array->kept[1]}};
    const int64_t *n = sums.n;
    int64_t bytes = (int64_t)(array->size + sizeof(int64_t) + sizeof(int32_t));
    array->mpi_error = MPI_SUCCESS;
    cpl_array_work_move(n[0] + n[1], (int64_t)array->size); /* their queueing */
    cpl_mpi(array, MPI_Allreduce(MPI_IN_PLACE, &sums, (int)(sizeof sums / sizeof *n), MPI_INT64_T,
                                 MPI_SUM, array->comm));
    double begin = MPI_Wtime();
    if (n[0] + n[1] > 0) {
        cpl_ways_choose(array, &sums);
        memcpy(array->last_n, sums.n, sizeof sums.n);
        memset(array->kept, 0, sizeof array->kept);
    }
    bool is_enveloped = array->variant >= CPL_VARIANT_ENVELOPE_SORT;
    array->counts = (struct carpool_array_counts){
        .n_stages = array->route->n_stages, .reads = array->reads.n, .writes = array->writes.n};
    enum cpl_outcome outcome = run_all(array, &array->writes, cpl_pass_writes, n[0], bytes);
    outcome =
        worse(outcome, run_all(array, &array->reads,
                               is_enveloped ? cpl_pass_enveloped : cpl_pass_reads, n[1], bytes));
    array->writes.n = 0;
    array->reads.n = 0;
    if (n[0] + n[1] > 0)
        outcome = cpl_agree_outcome(array, outcome);
    /* nobody leaves the agreement before the slowest has come: a time of all */
    if (n[0] + n[1] > 0)
        array->last_ns = outcome == CPL_DONE ? (int64_t)((MPI_Wtime() - begin) * 1e9) : 0;
    return outcome == CPL_DONE ? MPI_SUCCESS : report(handle, outcome);
}
