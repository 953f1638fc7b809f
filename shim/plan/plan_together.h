/* Planning without a root: every rank makes its own slices, from the messages that pass through it
 * (planner/plan/local_plan.h). For strategies whose routes are arithmetic, where collecting all
 * send sets on one rank would take too long or too much memory. */
#ifndef CARPOOL_PLAN_TOGETHER_H
#define CARPOOL_PLAN_TOGETHER_H

#include "shim/plan/plan_agree.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* An exchange as all ranks know it. */
struct cpl_plan_size {
    int64_t n_messages;
    int32_t n_ranks;
    double ranks_a_core; /* on the average, 1 at least */
};

/* Whether the ranks plan an exchange together: where one rank would take too long for it; and in
 * place of its short search, where enough ranks have a core each and the plans will be tried. Alike
 * on all ranks; local. */
bool cpl_plan_is_together(const struct cpl_agree_input *input, const struct cpl_plan_size *size);

/* What that is taken to last, in milliseconds: some two to four times what it takes by the model,
 * unless few ranks get most messages (bench/results/planning.md). */
#define CPL_TOGETHER_MS 10

/* Plans by every candidate of the settings' strategy whose routes are arithmetic, and makes this
 * rank's slices of the fastest by the model with barriers between waves (cpl_plan_cost), to which
 * is added that what comes into a node at once is there late (cpl_port_load_time): up to
 * input->most_plans, each with another number of waves. Fills the output as cpl_plan_agree does;
 * what reductions would carry is not looked at. Returns the same on all ranks; false (nothing to
 * free): one had no memory. comm is the
 * shim's own, its errors return; root tells the user what there is to tell. Collective. */
bool cpl_plan_together(MPI_Comm comm, int root, const struct cpl_agree_input *input,
                       struct cpl_agree_output *output);

#endif
