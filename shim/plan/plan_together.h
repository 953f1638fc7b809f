/* Planning without a root: every rank makes its own slices, from the messages that pass through it
 * (planner/plan/local_plan.h). For strategies whose routes are arithmetic, where collecting all
 * send sets on one rank would take too long or too much memory. */
#ifndef CARPOOL_PLAN_TOGETHER_H
#define CARPOOL_PLAN_TOGETHER_H

#include "shim/plan/plan_agree.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether the ranks plan an exchange of so many messages together. Alike on all ranks; local. */
bool cpl_plan_is_together(const struct cpl_agree_input *input, int64_t n_messages);

/* What that is taken to last, in milliseconds: a guess above what was simulated
 * (bench/results/planning.md). */
#define CPL_TOGETHER_MS 10

/* Plans by every candidate of the settings' strategy whose routes are arithmetic, and makes this
 * rank's slices of the fastest by the model with barriers between waves (cpl_plan_cost): up to
 * input->most_plans, each with another number of waves. Fills the output as cpl_plan_agree does;
 * what reductions would carry is not looked at. Returns the same on all ranks; false (nothing to
 * free): one had no memory. comm is the
 * shim's own, its errors return; root tells the user what there is to tell. Collective. */
bool cpl_plan_together(MPI_Comm comm, int root, const struct cpl_agree_input *input,
                       struct cpl_agree_output *output);

#endif
