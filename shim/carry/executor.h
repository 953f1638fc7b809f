/* The executor: carries one exchange by this rank's slice of a plan.
 *
 * All receives are posted first; every combined message leaves as soon as its segments are at hand.
 * Nothing is allocated unless payloads have outgrown the buffers.
 *
 * On the wire a combined message is: flags and exchange number (two 32-bit words), when the lengths
 * differ from those of the edge's last message the table of lengths, and the payloads of its
 * segments one after the other. Payloads that exceed the room both sides have agreed on follow in a
 * second message; both sides then enlarge the room alike.
 *
 * Order of calls: create on all ranks; start, and wait or progress, on all ranks as often as
 * wanted; destroy. Thread rule: one at a time, and one exchange at a time. */
#ifndef CARPOOL_EXECUTOR_H
#define CARPOOL_EXECUTOR_H

#include "shim/carry/relay.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct cpl_executor;

/* Size of a payload that the caller sends straight this time. */
#define CPL_STRAIGHT INT64_C(-1)

/* The largest payload that may ride. */
#define CPL_MAX_PAYLOAD (INT64_C(1) << 30)

/* Where the executor gets this rank's payloads and leaves what arrives. Functions return an MPI
 * error code; the first one that is not MPI_SUCCESS becomes the result of the run, which goes on
 * nevertheless: others wait for it. */
struct cpl_payloads {
    void *context;
    /* Bytes of this rank's payload k (0 .. CPL_MAX_PAYLOAD), or CPL_STRAIGHT. The same answer
     * during one run. */
    int64_t (*size)(void *context, int32_t k);
    /* Writes payload k to `to`, exactly size bytes. */
    int (*pack)(void *context, int32_t k, unsigned char *to);
    /* A payload of rank owner has arrived: bytes at data, or CPL_STRAIGHT when the owner sends it
     * straight. */
    int (*deliver)(void *context, int32_t owner, const unsigned char *data, int64_t bytes);
};

/* An executor of a slice (rank_plan.h), whose words it takes over and frees. comm is the private
 * communicator; tags from first_tag to first_tag + CPL_EXECUTOR_TAGS - 1 are its own. Returns NULL
 * when memory ran out or the slice is damaged (the words are then freed too). Local. */
struct cpl_executor *cpl_executor_create(int32_t *words, int32_t n_words, MPI_Comm comm,
                                         int first_tag);

#define CPL_EXECUTOR_TAGS 64

/* Gives the edges between ranks of a node lanes (lanes.h); where that fails MPI carries them all.
 * Collective over comm, the communicator of cpl_executor_create; executor NULL: the caller has
 * none, and no other rank will get lanes. */
void cpl_executor_open_lanes(struct cpl_executor *executor, MPI_Comm comm);

/* Carries one exchange: start, then wait, or, never waiting, progress until it returns true. The
 * exchange's MPI_SUCCESS or first error is returned, or in *result. What *payloads points to is
 * copied, its context must live until then. */
void cpl_executor_start(struct cpl_executor *executor, const struct cpl_payloads *payloads);
bool cpl_executor_progress(struct cpl_executor *executor, int *result);
int cpl_executor_wait(struct cpl_executor *executor);

/* What its messages wait for, the order in which they leave, and what it has forwarded. */
struct cpl_relay *cpl_executor_relay(struct cpl_executor *executor);

void cpl_executor_destroy(struct cpl_executor *executor);

#endif
