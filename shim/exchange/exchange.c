/* What is kept of a communicator's exchanges, made when it is needed; their end and record
 * (neighbor.h). */
#include "shim/exchange/neighbor_internal.h"
#include "shim/meet/meeting.h"
#include "shim/report/report.h"
#include "shim/state/comm_state.h"
#include "shim/state/context.h"
#include "shim/state/memory.h"
#include "shim/wait/collective.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cpl_exchange_make(struct cpl_comm_state *state)
{
    cpl_comm_state_own(state);
    state->exchanges = cpl_memory_need(CPL_N_NEIGHBOR_KINDS * sizeof *state->exchanges,
                                       "the exchanges of a communicator");
    for (int k = 0; k < CPL_N_NEIGHBOR_KINDS; k++) {
        struct cpl_exchange *x = &state->exchanges[k];
        *x = (struct cpl_exchange){.kind = (enum cpl_neighbor_kind)k,
                                   .first_tag = k * CPL_NEIGHBOR_TAGS,
                                   .adjacency = &state->adjacency};
    }
}

static int64_t forwarded(const struct cpl_exchange *x)
{
    int64_t bytes = x->plans.forwarded;
    for (int32_t k = 1; k <= x->plans.n_candidates; k++) {
        struct cpl_executor *executor = cpl_exchange_executor(x, k);
        bytes += executor ? cpl_executor_relay(executor)->forwarded : 0;
    }
    return bytes;
}

void cpl_exchange_release(struct cpl_exchange *x)
{
    struct cpl_exchange_plans *plans = &x->plans;
    plans->forwarded = forwarded(x);
    for (int k = 0; k < plans->n_candidates; k++)
        if (plans->candidate[k].carrier->end)
            plans->candidate[k].carrier->end(&plans->candidate[k]);
    plans->n_candidates = 0;
    cpl_neighbor_data_free(&x->data);
    if (x->kind >= CPL_ALLTOALLV)
        x->adjacency = NULL; /* it was that of the notes */
    cpl_neighbor_notes_free(x->notes);
    x->notes = NULL;
    free(x->learned.sent);
    x->learned.sent = NULL;
}

static enum cpl_left_alone why_not_planned(const struct cpl_exchange *x)
{
    if (x->learned.left != CPL_LEFT_NOT)
        return x->learned.left;
    if (x->plans.summary[0].known)
        return (enum cpl_left_alone)x->plans.summary[0].reason;
    if (x->phase == CPL_PHASE_DIRECT)
        return CPL_LEFT_NO_PLAN;
    bool enough =
        x->nonblocking.n > 0 && x->nonblocking.n >= cpl_settings_learn(&cpl_context.settings);
    return enough ? CPL_LEFT_NO_MEETING : CPL_LEFT_FEW_CALLS;
}

/* Fills in the plan in use, or the one that was considered, and the results of trials. */
static void tell_choice(const struct cpl_exchange *x, struct cpl_record *r)
{
    const struct cpl_trial *trial = &x->plans.trial;
    r->summary = x->plans.summary[0];
    if (x->phase != CPL_PHASE_PLANNED) {
        r->summary.decided = 0;
        r->reason = why_not_planned(x);
        return;
    }
    /* The first candidate carries nonblocking calls, which are not tried. */
    bool carried = trial->chosen > 0 || cpl_exchange_is_served(x);
    const struct cpl_candidate *chosen =
        carried ? &x->plans.candidate[trial->chosen > 0 ? trial->chosen - 1 : 0] : NULL;
    if (chosen) {
        snprintf(r->carrier, sizeof r->carrier, "%s", chosen->carrier->name);
        r->summary = *chosen->summary;
    } else if (x->nonblocking.phase == CPL_STARTED_GIVEN_BACK) {
        r->reason = CPL_LEFT_SLOWED;
    } else if (x->nonblocking.phase == CPL_STARTED_WAITING) {
        r->reason = CPL_LEFT_NO_MEETING;
    } else if (x->calls == 0) { /* nonblocking calls alone: not tried */
        r->reason = CPL_LEFT_NO_GAIN;
    } else if (!trial->running) {
        r->reason = CPL_LEFT_SLOWER;
    }
    r->summary.decided = carried;
    r->trials.last = *trial;
    for (int k = 0; k < x->plans.n_candidates; k++)
        r->trials.tried[k] = *x->plans.candidate[k].summary;
}

void cpl_exchange_record(const struct cpl_exchange *x, MPI_Comm comm, int rank, int n_ranks)
{
    enum { DIRECT, PLANNED, N };
    double mine[N] = {cpl_samples_median(&x->direct), cpl_samples_median(&x->planned)};
    double most[N] = {mine[DIRECT], mine[PLANNED]};
    int64_t bytes = forwarded(x), all_bytes = bytes;
    if (comm != MPI_COMM_NULL) {
        cpl_collective_Reduce(mine, most, N, MPI_DOUBLE, MPI_MAX, 0, comm);
        cpl_collective_Reduce(&bytes, &all_bytes, 1, MPI_INT64_T, MPI_SUM, 0, comm);
    }
    if (rank != 0 || !cpl_report_is_wanted())
        return;
    struct cpl_record r = {.kind = x->kind,
                           .n_ranks = n_ranks,
                           .n_communicators = 1,
                           .calls = x->calls + x->nonblocking.n,
                           .calls_planned = x->calls_planned + x->nonblocking.n_planned,
                           .data_most = x->data_most,
                           .forwarded_bytes = all_bytes};
    /* Nonblocking calls are not timed: assume that they take as long as blocking ones, if there are
     * any. */
    r.direct_seconds = most[DIRECT] * (double)(r.calls - r.calls_planned);
    r.planned_seconds = most[PLANNED] * (double)r.calls_planned;
    tell_choice(x, &r);
    r.ordered = x->order.ordered;
    cpl_report_add(&r);
}

void cpl_exchange_end(struct cpl_exchange *x, struct cpl_comm_state *state)
{
    cpl_pass_settle(x);
    cpl_neighbor_drain(x);
    if (x->calls + x->nonblocking.n > 0 && cpl_report_is_wanted())
        cpl_exchange_record(x, state->private_comm, state->rank, state->size);
    if (cpl_context.exchanges.last == x)
        cpl_context.exchanges.last = NULL;
    cpl_exchange_release(x);
}
