/* A decision about an exchange, and the figures that led to it. */
#ifndef CARPOOL_PLAN_SUMMARY_H
#define CARPOOL_PLAN_SUMMARY_H

#include "planner/plan.h"
#include "planner/strategy.h"

#include <stdint.h>

/* The cost of planning. */
struct cpl_plan_cost {
    double ms;             /* time to make the plan, or to read it */
    int32_t times_planned; /* how often it was planned, in ms together; 0: it is not counted */
    int32_t was_kept;      /* 1: the plan was read from CARPOOL_PLAN_CACHE */
    double made_ms;        /* if was_kept: time that making the plan took */
    int32_t together;      /* 1: all ranks planned together (plan_distributed.h); modelled times are
                              then those with a barrier between waves */
};

/* The decision and its figures. Plain data, alike on all ranks. */
struct cpl_plan_summary {
    int32_t decided; /* 1: the plan is to be used; 0: leave the exchange to MPI */
    int32_t known;   /* 1: the figures below are filled */
    char strategy[CPL_STRATEGY_TEXT];
    uint64_t pattern_fingerprint;
    uint64_t plan_fingerprint;
    int32_t in_world; /* 1: the pattern's ranks are those of MPI_COMM_WORLD */
    int64_t n_messages;
    int64_t bytes;      /* sum over all messages of the pattern */
    int64_t n_straight; /* messages above the size limit, which are not in the pattern */
    int64_t straight_bytes;
    int32_t tag, ordinal; /* point-to-point exchanges: the tag of the first message, and the
                             exchange's number among those with that tag */
    int32_t reason;       /* why the plan is not used: enum cpl_left_alone (names.h) */
    struct cpl_metrics direct;
    struct cpl_metrics planned;
    double direct_us; /* modelled time of direct if messages inside nodes cost no more than lanes */
    int32_t reduced;  /* enum cpl_embed_verdict: the lowest among the ranks that send */
    double embedded_us; /* modelled time that the messages add to a reduction which carries them */
    struct cpl_plan_cost cost;
};

/* The most time that a plan which will not be measured may take, as a part of direct's. */
#define CPL_MOST_OF_DIRECT 0.9

/* Processor time that managing adds to a point-to-point message (bench/README.md), in microseconds,
 * with a safety margin. The model does not know it. */
#define CPL_MANAGED_US 0.3

/* What managing adds to an exchange: on the rank that sends or receives most. */
static inline double cpl_plan_matching_us(const struct cpl_plan_summary *s)
{
    const int64_t sends = s->direct.sends_max, recvs = s->direct.recvs_max;
    return CPL_MANAGED_US * (double)(sends > recvs ? sends : recvs);
}

#endif
