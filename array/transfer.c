/* Transfers (transfer.h) over the stages of a grid; those of plain routes are in
 * transfer_plain.c. */
#include "transfer_internal.h"
#include "work.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

void *cpl_array_alloc(int64_t n, size_t size)
{
    size_t count = (size_t)n;
    if (n < 0 || (size && count > PTRDIFF_MAX / size))
        return NULL;
    size_t bytes = count * size;
    return malloc(bytes ? bytes : 1);
}

bool cpl_mpi(struct cpl_array *array, int code)
{
    if (code != MPI_SUCCESS && array->mpi_error == MPI_SUCCESS)
        array->mpi_error = code;
    return code == MPI_SUCCESS;
}

enum cpl_outcome cpl_agree_outcome(struct cpl_array *array, enum cpl_outcome mine)
{
    int here = array->mpi_error != MPI_SUCCESS ? CPL_MPI_ERROR : (int)mine, worst = here;
    cpl_mpi(array, MPI_Allreduce(&here, &worst, 1, MPI_INT, MPI_MAX, array->comm));
    return (enum cpl_outcome)worst;
}

bool cpl_batch_make(const struct cpl_array *array, const struct cpl_record *record, int64_t n,
                    struct cpl_batch *batch)
{
    struct cpl_batch made = {.n = (int32_t)n};
    bool has_value = record->has_value || record->is_answered;
    made.index = cpl_array_alloc(n, sizeof *made.index);
    made.value = has_value ? cpl_array_alloc(n, array->size) : NULL;
    made.extra = record->has_extra ? cpl_array_alloc(n, sizeof *made.extra) : NULL;
    bool is_made = n <= INT32_MAX && made.index && (made.value || !has_value) &&
                   (made.extra || !record->has_extra);
    if (!is_made)
        cpl_batch_free(&made);
    *batch = made;
    return is_made;
}

void cpl_batch_free(struct cpl_batch *batch)
{
    free(batch->index);
    free(batch->value);
    free(batch->extra);
    *batch = (struct cpl_batch){0};
}

int64_t cpl_record_bytes(const struct cpl_array *array, const struct cpl_record *record)
{
    return (int64_t)(sizeof(int64_t) + (record->has_value ? array->size : 0) +
                     (record->has_extra ? sizeof(int32_t) : 0));
}

/* Whether messages of n requests, and of their answers, fit an int. */
static bool fits(const struct cpl_array *array, const struct cpl_record *record, int64_t n)
{
    int64_t most = cpl_record_bytes(array, record) + (int64_t)array->size;
    return n <= INT_MAX / most;
}

void cpl_pack(const struct cpl_array *array, const struct cpl_record *record,
              const struct cpl_batch *batch, int64_t first, int64_t n, char *to)
{
    cpl_array_work((double)(n * cpl_record_bytes(array, record)) * CPL_WORK_BYTE);
    memcpy(to, batch->index + first, (size_t)n * sizeof *batch->index);
    to += (size_t)n * sizeof *batch->index;
    if (record->has_value) {
        memcpy(to, batch->value + (size_t)first * array->size, (size_t)n * array->size);
        to += (size_t)n * array->size;
    }
    if (record->has_extra)
        memcpy(to, batch->extra + first, (size_t)n * sizeof *batch->extra);
}

void cpl_unpack(const struct cpl_array *array, const struct cpl_record *record, const char *from,
                int64_t first, int64_t n, struct cpl_batch *batch)
{
    cpl_array_work((double)(n * cpl_record_bytes(array, record)) * CPL_WORK_BYTE);
    memcpy(batch->index + first, from, (size_t)n * sizeof *batch->index);
    from += (size_t)n * sizeof *batch->index;
    if (record->has_value) {
        memcpy(batch->value + (size_t)first * array->size, from, (size_t)n * array->size);
        from += (size_t)n * array->size;
    }
    if (record->has_extra)
        memcpy(batch->extra + first, from, (size_t)n * sizeof *batch->extra);
}

/* The requests of a stage's peer that is this rank itself go by memory. */
static void copy_own(struct cpl_array *array, const struct cpl_stage *stage,
                     const struct cpl_record *record, const struct cpl_batch *out,
                     struct cpl_batch *in)
{
    int to = 0, from = 0;
    while (to < stage->n_to && stage->to[to] != array->rank)
        to++;
    while (from < stage->n_from && stage->from[from] != array->rank)
        from++;
    if (to == stage->n_to || from == stage->n_from)
        return;
    int64_t first = stage->out_first[to], n = stage->out_first[to + 1] - first;
    int64_t at = stage->in_first[from];
    if (n == 0)
        return;
    memcpy(in->index + at, out->index + first, (size_t)n * sizeof *in->index);
    if (record->has_value)
        memcpy(in->value + (size_t)at * array->size, out->value + (size_t)first * array->size,
               (size_t)n * array->size);
    if (record->has_extra)
        memcpy(in->extra + at, out->extra + first, (size_t)n * sizeof *in->extra);
}

