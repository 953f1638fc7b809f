/* A sparse exchange: every rank has records for a few others, and none knows who has some for it.
 * After Hoefler, Siebert and Lumsdaine, Scalable communication protocols for dynamic sparse data
 * exchange (2010): synchronous sends, and a barrier that a rank enters when its own have been
 * received. Nothing is as long as there are ranks; a round takes O(log ranks) and a message for
 * each pair.
 *
 * Order of calls: any number of rounds, collective over the communicator. Where a rank fails the
 * others' rounds still end; it must be told to them afterwards (failed). */
#ifndef CARPOOL_SPARSE_EXCHANGE_H
#define CARPOOL_SPARSE_EXCHANGE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpl_sparse {
    MPI_Comm comm;     /* of the shim's own; its errors return */
    size_t most_bytes; /* that what comes may take here */
    /* Zeros at first: */
    int round;
    bool failed; /* no memory, too much came, or MPI failed: what came is not complete */
    /* What came in the last round: records one after another, in no particular order. The caller
     * frees them at the end. */
    unsigned char *records;
    size_t n_bytes, room;
};

/* A round, in which record k of n goes to rank to[k], those for the same rank one after another;
 * records are of record_bytes bytes on all ranks. Returns how many came. */
int64_t cpl_sparse_round(struct cpl_sparse *sparse, const int *to, const void *records, int64_t n,
                         size_t record_bytes);

#endif
