/* What became of the exchanges of a communicator: those that were planned and left to MPI, and
 * records of all for the report. */
#include "shim/meet/agree.h"
#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/report/report.h"
#include "shim/state/comm_state.h"
#include "shim/wait/collective.h"

#include <stdlib.h>

struct cpl_known_exchange *cpl_profile_name(struct cpl_pt2pt *p, const struct cpl_recurring *found)
{
    struct cpl_known_exchanges *known = &p->known;
    int32_t ordinal = 0;
    for (int k = 0; k < known->n; k++) {
        if (known->exchange[k].hash == found->hash)
            return &known->exchange[k];
        ordinal += known->exchange[k].tag == found->tag;
    }
    if (known->n == CPL_MOST_NAMES)
        return NULL;
    known->exchange[known->n] = (struct cpl_known_exchange){
        .hash = found->hash, .tag = found->tag, .ordinal = ordinal, .signature = -1};
    return &known->exchange[known->n++];
}

bool cpl_profile_has(struct cpl_comm_state *state, const struct cpl_known_exchange *x,
                     enum cpl_search search, enum cpl_embed_verdict reduced)
{
    if (!x->left || cpl_context.settings.mode == CPL_MODE_PROFILE)
        return x->left;
    if (x->search == CPL_SEARCH_SHORT && search == CPL_SEARCH_FULL)
        return false;
    enum cpl_embed_verdict mine = x->signature >= 0 ? reduced : CPL_EMBED_ANY_ORDER;
    return !cpl_agree_all(state->private_comm, mine > x->reduced);
}

double cpl_profile_calls(const struct cpl_known_exchange *x, const struct cpl_signature *signatures)
{
    int k = x->signature;
    return x->earlier + (k >= 0 ? x->fraction * (double)signatures[k].times : 0);
}

