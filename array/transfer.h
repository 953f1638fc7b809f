/* Carrying requests through one stage, and answers back.
 *
 * A message to a peer holds its requests: n indices, n values (writes), n ranks (where the record
 * asks for them). It is sent even when n is 0, so that the receiver, which probes for the size,
 * needs no other message. Answers are sent only where there were requests. A rank that failed sends
 * no requests and empty answers. Plain routes use MPI_Alltoall and MPI_Alltoallv. */
#ifndef CARPOOL_ARRAY_TRANSFER_H
#define CARPOOL_ARRAY_TRANSFER_H

#include "array_internal.h"

enum { CPL_TAG_COUNT = 1, CPL_TAG_WRITES, CPL_TAG_READS, CPL_TAG_ANSWERS };

struct cpl_record {
    int tag;
    bool has_value;   /* each request carries a value */
    bool has_extra;   /* each request carries a rank */
    bool is_answered; /* received batches have room for values: the answers */
};

/* Requests, as arrays of their members. */
struct cpl_batch {
    int32_t n;
    int64_t *index;
    char *value;
    int32_t *extra;
};

/* Makes room for n requests. Returns false when memory ran out; *batch is then empty. */
bool cpl_batch_make(const struct cpl_array *array, const struct cpl_record *record, int64_t n,
                    struct cpl_batch *batch);

void cpl_batch_free(struct cpl_batch *batch);

/* Sends `out`, which is in the order of the stage's out_first, and receives *in, in the order of
 * the stage's in_first, which is always set. When *outcome is not CPL_DONE, no requests are sent.
 * Collective. *outcome becomes CPL_TOO_MUCH on all ranks or none; on a plain route so does any
 * other failure. The caller frees *in. */
void cpl_transfer_forward(struct cpl_array *array, int stage, const struct cpl_record *record,
                          const struct cpl_batch *out, struct cpl_batch *in,
                          enum cpl_outcome *outcome);

/* Sends the answers to the requests received in a stage (NULL: this rank failed) back to their
 * senders, and receives into result the answers to the requests sent. Collective. */
void cpl_transfer_back(struct cpl_array *array, int stage, int tag, const char *answer,
                       char *result);

/* Adds the requests that a stage has sent to and received from other ranks to *sent and
 * *received. */
void cpl_count_stage(const struct cpl_array *array, int stage, int64_t *sent, int64_t *received);

/* The worst of all ranks' outcomes. Collective. */
enum cpl_outcome cpl_agree_outcome(struct cpl_array *array, enum cpl_outcome mine);

/* Remembers the first code other than MPI_SUCCESS; returns whether this one is MPI_SUCCESS. */
bool cpl_mpi(struct cpl_array *array, int code);

#endif
