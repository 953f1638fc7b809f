/* Planning on the rank that plans for its communicator: from all ranks' send sets to the plan.
 * Local; no MPI calls. Plans are read from CARPOOL_PLAN_CACHE if it has them, else kept there. */
#ifndef CARPOOL_PLAN_ROOT_H
#define CARPOOL_PLAN_ROOT_H

#include "planner/machine.h"
#include "planner/pattern.h"
#include "planner/plan.h"
#include "shim/meet/agree.h"
#include "shim/meet/decision.h"
#include "shim/plan/plan_agree.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct cpl_plan_set; /* planner/keep/plan_file.h */

/* On rank 0, before the settings are broadcast: makes the directory CARPOOL_PLAN_CACHE. If it
 * cannot be used, warns and empties that setting. */
void cpl_plan_root_start(void);

/* Plans what was handed in at the decision, seats, whose word is enum cpl_embed_verdict, and
 * messages (struct cpl_pattern_entry), by the settings' strategy, and fills the summaries. input:
 * the root's own, of which needed, most_plans and turn count. Returns the plans, which the caller
 * frees like *pattern (cpl_plan_set_free, free); NULL: planning failed (logged). A strategy that
 * does not fit causes one warning and leaves the exchange to MPI (decided is 0). */
struct cpl_plan_set *cpl_plan_root(const struct cpl_decision *decision,
                                   const struct cpl_agree_input *input,
                                   struct cpl_plan_summary summary[CPL_MAX_PLANS],
                                   struct cpl_pattern *pattern);

/* What planning so many messages takes about, in milliseconds, within a factor of 2.5
 * (bench/results/planning.md), where so many ranks share a core. direct: no plan is searched for.
 * Alike on all ranks. */
double cpl_plan_root_ms(int64_t n_messages, enum cpl_search search, double ranks_a_core,
                        bool direct);

/* This rank's, which it reads the first time. */
const struct cpl_planning_costs *cpl_plan_root_costs(void);

/* The machine of ranks with these seats, without distances and lanes. The caller frees *machine. */
enum cpl_status cpl_plan_machine(int32_t n_ranks, const struct cpl_seat *seats,
                                 const struct cpl_planning_costs *costs,
                                 struct cpl_machine *machine, struct cpl_error *error);

/* Makes the machine that plans are made for, from the settings' topology and machine file and the
 * ranks' seats. The caller frees *machine. */
enum cpl_status cpl_plan_root_machine(int32_t n_ranks, const struct cpl_seat *seats,
                                      struct cpl_machine *machine, struct cpl_error *error);

/* Decides by the settings and the figures whether a plan is used or tried: sets reason and decided.
 * fits: it is by the settings' strategy. */
void cpl_plan_decide(struct cpl_plan_summary *summary, bool fits, bool needed);

/* A time of which differences count, in milliseconds. */
static inline double cpl_plan_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Tells of a plan at level info; tried: it will be measured first. */
void cpl_plan_log(const struct cpl_plan_summary *summary, bool tried);

/* Whether a plan that will not be measured promises enough. The threshold is the accuracy of the
 * model. */
bool cpl_plan_promises(const struct cpl_plan_summary *summary);

/* Whether managing the messages of a point-to-point exchange promises enough if its plan carries
 * them. What it gains between nodes must pay: inside a node MPI takes no longer for a message than
 * managing it does (bench/README.md). */
bool cpl_plan_carried_promises(const struct cpl_plan_summary *summary);

/* Whether managing them promises enough if the reductions that come next carry them. */
bool cpl_plan_embedded_promises(const struct cpl_plan_summary *summary);

#endif
