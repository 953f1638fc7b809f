/* A census: every rank has records for a few others, and none knows who has some for it. After
 * Hoefler, Siebert and Lumsdaine, Scalable communication protocols for dynamic sparse data exchange
 * (2010): synchronous sends, and a barrier that a rank enters when its own have been received.
 * Nothing is as long as there are ranks; a round takes O(log ranks) and a message for each pair.
 *
 * Order of calls: cpl_census_open, any number of rounds, cpl_census_close. All but close are
 * collective over the communicator. Where a rank fails the others' rounds still end; it must be
 * told to them afterwards (failed). */
#ifndef CARPOOL_CENSUS_H
#define CARPOOL_CENSUS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpl_census {
    MPI_Comm comm; /* of the shim's own */
    int round;
    bool failed;       /* no memory, too much came, or MPI failed: what came is not complete */
    size_t most_bytes; /* that what comes may take here */
    /* What came in the last round: records one after another, in no particular order. */
    unsigned char *records;
    size_t n_bytes, room;
};

/* What a rank sends in a round: to[k] gets the records first[k] .. first[k + 1] - 1. */
struct cpl_census_out {
    int n;
    const int *to; /* different ranks */
    const int64_t *first;
    const void *records;
};

/* Local. comm's errors return. */
void cpl_census_open(struct cpl_census *census, MPI_Comm comm, size_t most_bytes);

/* A round; records are of record_bytes bytes on all ranks. Returns how many came. */
int64_t cpl_census_round(struct cpl_census *census, const struct cpl_census_out *out,
                         size_t record_bytes);

void cpl_census_close(struct cpl_census *census);

#endif
