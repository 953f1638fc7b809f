/* Point-to-point exchanges that were planned and left to MPI. They are not planned again, and the
 * report tells how often they occurred and, in profile runs, how long they took. */
#ifndef CARPOOL_PT2PT_PROFILE_H
#define CARPOOL_PT2PT_PROFILE_H

#include "shim/plan/plan_agree.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct cpl_comm_state;
struct cpl_pt2pt;
struct cpl_record_windows;
struct cpl_signature;

#define CPL_MOST_LEFT 32 /* the most exchanges of a communicator */

/* When a profile run has seen enough to plan, it samples: of this many stretches between
 * collectives it examines one, and counts it this many times. The number is a prime, so that
 * exchanges that take turns are all sampled.
 */
#define CPL_SAMPLED_EVERY 17

/* An exchange that is left to MPI. signature and fraction are this rank's own, the rest is alike on
 * all ranks. */
struct cpl_left_exchange {
    uint64_t hash; /* hash over its ranks and their signatures, so over its pattern (recognise.h) */
    int32_t tag, ordinal;
    enum cpl_embed_verdict
        reduced;            /* lowest verdict among the ranks that send, when it was planned */
    enum cpl_search search; /* for its plan; alike on all ranks */
    int signature;          /* signature that this rank sends; -1: it sends nothing */
    double fraction;        /* fraction of that signature's batches in this exchange */
    double earlier;         /* calls of this rank before its messages were learned anew */
};

/* Calls of this rank, with the signatures learned so far. */
double cpl_profile_calls(const struct cpl_left_exchange *exchange,
                         const struct cpl_signature *signatures);

/* Exchanges that were planned and left to MPI. */
struct cpl_left_exchanges {
    int n;
    struct cpl_left_exchange exchange[CPL_MOST_LEFT];
    struct cpl_plan_summary *summary; /* n summaries for the report, on the first rank; else NULL */
};

/* Whether an exchange was planned before and need not be planned again. A plan that did not pay
 * will not pay later, except in reductions: reduced is the verdict on the reductions that come next
 * on this rank now, and outside of profile runs the answer is false when all sending ranks have a
 * better verdict than before, or a full search for a plan follows a short one. A verdict improves
 * at most three times, so nothing is planned more than five times. Collective, the same on all
 * ranks. */
bool cpl_profile_has(struct cpl_comm_state *state, const struct cpl_left_exchange *exchange,
                     enum cpl_embed_verdict reduced);

/* Notes that an exchange was planned and is left to MPI. On all ranks. */
void cpl_profile_left(struct cpl_comm_state *state, const struct cpl_left_exchange *exchange,
                      const struct cpl_plan_summary *summary);

/* Notes that an exchange is carried from now on. If it was left to MPI before, the time that
 * planning took then is added to the summary. On all ranks. */
void cpl_profile_carried(struct cpl_pt2pt *p, const struct cpl_left_exchange *exchange,
                         struct cpl_plan_summary *summary);

/* A communicator that is sampled has come to its n-th collective: whether its messages are looked
 * at until the next one. Local. */
void cpl_profile_sample(struct cpl_pt2pt *p, int64_t n_collectives);

/* The end of the communicator: adds records of the exchanges that were left to MPI. Collective when
 * there are any. */
void cpl_profile_report(struct cpl_comm_state *state);

/* What MPI and the plans were measured to take, for a record. Local. */
struct cpl_record_windows cpl_profile_windows(const struct cpl_comm_state *state);

/* Timing of batches in profile runs: a batch begins, has been sent, a call that may wait has
 * returned. Local. */
void cpl_profile_begin(struct cpl_pt2pt *p);
void cpl_profile_batch_left(struct cpl_pt2pt *p, struct cpl_signature *signature);
void cpl_profile_call_ended(void);

/* Ends the timing of the batch that is being timed, if it is this communicator's (NULL: of any). */
void cpl_profile_finish(const struct cpl_pt2pt *p);

#endif