void cpl_count_stage(const struct cpl_array *array, int s, int64_t *sent, int64_t *received)
{
    const struct cpl_stage *stage = &array->route->stage[s];
    for (int k = 0; k < stage->n_to; k++)
        if (stage->to[k] != array->rank)
            sent[s] += stage->out_first[k + 1] - stage->out_first[k];
    for (int k = 0; k < stage->n_from; k++)
        if (stage->from[k] != array->rank)
            received[s] += stage->in_first[k + 1] - stage->in_first[k];
}

/* Checks, before anything large is sent, whether all receivers would keep to the limit. */
static void check_memory(struct cpl_array *array, const struct cpl_stage *stage,
                         const struct cpl_record *record, enum cpl_outcome *outcome)
{
    int n_requests = 0;
    int64_t total = 0;
    for (int k = 0; k < stage->n_from; k++)
        cpl_mpi(array, MPI_Irecv(&array->recv_count[k], 1, MPI_INT64_T, stage->from[k],
                                 CPL_TAG_COUNT, array->comm, &array->requests[n_requests++]));
    for (int k = 0; k < stage->n_to; k++) {
        array->send_count[k] = stage->out_first[k + 1] - stage->out_first[k];
        cpl_mpi(array, MPI_Isend(&array->send_count[k], 1, MPI_INT64_T, stage->to[k], CPL_TAG_COUNT,
                                 array->comm, &array->requests[n_requests++]));
    }
    cpl_mpi(array, MPI_Waitall(n_requests, array->requests, MPI_STATUSES_IGNORE));
    for (int k = 0; k < stage->n_from; k++)
        total += array->recv_count[k];
    int64_t most = array->options.memory / (cpl_record_bytes(array, record) + (int64_t)array->size);
    enum cpl_outcome mine = *outcome == CPL_DONE && total > most ? CPL_TOO_MUCH : CPL_DONE;
    if (cpl_agree_outcome(array, mine) == CPL_TOO_MUCH)
        *outcome = CPL_TOO_MUCH;
}

/* Starts the sends from packed (of all peers one after the other); returns their number. */
static int start_sends(struct cpl_array *array, const struct cpl_stage *stage,
                       const struct cpl_record *record, const char *packed)
{
    int64_t bytes = cpl_record_bytes(array, record);
    int n_sends = 0;
    for (int k = 0; k < stage->n_to; k++) {
        int64_t n = stage->out_first[k + 1] - stage->out_first[k];
        if (stage->to[k] == array->rank)
            continue;
        const char *from = packed ? packed + stage->out_first[k] * bytes : NULL;
        cpl_mpi(array, MPI_Isend(from, (int)(n * bytes), MPI_BYTE, stage->to[k], record->tag,
                                 array->comm, &array->requests[n_sends++]));
    }
    array->counts.messages_sent += n_sends;
    return n_sends;
}

/* Waits for the messages of all peers and sets the stage's in_first. */
static void probe_all(struct cpl_array *array, struct cpl_stage *stage,
                      const struct cpl_record *record)
{
    int64_t bytes = cpl_record_bytes(array, record), n_own = 0;
    for (int k = 0; k < stage->n_to; k++)
        if (stage->to[k] == array->rank)
            n_own = stage->out_first[k + 1] - stage->out_first[k];
    stage->in_first[0] = 0;
    for (int k = 0; k < stage->n_from; k++) {
        MPI_Status status;
        int n_bytes = 0;
        if (stage->from[k] != array->rank &&
            cpl_mpi(array, MPI_Probe(stage->from[k], record->tag, array->comm, &status)))
            cpl_mpi(array, MPI_Get_count(&status, MPI_BYTE, &n_bytes));
        int64_t n = stage->from[k] == array->rank ? n_own : n_bytes / bytes;
        stage->in_first[k + 1] = stage->in_first[k] + n;
    }
}

