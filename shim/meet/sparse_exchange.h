/* A sparse exchange: every rank has records for a few others, and none knows who has some for it.
 * After Hoefler, Siebert and Lumsdaine, Scalable communication protocols for dynamic sparse data
 * exchange (2010): synchronous sends, and a barrier that a rank enters when its own have been
 * received. Nothing is as long as there are ranks; a round takes O(log ranks) and a message for
 * each pair.
 *
 * Order of calls: cpl_sparse_open, any number of rounds, cpl_sparse_close. All but close are
 * collective over the communicator. Where a rank fails the others' rounds still end; it must be
 * told to them afterwards (failed). */
#ifndef CARPOOL_SPARSE_EXCHANGE_H
#define CARPOOL_SPARSE_EXCHANGE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpl_sparse {
    MPI_Comm comm; /* of the shim's own */
    int round;
    bool failed;       /* no memory, too much came, or MPI failed: what came is not complete */
    size_t most_bytes; /* that what comes may take here */
    /* What came in the last round: records one after another, in no particular order. */
    unsigned char *records;
    size_t n_bytes, room;
};

/* What a rank sends in a round: to[k] gets the records first[k] .. first[k + 1] - 1. */
struct cpl_sparse_out {
    int n;
    const int *to; /* different ranks */
    const int64_t *first;
    const void *records;
};

/* Local. comm's errors return. */
void cpl_sparse_open(struct cpl_sparse *sparse, MPI_Comm comm, size_t most_bytes);

/* A round; records are of record_bytes bytes on all ranks. Returns how many came. */
int64_t cpl_sparse_round(struct cpl_sparse *sparse, const struct cpl_sparse_out *out,
                         size_t record_bytes);

void cpl_sparse_close(struct cpl_sparse *sparse);

/* Joining values by keys: every rank has records, and gets for each of its keys what the values of
 * all ranks' records with that key come to. No rank gets all records of a key that many have: they
 * travel to the key's owner (a rank that follows from the key) by log2(ranks) steps of doubling
 * distance, to one rank and from one rank in each, and are joined on the way; the answers go back
 * the same way, each step being a round of a sparse exchange. Any number of ranks. Nothing is as
 * long as there are ranks. */
struct cpl_keyed {
    int64_t n; /* records of this rank; keys may come several times */
    const uint64_t *key;
    int words;       /* of a value; alike on all ranks, like join */
    uint64_t *value; /* n * words; in: this rank's; out: what they come to */
    /* Associative and commutative; no value is joined twice. */
    void (*join)(uint64_t *into, const uint64_t *value);
    size_t most_bytes; /* that the records of others may take here */
};

/* The sparse exchange is open. Collective. False on this rank: it had no memory, too many came, or
 * MPI failed, here or on a rank that it hears from; the values are of no use then. The others'
 * calls still end; it must be told to them afterwards. */
bool cpl_keyed_join(struct cpl_sparse *sparse, const struct cpl_keyed *keyed);

#endif
