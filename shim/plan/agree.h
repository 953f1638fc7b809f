/* Agreement: all ranks of a communicator hand in their send sets, one rank plans, and each
 * gets its slice of the same plan, or all learn that there is none. */
#ifndef CARPOOL_AGREE_H
#define CARPOOL_AGREE_H

#include "planner/plan.h"
#include "planner/strategy.h"
#include "shim/carry/embed_kind.h"
#include "shim/meet/trial.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Plans for one exchange, to be tried against each other. */
#define CPL_MAX_PLANS 2

/* What one rank puts in. */
struct cpl_agree_input {
    bool able; /* false: this rank cannot take part (no memory, ...); then nothing is planned */
    int n_messages; /* messages to be planned, to different ranks, or their parts */
    const int *dst; /* ascending */
    const int64_t *bytes;
    const int32_t
        *payload_class; /* NULL, or of parts (planner/pattern.h): ascending for one rank */
    int64_t n_straight; /* further messages, above the size limit, and their bytes */
    int64_t straight_bytes;
    enum cpl_embed_verdict reduced; /* of the reductions that mostly come next on this rank, in
                                     * which the messages could ride; REFUSED: none do */
    bool needed;                    /* carry it out even if it gains nothing; alike on all ranks */
    bool same_payload;              /* all messages carry the same bytes (allgather) */
    int most_plans;                 /* 1 .. CPL_MAX_PLANS; alike on all ranks */
};

/* What was decided; plain data, alike on all ranks. */
struct cpl_plan_summary {
    int32_t decided; /* 1: the plan is to be used; 0: leave the exchange to MPI */
    int32_t known;   /* 1: the figures below are filled */
    char strategy[CPL_STRATEGY_TEXT];
    uint64_t pattern_fingerprint;
    uint64_t plan_fingerprint;
    int32_t in_world; /* 1: the pattern's ranks are those of MPI_COMM_WORLD */
    int64_t n_messages;
    int64_t bytes;      /* of all messages of the pattern */
    int64_t n_straight; /* above the size limit: not in the pattern */
    int64_t straight_bytes;
    int32_t tag, ordinal; /* of a point-to-point exchange: the first message's, and its number among
                           * the exchanges with that tag */
    int32_t reason;       /* why it is not to be used: enum cpl_left_alone (report.h) */
    struct cpl_metrics direct;
    struct cpl_metrics planned;
    int32_t reduced;    /* enum cpl_embed_verdict: the worst of the ranks that send */
    double embedded_us; /* modelled time that the messages add to a reduction which carries them */
    double plan_ms;     /* that planning took, or reading the plan */
    int32_t times_planned; /* of a point-to-point exchange: in as much time; else 0 */
    int32_t was_kept;      /* 1: the plan was read from CARPOOL_PLAN_CACHE */
    double made_ms;        /* then: that planning took when it was made */
};

/* What all get: plans, fastest by the model first. */
struct cpl_agree_output {
    int n; /* plans whose summary is filled; only those decided on have words */
    struct cpl_plan_summary summary[CPL_MAX_PLANS]; /* alike on all ranks */
    int32_t *words[CPL_MAX_PLANS]; /* this rank's slices, to be freed by the caller; or NULL */
    int32_t n_words[CPL_MAX_PLANS];
};

/* Gathers, plans, spreads. private_comm gets a communicator of the same ranks for rerouted messages
 * unless it is one already. On success of all ranks returns true; else output holds nothing to be
 * freed. Collective over comm, the same result on all ranks. */
bool cpl_agree(MPI_Comm comm, MPI_Comm *private_comm, const struct cpl_agree_input *input,
               struct cpl_agree_output *output);

void cpl_agree_output_free(struct cpl_agree_output *output);

/* cpl_agree_split for rerouted messages, counted in cpl_context. Returns false on all ranks when
 * that fails. Collective. */
bool cpl_agree_private(MPI_Comm comm, int rank, MPI_Comm *private_comm);

/* Makes a communicator of the same ranks as comm in the order of key, without attributes or
 * topology of the program's, whose errors return. Returns false on all ranks when that fails.
 * Collective. */
bool cpl_agree_split(MPI_Comm comm, int key, MPI_Comm *made);

/* A number that ranks of the same node share: set by the user's ranks per node, or the first rank
 * that shares memory. Errors must return on comm. Collective. */
int64_t cpl_agree_node(MPI_Comm comm);

/* The rank that plans: the one that comes first in MPI_COMM_WORLD, so that mostly one process does
 * it for all communicators and tells the user what there is to tell once. rank is the caller's in
 * comm. Collective. */
int cpl_agree_root(MPI_Comm comm, int rank);

/* Times that ranks decide by, put together as whole nanoseconds: sums and maxima of these are the
 * same on all ranks whatever MPI's order of reducing, those of floating-point numbers need not be.
 * n (at most CPL_MAX_TIMES) of this rank's times become those of all, by MPI_SUM or MPI_MAX.
 * Returns false, with the times as they were, when MPI fails. Collective. */
#define CPL_MAX_TIMES 16
bool cpl_agree_times(MPI_Comm comm, double *times, double unit_seconds, int n, MPI_Op op);

/* Notes what a call took on this rank (trial.h); at the end of a round the ranks put their times
 * together. Returns whether a trial has ended. Collective then, over a private communicator. */
bool cpl_agree_trial(MPI_Comm private_comm, struct cpl_trial *trial, double us);

/* Whether all ranks of comm say yes. Collective. */
bool cpl_agree_all(MPI_Comm comm, bool yes);

#endif