/* Receives the probed messages; when memory ran out, discards them. */
static void receive_all(struct cpl_array *array, const struct cpl_stage *stage,
                        const struct cpl_record *record, struct cpl_batch *in,
                        enum cpl_outcome *outcome)
{
    int64_t bytes = cpl_record_bytes(array, record), total = stage->in_first[stage->n_from];
    bool is_packed = record->has_value || record->has_extra;
    char *packed = is_packed ? cpl_array_alloc(total, (size_t)bytes) : NULL;
    bool has_memory =
        (packed || !is_packed) && total <= INT32_MAX && cpl_batch_make(array, record, total, in);
    if (has_memory && !is_packed)
        packed = (char *)in->index;
    for (int k = 0; k < stage->n_from; k++) {
        int64_t first = stage->in_first[k], n = stage->in_first[k + 1] - first;
        if (stage->from[k] == array->rank)
            continue;
        if (!has_memory) { /* cut off: an error that is expected */
            MPI_Recv(NULL, 0, MPI_BYTE, stage->from[k], record->tag, array->comm,
                     MPI_STATUS_IGNORE);
            continue;
        }
        cpl_mpi(array, MPI_Recv(packed + first * bytes, (int)(n * bytes), MPI_BYTE, stage->from[k],
                                record->tag, array->comm, MPI_STATUS_IGNORE));
        if (is_packed)
            cpl_unpack(array, record, packed + first * bytes, first, n, in);
    }
    if (is_packed)
        free(packed);
    if (!has_memory && *outcome == CPL_DONE)
        *outcome = CPL_NO_MEMORY;
}

/* The messages of a batch, ready to be sent; batches of indices only need no copy. */
static char *pack_all(const struct cpl_array *array, const struct cpl_stage *stage,
                      const struct cpl_record *record, const struct cpl_batch *out)
{
    int64_t bytes = cpl_record_bytes(array, record);
    if (!record->has_value && !record->has_extra)
        return (char *)out->index;
    char *packed = cpl_array_alloc(out->n, (size_t)bytes);
    for (int k = 0; k < stage->n_to && packed; k++)
        cpl_pack(array, record, out, stage->out_first[k],
                 stage->out_first[k + 1] - stage->out_first[k],
                 packed + stage->out_first[k] * bytes);
    return packed;
}

void cpl_transfer_forward(struct cpl_array *array, int s, const struct cpl_record *record,
                          const struct cpl_batch *out, struct cpl_batch *in,
                          enum cpl_outcome *outcome)
{
    struct cpl_stage *stage = &array->route->stage[s];
    char *packed = NULL;
    *in = (struct cpl_batch){0};
    for (int k = 0; k < stage->n_to && *outcome == CPL_DONE; k++)
        if (!fits(array, record, stage->out_first[k + 1] - stage->out_first[k]))
            *outcome = CPL_NO_MEMORY;
    if (*outcome == CPL_DONE && !(packed = pack_all(array, stage, record, out)))
        *outcome = CPL_NO_MEMORY;
    if (*outcome != CPL_DONE)
        memset(stage->out_first, 0, ((size_t)stage->n_to + 1) * sizeof *stage->out_first);
    if (array->route->is_plain) {
        cpl_transfer_plain(array, record, packed, in, outcome);
    } else {
        if (array->checks_memory)
            check_memory(array, stage, record, outcome);
        if (*outcome != CPL_TOO_MUCH) {
            int n_sends = start_sends(array, stage, record, packed);
            probe_all(array, stage, record);
            receive_all(array, stage, record, in, outcome);
            if (in->index && packed)
                copy_own(array, stage, record, out, in);
            cpl_mpi(array, MPI_Waitall(n_sends, array->requests, MPI_STATUSES_IGNORE));
        }
    }
    if (packed && packed != (char *)out->index)
        free(packed);
}

void cpl_transfer_back(struct cpl_array *array, int s, int tag, const char *answer, char *result)
{
    const struct cpl_stage *stage = &array->route->stage[s];
    size_t size = array->size;
    int n_requests = 0, own = -1;
    if (array->route->is_plain) {
        cpl_transfer_plain_back(array, answer, result);
        return;
    }
    for (int k = 0; k < stage->n_to; k++) {
        int64_t first = stage->out_first[k], n = stage->out_first[k + 1] - first;
        if (stage->to[k] == array->rank)
            own = k;
        else if (n > 0)
            cpl_mpi(array,
                    MPI_Irecv(result + (size_t)first * size, (int)(n * (int64_t)size), MPI_BYTE,
                              stage->to[k], tag, array->comm, &array->requests[n_requests++]));
    }
    for (int k = 0; k < stage->n_from; k++) {
        int64_t first = stage->in_first[k], n = stage->in_first[k + 1] - first;
        if (stage->from[k] != array->rank && n > 0) {
            const char *from = answer ? answer + (size_t)first * size : NULL;
            cpl_mpi(array,
                    MPI_Isend(from, answer ? (int)(n * (int64_t)size) : 0, MPI_BYTE, stage->from[k],
                              tag, array->comm, &array->requests[n_requests++]));
            array->counts.messages_sent++;
        } else if (n > 0 && answer && own >= 0 && result) {
            memcpy(result + (size_t)stage->out_first[own] * size, answer + (size_t)first * size,
                   (size_t)n * size);
        }
    }
    cpl_mpi(array, MPI_Waitall(n_requests, array->requests, MPI_STATUSES_IGNORE));
}
