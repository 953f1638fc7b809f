/* Planning on the rank that plans for its communicator: from all ranks' send sets to the plan.
 * Local; no MPI calls. Plans are read from CARPOOL_PLAN_CACHE if it has them, else kept there. */
#ifndef CARPOOL_PLAN_ROOT_H
#define CARPOOL_PLAN_ROOT_H

#include "planner/machine.h"
#include "planner/pattern.h"
#include "planner/plan.h"
#include "shim/plan/plan_agree.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* A message as the planning rank receives it; payload_class as in planner/pattern.h. */
struct cpl_handed_message {
    int64_t bytes;
    int32_t dst, payload_class;
};

/* All ranks' send sets as handed in at a desk (meet/desk.h): rank i has messages first[i] ..
 * first[i + 1] - 1. Each header begins with a struct cpl_seat. */
struct cpl_plan_request {
    int32_t n_ranks;
    const unsigned char *headers;
    size_t header_bytes;
    const int64_t *first;
    const struct cpl_handed_message *messages;
    enum cpl_embed_verdict reduced; /* the lowest verdict among ranks that send */
    bool needed;                    /* as in struct cpl_agree_input, like most_plans and search */
    int most_plans;
    enum cpl_search search;
    bool lanes; /* edges of plans inside a node are carried by lanes */
};

/* On rank 0, before the settings are broadcast: makes the directory CARPOOL_PLAN_CACHE. If it
 * cannot be used, warns and empties that setting. */
void cpl_plan_root_start(void);

/* Plans by the settings' strategy and fills the summaries. Returns the number of plans; the caller
 * frees them and, if there are any, *pattern. A strategy that does not fit causes one warning and
 * leaves the exchange to MPI (decided is 0). Returns 0 when planning failed (logged). */
int cpl_plan_root(const struct cpl_plan_request *request,
                  struct cpl_plan_summary summary[CPL_MAX_PLANS], struct cpl_pattern *pattern,
                  struct cpl_plan plan[CPL_MAX_PLANS]);

/* The budget of planning so many messages, in nominal milliseconds. Alike on all ranks. */
double cpl_plan_budget_ms(int64_t n_messages, enum cpl_search search);

/* What planning so many messages takes about, in milliseconds, within a factor of 2.5
 * (bench/results/planning.md), where so many ranks share a core. Alike on all ranks. */
double cpl_plan_root_ms(int64_t n_messages, enum cpl_search search, double ranks_a_core);

/* What plans are made with besides ranks' seats: from the settings' topology and machine file,
 * which one rank reads. Plain data. */
struct cpl_planning_costs {
    struct cpl_costs costs;
    struct cpl_node_shape shape;
    int32_t shape_known;
};

void cpl_plan_root_costs(struct cpl_planning_costs *costs);

/* The machine of ranks with these seats, without distances and lanes. The caller frees *machine. */
enum cpl_status cpl_plan_machine(int32_t n_ranks, const unsigned char *headers, size_t header_bytes,
                                 const struct cpl_planning_costs *costs,
                                 struct cpl_machine *machine, struct cpl_error *error);

/* Makes the machine that plans are made for, from the settings' topology and machine file and the
 * ranks' seats, which begin the headers. The caller frees *machine. */
enum cpl_status cpl_plan_root_machine(int32_t n_ranks, const unsigned char *headers,
                                      size_t header_bytes, struct cpl_machine *machine,
                                      struct cpl_error *error);

/* Decides by the settings and the figures whether a plan that fits is used or tried: sets reason
 * and decided. */
void cpl_plan_decide(struct cpl_plan_summary *summary, bool needed);

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
