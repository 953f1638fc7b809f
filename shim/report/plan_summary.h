/* What was decided about an exchange, and the figures that it was decided by. */
#ifndef CARPOOL_PLAN_SUMMARY_H
#define CARPOOL_PLAN_SUMMARY_H

#include "planner/plan.h"
#include "planner/strategy.h"

#include <stdint.h>

/* What planning took. */
struct cpl_plan_cost {
    double ms;             /* that planning took, or reading the plan */
    int32_t times_planned; /* of a point-to-point exchange: in as much time; else 0 */
    int32_t was_kept;      /* 1: the plan was read from CARPOOL_PLAN_CACHE */
    double made_ms;        /* then: that planning took when it was made */
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
    struct cpl_plan_cost cost;
};

#endif
