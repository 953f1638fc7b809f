/* The end of an exchange, and its record (exchange.h). */
#include "shim/exchange/exchange.h"

#include "shim/meet/alike.h"

#include "shim/exchange/neighbor_internal.h"
#include "shim/exchange/quiet_calls.h"
#include "shim/report/report.h"
#include "shim/state/comm_state.h"
#include "shim/state/context.h"
#include "shim/wait/collective.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        r->summary = chosen->summary ? *chosen->summary : x->plans.summary[0];
        r->summary.planned.modelled_us = chosen->modelled_us;
        snprintf(r->summary.strategy, sizeof r->summary.strategy, "%s", chosen->name);
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
        const struct cpl_candidate *c = k > 0 ? &x->plans.candidate[k - 1] : NULL;
        r->trials.us[k] = cpl_trial_us(trial, k);
        r->trials.modelled_us[k] = c ? c->modelled_us : x->plans.summary[0].direct.modelled_us;
        snprintf(r->trials.tried[k], sizeof r->trials.tried[k], "%s", c ? c->name : "direct");
    }
}

/* The points of all ranks together: for each the largest mean of a rank, the largest of their
 * negations, their sum and number. */
enum { TIME_MOST, TIME_NEGATED, TIME_N_MOST };
enum { TIME_SUM, TIME_N, TIME_N_SUMS };

struct times {
    double most[CPL_TIMELINE_POINTS][TIME_N_MOST], sums[CPL_TIMELINE_POINTS][TIME_N_SUMS];
};

static struct times own_times(const struct cpl_timeline *t)
{
    struct times own = {.most = {{0}}};
    for (int k = 0; k < CPL_TIMELINE_POINTS; k++) {
        const struct cpl_time_point *p = t && t->point[k].n > 0 ? &t->point[k] : NULL;
        double us = p ? p->seconds / (double)p->n * 1e6 : 0;
        own.most[k][TIME_MOST] = us;
        own.most[k][TIME_NEGATED] = p ? -us : -DBL_MAX;
        own.sums[k][TIME_SUM] = us;
        own.sums[k][TIME_N] = p != NULL;
    }
    return own;
}

static void tell_times(const struct cpl_timeline *t, const struct times *all,
                       struct cpl_record_times *r)
{
    if (!t)
        return;
    r->width = t->width;
    for (int k = 0; k < CPL_TIMELINE_POINTS; k++) {
        const struct cpl_time_point *p = &t->point[k];
        if (p->n == 0)
            continue;
        r->point[k] = (struct cpl_record_time){
            .least_us = (float)-all->most[k][TIME_NEGATED],
            .mean_us = (float)(all->sums[k][TIME_SUM] / all->sums[k][TIME_N]),
            .most_us = (float)all->most[k][TIME_MOST],
            .planned = (float)p->n_planned / (float)p->n,
            .tried = p->n_tried > 0};
    }
}

/* The figures of all ranks together: the slowest one's medians (direct, planned), the sum of bytes.
 */
enum { MOST_DIRECT, MOST_PLANNED, N_MOST };

struct figures {
    double most[N_MOST];
    int64_t forwarded;
    struct times times;
};

static struct figures own_figures(const struct cpl_exchange *x)
{
    return (struct figures){.most = {[MOST_DIRECT] = cpl_samples_median(&x->direct),
                                     [MOST_PLANNED] = cpl_samples_median(&x->planned)},
                            .forwarded = cpl_exchange_forwarded(x),
                            .times = own_times(x->plans.timeline)};
}

static void add_record(const struct cpl_exchange *x, int rank, int n_ranks,
                       const struct figures *figures)
{
    if (rank != 0 || !cpl_report_is_wanted())
        return;
    struct cpl_record r = {.kind = x->kind,
                           .n_ranks = n_ranks,
                           .n_communicators = 1,
                           .calls = x->calls + x->nonblocking.n,
                           .calls_planned = x->calls_planned + x->nonblocking.n_planned,
                           .forwarded_bytes = figures->forwarded};
    /* Nonblocking calls are not timed: assume that they take as long as blocking ones, if there are
     * any. */
    r.direct_seconds = figures->most[MOST_DIRECT] * (double)(r.calls - r.calls_planned);
    r.planned_seconds = figures->most[MOST_PLANNED] * (double)r.calls_planned;
    tell_choice(x, &r);
    if (x->order.units.given > 0)
        r.order = (struct cpl_record_order){.next_kind = x->order.next_kind,
                                            .next_pattern = x->order.next_pattern,
                                            .units = x->order.units,
                                            .calls = x->order.n_calls};
    tell_times(x->plans.timeline, &figures->times, &r.times);
    cpl_report_add(&r);
}

void cpl_exchange_record(const struct cpl_exchange *exchange, int rank, int n_ranks)
{
    struct figures own = own_figures(exchange);
    add_record(exchange, rank, n_ranks, &own);
}

/* Collects the ranks' figures on the first rank. Without a private communicator (the exchange was
 * never planned) it uses the first rank's own figures. */
static void record(const struct cpl_exchange *x, const struct cpl_comm_state *state)
{
    struct figures own = own_figures(x), all = own;
    if (state->private_comm != MPI_COMM_NULL) {
        cpl_collective_Reduce(own.most, all.most, N_MOST, MPI_DOUBLE, MPI_MAX, 0,
                              state->private_comm);
        cpl_collective_Reduce(&own.forwarded, &all.forwarded, 1, MPI_INT64_T, MPI_SUM, 0,
                              state->private_comm);
        cpl_collective_Reduce(own.times.most, all.times.most, CPL_TIMELINE_POINTS * TIME_N_MOST,
                              MPI_DOUBLE, MPI_MAX, 0, state->private_comm);
        cpl_collective_Reduce(own.times.sums, all.times.sums, CPL_TIMELINE_POINTS * TIME_N_SUMS,
                              MPI_DOUBLE, MPI_SUM, 0, state->private_comm);
    }
    add_record(x, state->rank, state->size, &all);
}

void cpl_exchange_end(struct cpl_exchange *exchange, struct cpl_comm_state *state)
{
    cpl_quiet_settle(exchange);
    cpl_neighbor_drain(exchange);
    if (exchange->calls + exchange->nonblocking.n > 0 && cpl_report_is_wanted())
        record(exchange, state);
    free(exchange->plans.timeline);
    exchange->plans.timeline = NULL;
    if (cpl_context.exchanges.last == exchange)
        cpl_context.exchanges.last = NULL;
    cpl_exchange_release(exchange);
}

void cpl_exchange_alike(const struct cpl_comm_state *state, struct cpl_alike *alike)
{
    static const struct cpl_exchange none;
    const struct cpl_serve *s = state->serve;
    cpl_alike_add(alike, s->met_any);
    cpl_alike_add(alike, state->persistent.n);
    for (int k = 0; k < CPL_N_NEIGHBOR_KINDS; k++) {
        const struct cpl_exchange *x = state->exchanges ? &state->exchanges[k] : &none;
        cpl_alike_add(alike, x->calls + x->quiet.granted - x->quiet.remaining);
        cpl_alike_add(alike, x->phase);
        cpl_alike_add(alike, x->plans.n + 8 * x->plans.search.again);
        cpl_alike_add(alike, x->plans.trial.chosen + 8 * x->plans.trial.running);
        cpl_alike_add(alike, x->nonblocking.phase);
    }
}
