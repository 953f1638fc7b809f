/* Agreement: all ranks of a communicator hand in their send sets, one rank plans, and each
 * gets its slice of the same plan, or all learn that there is none. */
#ifndef CARPOOL_PLAN_AGREE_H
#define CARPOOL_PLAN_AGREE_H

#include "planner/plan.h"
#include "planner/strategy.h"
#include "shim/carry/embed_kind.h"
#include "shim/report/plan_summary.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Plans for one exchange, to be tried against each other. */
#define CPL_MAX_PLANS 2

/* What one rank puts in. */
struct cpl_agree_input {
    bool able; /* false: this rank cannot take part (no memory, ...); then nothing is planned */
    int n_messages; /* messages to be planned, to different ranks */
    const int *dst; /* ascending */
    const int64_t *bytes;
    int64_t n_straight; /* further messages, above the size limit, and their bytes */
    int64_t straight_bytes;
    enum cpl_embed_verdict reduced; /* of the reductions that mostly come next on this rank, in
                                     * which the messages could ride; REFUSED: none do */
    bool needed;                    /* carry it out even if it gains nothing; alike on all ranks */
    bool same_payload;              /* all messages carry the same bytes (allgather) */
    int most_plans;                 /* 1 .. CPL_MAX_PLANS; alike on all ranks */
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
bool cpl_plan_agree(MPI_Comm comm, MPI_Comm *private_comm, const struct cpl_agree_input *input,
                    struct cpl_agree_output *output);

void cpl_agree_output_free(struct cpl_agree_output *output);

#endif
