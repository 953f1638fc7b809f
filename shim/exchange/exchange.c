/* What is kept of a communicator's exchanges, made when it is needed; their end and record
 * (neighbor.h). */
#include "shim/exchange/neighbor_internal.h"
#include "shim/meet/meeting.h"
#include "shim/report/report.h"
#include "shim/state/comm_state.h"
#include "shim/state/context.h"
#include "shim/state/memory.h"
#include "shim/wait/collective.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

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
        if (plans->candidate[k].way->end)
            plans->candidate[k].way->end(&plans->candidate[k]);
    plans->n_candidates = 0;
    plans->carries = NULL;
    cpl_neighbor_data_free(&x->data);
    if (x->kind >= CPL_ALLTOALLV)
        x->adjacency = NULL; /* it was that of the notes */
    cpl_neighbor_notes_free(x->notes);
    x->notes = NULL;
    free(x->learned.sent);
    x->learned.sent = NULL;
}

void cpl_pass_settle(struct cpl_exchange *x)
{
    int64_t n = cpl_pass_take(&x->pass);
    x->calls += n;
    cpl_trial_pass(&x->plans.trial, n);
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
        snprintf(r->way, sizeof r->way, "%s", chosen->way->name);
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
    r->trials.n = trial->n_trials;
    r->trials.calls = trial->tried;
    r->trials.n_tried = trial->rounds > 0 ? trial->n : 0;
    for (int32_t k = 0; k < r->trials.n_tried; k++) {
        const struct cpl_plan_summary *s = k > 0 ? x->plans.candidate[k - 1].summary : NULL;
        r->trials.us[k] = cpl_trial_us(trial, k);
        r->trials.modelled_us[k] =
            s ? s->planned.modelled_us : x->plans.summary[0].direct.modelled_us;
        snprintf(r->trials.tried[k], sizeof r->trials.tried[k], "%s", s ? s->strategy : "direct");
    }
}

/* The figures of all ranks together. */
enum { TIME_MOST, TIME_NEGATED, N_MOST };
enum { TIME_SUM, TIME_N, N_SUMS };

struct figures {
    struct {
        double direct, planned; /* medians */
        double times[CPL_TIMELINE_POINTS][N_MOST];
    } most; /* of a rank */
    struct {
        double forwarded; /* bytes */
        double times[CPL_TIMELINE_POINTS][N_SUMS];
    } sums;
};

#define N_DOUBLES(figures) ((int)(sizeof(figures) / sizeof(double)))

static struct figures own_figures(const struct cpl_exchange *x)
{
    struct figures own = {.most = {cpl_samples_median(&x->direct), cpl_samples_median(&x->planned)},
                          .sums = {.forwarded = (double)forwarded(x)}};
    const struct cpl_timeline *t = x->plans.timeline;
    for (int k = 0; k < CPL_TIMELINE_POINTS; k++) {
        const struct cpl_time_point *p = t && t->point[k].n > 0 ? &t->point[k] : NULL;
        double us = p ? p->seconds / (double)p->n * 1e6 : 0;
        own.most.times[k][TIME_MOST] = us;
        own.most.times[k][TIME_NEGATED] = p ? -us : -DBL_MAX;
        own.sums.times[k][TIME_SUM] = us;
        own.sums.times[k][TIME_N] = p != NULL;
    }
    return own;
}

static void tell_times(const struct cpl_timeline *t, const struct figures *all,
                       struct cpl_record_times *r)
{
    if (!t)
        return;
    r->width = t->width;
    for (int k = 0; k < CPL_TIMELINE_POINTS; k++) {
        const struct cpl_time_point *p = &t->point[k];
        const double *most = all->most.times[k], *sums = all->sums.times[k];
        if (p->n > 0)
            r->point[k] =
                (struct cpl_record_time){.least_us = (float)-most[TIME_NEGATED],
                                         .mean_us = (float)(sums[TIME_SUM] / sums[TIME_N]),
                                         .most_us = (float)most[TIME_MOST],
                                         .planned = (float)p->n_planned / (float)p->n,
                                         .tried = p->n_tried > 0};
    }
}

void cpl_exchange_record(const struct cpl_exchange *x, MPI_Comm comm, int rank, int n_ranks)
{
    struct figures own = own_figures(x), all = own;
    if (comm != MPI_COMM_NULL) {
        cpl_collective_Reduce(&own.most, &all.most, N_DOUBLES(own.most), MPI_DOUBLE, MPI_MAX, 0,
                              comm);
        cpl_collective_Reduce(&own.sums, &all.sums, N_DOUBLES(own.sums), MPI_DOUBLE, MPI_SUM, 0,
                              comm);
    }
    if (rank != 0 || !cpl_report_is_wanted())
        return;
    struct cpl_record r = {.kind = x->kind,
                           .n_ranks = n_ranks,
                           .n_communicators = 1,
                           .calls = x->calls + x->nonblocking.n,
                           .calls_planned = x->calls_planned + x->nonblocking.n_planned,
                           .data_most = x->data_most,
                           .forwarded_bytes = (int64_t)all.sums.forwarded};
    /* Nonblocking calls are not timed: assume that they take as long as blocking ones, if there are
     * any. */
    r.direct_seconds = all.most.direct * (double)(r.calls - r.calls_planned);
    r.planned_seconds = all.most.planned * (double)r.calls_planned;
    tell_choice(x, &r);
    if (x->order.ordered)
        r.order = (struct cpl_record_order){true, x->order.next_kind, x->order.next_pattern};
    tell_times(x->plans.timeline, &all, &r.times);
    cpl_report_add(&r);
}

void cpl_exchange_end(struct cpl_exchange *x, struct cpl_comm_state *state)
{
    cpl_pass_settle(x);
    cpl_neighbor_drain(x);
    if (x->calls + x->nonblocking.n > 0 && cpl_report_is_wanted())
        cpl_exchange_record(x, state->private_comm, state->rank, state->size);
    free(x->plans.timeline);
    x->plans.timeline = NULL;
    if (cpl_context.exchanges.last == x)
        cpl_context.exchanges.last = NULL;
    cpl_exchange_release(x);
}
