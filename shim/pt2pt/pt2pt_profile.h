/* Point-to-point exchanges that stay with MPI: those that were planned and not carried. They are
 * not planned again, and the report tells how often they occurred and, in profile runs, how long
 * they took. */
#ifndef CARPOOL_PT2PT_PROFILE_H
#define CARPOOL_PT2PT_PROFILE_H

#include "shim/plan/plan_agree.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct cpl_comm_state;
struct cpl_pt2pt;
struct cpl_signature;

#define CPL_MOST_LEFT 32 /* exchanges of a communicator */

/* When a profile run has seen enough to plan, it looks at the messages between two collectives in
 * so many, and counts them so many times: a prime, so that exchanges that take turns are all met.
 */
#define CPL_SAMPLED_EVERY 17

/* An exchange that is left to MPI: what is alike on all ranks, and what this rank sends. */
struct cpl_left_exchange {
    uint64_t hash; /* of its ranks and their signatures, hence of its pattern (recognise.h) */
    int32_t tag, ordinal;
    enum cpl_embed_verdict reduced; /* of all ranks that send, when it was planned */
    int signature;                  /* -1: nothing */
    double share;                   /* of that signature's batches */
};

/* Exchanges that were planned and left to MPI. */
struct cpl_left_exchanges {
    int n;
    struct cpl_left_exchange exchange[CPL_MOST_LEFT];
    struct cpl_plan_summary *summary; /* n of them, for a report, on the first rank; else NULL */
};

/* Whether that exchange has been planned before and what it came to stands: then it need not be
 * planned again. A plan that does not pay never does, except in reductions: reduced says of those
 * that come next on this rank now whether the messages could ride in them, and outside of profile
 * runs the answer is no when all ranks that send have come to better ones. Since a verdict is
 * better twice at most, nothing is planned more than three times. Collective, the same on all
 * ranks. */
bool cpl_profile_has(struct cpl_comm_state *state, const struct cpl_left_exchange *exchange,
                     enum cpl_embed_verdict reduced);

/* An exchange was planned and is left to MPI. On all ranks. */
void cpl_profile_left(struct cpl_comm_state *state, const struct cpl_left_exchange *exchange,
                      const struct cpl_plan_summary *summary);

/* An exchange is carried from now on, whatever was said of it before; what planning it took then is
 * added to the summary. On all ranks. */
void cpl_profile_carried(struct cpl_pt2pt *p, const struct cpl_left_exchange *exchange,
                         struct cpl_plan_summary *summary);

/* A communicator that is sampled has come to its n-th collective: whether its messages are looked
 * at until the next one. Local. */
void cpl_profile_sample(struct cpl_pt2pt *p, int64_t n_collectives);

/* The end of the communicator: adds records of the exchanges that were left to MPI. Collective when
 * there are any. */
void cpl_profile_report(struct cpl_comm_state *state);

/* Times, in profile runs: a batch begins, has left, a call that may wait has returned. Local. */
void cpl_profile_begin(struct cpl_pt2pt *p);
void cpl_profile_batch_left(struct cpl_pt2pt *p, struct cpl_signature *signature);
void cpl_profile_call_ended(void);

/* Takes the time of the batch that is timed, if it is this communicator's (NULL: any). */
void cpl_profile_finish(const struct cpl_pt2pt *p);

#endif