void cpl_profile_planned(struct cpl_comm_state *state, struct cpl_known_exchange *x, bool left,
                         enum cpl_search search, struct cpl_plan_summary *summary)
{
    struct cpl_known_exchanges *known = &state->pt2pt->known;
    if (state->rank == 0 && !known->summary && cpl_report_is_wanted())
        known->summary = calloc(CPL_MOST_NAMES, sizeof *known->summary);
    struct cpl_plan_summary *told = known->summary ? &known->summary[x - known->exchange] : NULL;
    if (x->left && told) {
        summary->cost.times_planned += told->cost.times_planned;
        summary->cost.ms += told->cost.ms;
    }
    known->n_left += left - x->left;
    x->left = left;
    x->search = search;
    x->reduced = (enum cpl_embed_verdict)summary->reduced;
    if (told)
        *told = *summary;
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

/* Where meetings come throughout, at the 4th, 8th, 16th collective, at most half of the batches
 * come after the last one. */
#define ALL_PER_EARLY 4

/* Whether batches have come to recur after the last meeting only. */
static bool has_met_early_only(const struct cpl_pt2pt *p)
{
    bool any = false;
    for (int k = 0; k < p->learned.n_signatures; k++)
        any |= cpl_pt2pt_recurs(&p->learned.signature[k]);
    return any && ALL_PER_EARLY * p->learned.n_before < p->learned.n_batches;
}

static int why_left_alone(const struct cpl_comm_state *state)
{
    const struct cpl_pt2pt *p = state->pt2pt;
    if (p->phase == CPL_PT2PT_LEARNING && state->meeting.denied)
        return CPL_LEFT_THREADS;
    if (p->phase == CPL_PT2PT_LEARNING && p->reason == CPL_LEFT_NOTHING_RECURS &&
        has_met_early_only(p))
        return CPL_LEFT_NO_MEETING;
    return p->reason ? p->reason : CPL_LEFT_TOO_FEW_COLLECTIVES;
}

static struct cpl_record record_of(const struct cpl_comm_state *state)
{
    return (struct cpl_record){.kind = CPL_KIND_PT2PT,
                               .n_ranks = state->size,
                               .n_communicators = 1,
                               .passed = cpl_pt2pt_has_passed(state->pt2pt)};
}

/* Reports the messages that the first rank sent by MPI, and why. */
static void report_alone(const struct cpl_comm_state *state)
{
    const struct cpl_pt2pt *p = state->pt2pt;
    if (state->rank != 0 || !p->started || p->plans.n > 0 || p->plans.pause > 0 ||
        p->known.n_left > 0)
        return;
    struct cpl_record r = record_of(state);
    r.calls = p->learned.n_batches;
    r.reason = why_left_alone(state);
    cpl_report_add(&r);
}

void cpl_profile_report(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    const struct cpl_known_exchanges *known = &p->known;
    double mine[2 * CPL_MOST_NAMES] = {0}, most[2 * CPL_MOST_NAMES] = {0}; /* calls, seconds */
    if (!cpl_report_is_wanted())
        return;
    report_alone(state);
    if (known->n_left == 0 || state->private_comm == MPI_COMM_NULL)
        return;
    cpl_profile_finish(p);
    for (int k = 0; k < known->n; k++) {
        const struct cpl_known_exchange *x = &known->exchange[k];
        const struct cpl_signature *s =
            x->signature >= 0 ? &p->learned.signature[x->signature] : NULL;
        mine[2 * k] = cpl_profile_calls(x, p->learned.signature);
        mine[2 * k + 1] = s && s->durations ? cpl_samples_median(s->durations) : 0;
    }
    cpl_collective_Reduce(mine, most, 2 * known->n, MPI_DOUBLE, MPI_MAX, 0, state->private_comm);
    for (int k = 0; k < known->n && known->summary; k++) {
        struct cpl_record r = record_of(state);
        if (!known->exchange[k].left)
            continue;
        r.calls = (int64_t)(most[2 * k] + 0.5);
        r.direct_seconds = most[2 * k] * most[2 * k + 1];
        r.windows = cpl_profile_windows(state);
        r.summary = known->summary[k];
        r.reason = known->summary[k].reason;
        cpl_report_add(&r);
    }
}

/* Of each exchange the calls of the rank that sent most of it, as not all ranks send in each, and
 * what its plan did on all ranks; of the communicator what reductions did. */
void cpl_profile_report_plans(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    const struct cpl_embed *embed = &p->line->embed;
    struct cpl_exchange_count count[CPL_MAX_COMBINED_PLANS] = {{0, 0}};
    struct cpl_combined_counts mine[CPL_MAX_COMBINED_PLANS], all[CPL_MAX_COMBINED_PLANS] = {{0}};
    int64_t carried[] = {embed->n_segments, embed->n_late, embed->forwarded};
    int64_t carried_all[] = {0, 0, 0}, sends = 0;
    if (!cpl_report_is_wanted())
        return;
    for (int k = 0; k < p->plans.n; k++)
        mine[k] = cpl_combined_counts(&p->line->combined, k);
    cpl_collective_Reduce(mine, all, p->plans.n * (int)(sizeof *mine / sizeof(int64_t)),
                          MPI_INT64_T, MPI_SUM, 0, state->private_comm);
    cpl_collective_Reduce(carried, carried_all, 3, MPI_INT64_T, MPI_SUM, 0, state->private_comm);
    cpl_collective_Reduce(&embed->n_sends, &sends, 1, MPI_INT64_T, MPI_MAX, 0, state->private_comm);
    cpl_collective_Reduce(p->plans.count, count, 2 * p->plans.n, MPI_INT64_T, MPI_MAX, 0,
                          state->private_comm);
    if (state->rank != 0)
        return;
    for (int k = 0; k < p->plans.n; k++) {
        struct cpl_record r = record_of(state);
        r.calls = count[k].all;
        r.calls_planned = count[k].planned;
        r.forwarded_bytes = all[k].forwarded + (p->plans.embeds[k] ? carried_all[2] : 0);
        r.combined = all[k].sent;
        r.late_combined = all[k].late;
        r.reductions = (struct cpl_record_reductions){embed->n_reductions, sends, carried_all[0],
                                                      carried_all[1], embed->points};
        r.windows = cpl_profile_windows(state);
        r.summary = p->plans.summary[k];
        r.reason = p->reason;
        cpl_report_add(&r);
    }
}
