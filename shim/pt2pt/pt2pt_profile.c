/* Point-to-point exchanges that stay with MPI (pt2pt_internal.h). */
#include "shim/meet/agree.h"
#include "shim/pt2pt/pt2pt_internal.h"

#include "shim/report/report.h"
#include "shim/state/comm_state.h"
#include "shim/state/context.h"
#include "shim/wait/collective.h"

#include <stdlib.h>

static int find(const struct cpl_left_exchanges *left, const struct cpl_left_exchange *exchange)
{
    for (int k = 0; k < left->n; k++)
        if (left->exchange[k].hash == exchange->hash)
            return k;
    return -1;
}

bool cpl_profile_has(struct cpl_comm_state *state, const struct cpl_left_exchange *exchange,
                     enum cpl_embed_verdict reduced)
{
    struct cpl_left_exchanges *left = &state->pt2pt->left;
    int k = find(left, exchange);
    if (k >= 0 && left->exchange[k].signature < 0) { /* its messages were learned anew */
        left->exchange[k].signature = exchange->signature;
        left->exchange[k].fraction = exchange->fraction;
    }
    if (k < 0 || cpl_context.settings.mode == CPL_MODE_PROFILE)
        return k >= 0;
    if (left->exchange[k].search == CPL_SEARCH_SHORT && exchange->search == CPL_SEARCH_FULL)
        return false;
    enum cpl_embed_verdict mine = exchange->signature >= 0 ? reduced : CPL_EMBED_ANY_ORDER;
    return !cpl_agree_all(state->private_comm, mine > left->exchange[k].reduced);
}

double cpl_profile_calls(const struct cpl_left_exchange *exchange,
                         const struct cpl_signature *signatures)
{
    int k = exchange->signature;
    return exchange->earlier + (k >= 0 ? exchange->fraction * (double)signatures[k].times : 0);
}

/* Adds the time that earlier planning of the exchange took. */
static void add_earlier(const struct cpl_left_exchanges *left, int k,
                        struct cpl_plan_summary *summary)
{
    if (!left->summary)
        return;
    summary->cost.times_planned += left->summary[k].cost.times_planned;
    summary->cost.ms += left->summary[k].cost.ms;
}

void cpl_profile_left(struct cpl_comm_state *state, const struct cpl_left_exchange *exchange,
                      const struct cpl_plan_summary *summary)
{
    struct cpl_left_exchanges *left = &state->pt2pt->left;
    struct cpl_plan_summary told = *summary;
    int k = find(left, exchange);
    if (k < 0 && left->n == CPL_MOST_LEFT)
        return;
    if (k >= 0)
        add_earlier(left, k, &told);
    double earlier = k >= 0 ? left->exchange[k].earlier : 0;
    if (k < 0)
        k = left->n++;
    left->exchange[k] = *exchange;
    left->exchange[k].earlier = earlier;
    left->exchange[k].reduced = (enum cpl_embed_verdict)summary->reduced;
    if (state->rank == 0 && !left->summary && cpl_report_is_wanted())
        left->summary = calloc(CPL_MOST_LEFT, sizeof *left->summary);
    if (left->summary)
        left->summary[k] = told;
}

void cpl_profile_carried(struct cpl_pt2pt *p, const struct cpl_left_exchange *exchange,
                         struct cpl_plan_summary *summary)
{
    struct cpl_left_exchanges *left = &p->left;
    int k = find(left, exchange);
    if (k < 0)
        return;
    add_earlier(left, k, summary);
    int last = --left->n;
    left->exchange[k] = left->exchange[last];
    if (left->summary)
        left->summary[k] = left->summary[last];
}

struct cpl_record_windows cpl_profile_windows(const struct cpl_comm_state *state)
{
    const struct cpl_pt2pt_turn *turn = &state->pt2pt->plans.turn;
    const struct cpl_pairs *pairs = &turn->pairs;
    double us = 1e-3 / state->size, n = pairs->n;
    if (pairs->n > 0)
        return (struct cpl_record_windows){pairs->n, us * pairs->usual / n, us * pairs->other / n};
    return (struct cpl_record_windows){0, us * (double)turn->ns_mpi,
                                       us * (double)turn->ns_rerouted};
}

void cpl_profile_report(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    const struct cpl_left_exchanges *left = &p->left;
    double mine[2 * CPL_MOST_LEFT] = {0}, most[2 * CPL_MOST_LEFT] = {0}; /* calls, seconds */
    if (left->n == 0 || state->private_comm == MPI_COMM_NULL || !cpl_report_is_wanted())
        return;
    cpl_profile_finish(p);
    for (int k = 0; k < left->n; k++) {
        const struct cpl_left_exchange *exchange = &left->exchange[k];
        const struct cpl_signature *s =
            exchange->signature >= 0 ? &p->learned.signature[exchange->signature] : NULL;
        mine[2 * k] = cpl_profile_calls(exchange, p->learned.signature);
        mine[2 * k + 1] = s && s->durations ? cpl_samples_median(s->durations) : 0;
    }
    cpl_collective_Reduce(mine, most, 2 * left->n, MPI_DOUBLE, MPI_MAX, 0, state->private_comm);
    for (int k = 0; k < left->n && left->summary; k++) {
        struct cpl_record r = {.kind = CPL_KIND_PT2PT,
                               .n_ranks = state->size,
                               .n_communicators = 1,
                               .calls = (int64_t)(most[2 * k] + 0.5),
                               .passed = cpl_pt2pt_has_passed(p),
                               .direct_seconds = most[2 * k] * most[2 * k + 1],
                               .windows = cpl_profile_windows(state),
                               .summary = left->summary[k],
                               .reason = left->summary[k].reason};
        cpl_report_add(&r);
    }
}

void cpl_profile_finish(const struct cpl_pt2pt *p)
{
    struct cpl_timed_batch *timed = &cpl_context.timed;
    if (!timed->of || (p && p != timed->of))
        return;
    struct cpl_signature *s = timed->signature;
    if (s && !s->durations)
        s->durations = calloc(1, sizeof *s->durations);
    if (s && s->durations && timed->end > timed->start)
        cpl_samples_add(s->durations, timed->end - timed->start);
    *timed = (struct cpl_timed_batch){.of = NULL};
}
