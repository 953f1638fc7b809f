/* Planning on the rank that plans for its communicator: from everybody's send sets to the plan.
 * Local; no MPI calls. Plans are read from CARPOOL_PLAN_CACHE where they are there, else
 * kept there. */
#ifndef CARPOOL_PLAN_ROOT_H
#define CARPOOL_PLAN_ROOT_H

#include "planner/machine.h"
#include "planner/pattern.h"
#include "planner/plan.h"
#include "shim/plan/plan_agree.h"

#include <stdbool.h>
#include <stdint.h>

/* A message as gathered; the class is that of planner/pattern.h. */
struct cpl_handed_message {
    int64_t bytes;
    int32_t dst, payload_class;
};

/* Everybody's send sets as handed in at a desk (meet/desk.h), whose headers begin with a struct
 * cpl_seat: rank i has messages first[i] .. first[i + 1] - 1. */
struct cpl_plan_request {
    int32_t n_ranks;
    const unsigned char *headers;
    size_t header_bytes;
    const int64_t *first;
    const struct cpl_handed_message *messages;
    enum cpl_embed_verdict reduced; /* of all ranks that send */
    bool needed;                    /* this and the next as in struct cpl_agree_input */
    int most_plans;
};

/* On rank 0, before its settings become everybody's: makes the directory CARPOOL_PLAN_CACHE, a
 * setting that is empty afterwards, with a warning, if it cannot be used. */
void cpl_plan_root_start(void);

/* Plans by the settings' strategy and fills the summaries. Returns how many plans there are; they
 * and, when there are any, *pattern are the caller's to free. A strategy that does not fit is
 * warned about once and leaves the exchange to MPI (decided is 0). 0: planning failed (logged). */
int cpl_plan_root(const struct cpl_plan_request *request,
                  struct cpl_plan_summary summary[CPL_MAX_PLANS], struct cpl_pattern *pattern,
                  struct cpl_plan plan[CPL_MAX_PLANS]);

/* The machine as it is planned for, by the settings' topology and machine file, of ranks whose
 * seats begin the headers. The caller frees *machine. */
enum cpl_status cpl_plan_root_machine(int32_t n_ranks, const unsigned char *headers,
                                      size_t header_bytes, struct cpl_machine *machine,
                                      struct cpl_error *error);

/* Whether a plan that is not measured promises enough: the model is not more exact than that. */
bool cpl_plan_promises(const struct cpl_plan_summary *summary);

/* Processor time that managing adds to a message (bench/README.md), in microseconds, with room:
 * what the model does not know. */
#define CPL_MANAGED_US 0.3

/* Whether the messages of a point-to-point exchange promise enough when they are managed and take a
 * modelled time. */
bool cpl_plan_managed_promises(const struct cpl_plan_summary *summary, double modelled_us);

/* The same when they ride in reductions, where such come next. */
bool cpl_plan_embedded_promises(const struct cpl_plan_summary *summary);

#endif
