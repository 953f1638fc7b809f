/* A decision: all ranks of a communicator hand in what they know, one rank has it all and decides,
 * and all get an answer. Every step that can fail on one rank ends with all ranks knowing of it:
 * after a step that returned false, it has failed on all of them.
 *
 * Order of calls: open; hand in, as often as wanted, each time forgetting what was handed in
 * before; answer, spread; close. All but open and close are collective over the communicator. */
#ifndef CARPOOL_DECISION_H
#define CARPOOL_DECISION_H

#include "shim/meet/agree.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpl_decision {
    MPI_Comm comm;
    int rank, n_ranks;
    /* What was handed in, in the order of ranks; at the root only, the others have NULL. */
    struct cpl_seat *seats; /* one for each rank */
    int *first;             /* n_ranks + 1: rank i has the records first[i] .. first[i + 1] - 1 */
    void *records;
    int *counts; /* what each rank is to get by spread, set by the root, which forgets `first` */
};

/* What a rank hands in. */
struct cpl_handed_in {
    bool able;    /* false: it cannot take part; then nobody does */
    bool seated;  /* its seat, too; alike on all ranks */
    int64_t word; /* of the seat */
    const void *records;
    int n;               /* of these; ranks may have different numbers */
    size_t record_bytes; /* alike on all ranks; 0: nobody has any */
};

/* Opens a decision of the communicator's first rank, the root, whose errors return; the end of the
 * block closes it. Local. */
#define CPL_DECISION(name, comm)                                                                   \
    __attribute__((cleanup(cpl_decision_close))) struct cpl_decision name = cpl_decision_open(comm)
struct cpl_decision cpl_decision_open(MPI_Comm comm);
void cpl_decision_close(struct cpl_decision *decision);

static inline bool cpl_decision_is_root(const struct cpl_decision *decision)
{
    return decision->rank == 0;
}

bool cpl_decision_hand_in(struct cpl_decision *decision, const struct cpl_handed_in *mine);

/* The root's bytes at `answer` become everybody's. */
void cpl_decision_answer(struct cpl_decision *decision, void *answer, size_t bytes);

/* Everybody gets items of its own: decision->counts[i] for rank i, one rank's after another's at
 * `items`. Only the root's `able` (false: there are none to be had) and `items` count. *mine is the
 * caller's to free, *n how many it has. */
bool cpl_decision_spread(struct cpl_decision *decision, bool able, const void *items,
                         size_t item_bytes, void **mine, int *n);

#endif
