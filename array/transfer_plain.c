/* Transfers of plain routes (transfer_internal.h): counts by MPI_Alltoall, requests and answers by
 * MPI_Alltoallv. Between the two all ranks agree that they have the memory, since every rank must
 * enter the second. */
#include "transfer_internal.h"

#include <limits.h>
#include <stdlib.h>

/* Counts and displacements in bytes, for MPI_Alltoallv. false: too much for an int. */
static bool set_bytes(int n, const int64_t *first, int64_t bytes, int *count, int *start)
{
    if (first[n] > INT_MAX / bytes)
        return false;
    for (int k = 0; k < n; k++) {
        count[k] = (int)((first[k + 1] - first[k]) * bytes);
        start[k] = (int)(first[k] * bytes);
    }
    return true;
}

static void exchange_counts(struct cpl_array *array, struct cpl_stage *stage)
{
    for (int k = 0; k < array->n_ranks; k++) {
        array->send_count[k] = stage->out_first[k + 1] - stage->out_first[k];
        array->recv_count[k] = 0;
    }
    cpl_mpi(array, MPI_Alltoall(array->send_count, 1, MPI_INT64_T, array->recv_count, 1,
                                MPI_INT64_T, array->comm));
    stage->in_first[0] = 0;
    for (int k = 0; k < array->n_ranks; k++)
        stage->in_first[k + 1] = stage->in_first[k] + array->recv_count[k];
}

/* MPICH's MPI_Alltoallv sends no empty messages. */
static void count_sent(struct cpl_array *array, const int64_t *first)
{
    for (int k = 0; k < array->n_ranks; k++)
        array->counts.messages_sent += k != array->rank && first[k + 1] > first[k];
}

void cpl_transfer_plain(struct cpl_array *array, const struct cpl_record *record,
                        const char *packed, struct cpl_batch *in, enum cpl_outcome *outcome)
{
    struct cpl_stage *stage = &array->route->stage[0];
    int64_t bytes = cpl_record_bytes(array, record), most = bytes + (int64_t)array->size;
    int n = array->n_ranks, **at = array->bytes;
    bool is_packed = record->has_value || record->has_extra;
    char *received = NULL;
    exchange_counts(array, stage);
    int64_t total = stage->in_first[n];
    enum cpl_outcome mine = *outcome;
    if (array->checks_memory && mine == CPL_DONE && total > array->options.memory / most)
        mine = CPL_TOO_MUCH;
    if (mine == CPL_DONE) {
        if (total > INT_MAX / most || stage->out_first[n] > INT_MAX / most ||
            !cpl_batch_make(array, record, total, in))
            mine = CPL_NO_MEMORY;
        else if (!(received =
                       is_packed ? cpl_array_alloc(total, (size_t)bytes) : (char *)in->index))
            mine = CPL_NO_MEMORY;
    }
    *outcome = cpl_agree_outcome(array, mine);
    if (*outcome == CPL_DONE) {
        set_bytes(n, stage->out_first, bytes, at[0], at[1]);
        set_bytes(n, stage->in_first, bytes, at[2], at[3]);
        cpl_mpi(array, MPI_Alltoallv(packed, at[0], at[1], MPI_BYTE, received, at[2], at[3],
                                     MPI_BYTE, array->comm));
        for (int k = 0; k < n && is_packed; k++)
            cpl_unpack(array, record, received + stage->in_first[k] * bytes, stage->in_first[k],
                       array->recv_count[k], in);
        count_sent(array, stage->out_first);
    }
    if (is_packed)
        free(received);
}

void cpl_transfer_plain_back(struct cpl_array *array, const char *answer, char *result)
{
    const struct cpl_stage *stage = &array->route->stage[0];
    int **at = array->bytes;
    set_bytes(array->n_ranks, stage->in_first, (int64_t)array->size, at[0], at[1]);
    set_bytes(array->n_ranks, stage->out_first, (int64_t)array->size, at[2], at[3]);
    cpl_mpi(array, MPI_Alltoallv(answer, at[0], at[1], MPI_BYTE, result, at[2], at[3], MPI_BYTE,
                                 array->comm));
    count_sent(array, stage->in_first);
}
