/* Calls that pass without a look (quiet.h). */
#include "shim/meet/quiet.h"

#include "shim/report/report.h"

#define MOST          (1 << 20)
#define MOST_REPORTED 15 /* for a report some calls are timed */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Calls that passed; none are granted any more. */
static int64_t take(struct cpl_quiet *quiet)
{
    int64_t n = quiet->granted - quiet->left;
    quiet->granted = quiet->left = 0;
    return n;
}

static void give(struct cpl_quiet *quiet, int64_t n)
{
    quiet->granted = quiet->left = n > 0 ? n : 0;
}

/* --- the collectives of a communicator ------------------------------------------------------ */

void cpl_quiet_settle_collectives(struct cpl_comm_state *state)
{
    int64_t n = take(&state->quiet);
    state->pt2pt.n_collectives += n;
    state->serve.n_collectives += n;
}

/* Whether its collectives mean something to messages, to reductions or to nonblocking calls. */
static bool are_looked_at(const struct cpl_comm_state *state)
{
    const struct cpl_pt2pt *p = &state->pt2pt;
    return cpl_context.settings.mode == CPL_MODE_PROFILE || cpl_context.n_started > 0 ||
           cpl_context.n_managed + cpl_context.n_served + cpl_context.n_hosts > 0 || p->embed.on ||
           p->riders.open || (p->started && p->phase != CPL_PT2PT_ALONE);
}

void cpl_quiet_grant_collectives(MPI_Comm comm)
{
    const struct cpl_recent *recent = cpl_context_recent(comm);
    struct cpl_comm_state *state = comm == recent->comm ? recent->state : NULL;
    if (!state || state->inter || are_looked_at(state))
        return;
    cpl_quiet_settle_collectives(state);
    int64_t n = MOST;
    if (state->pt2pt.next_agreement > 0)
        n = least(n, state->pt2pt.next_agreement - state->pt2pt.n_collectives - 1);
    if (state->serve.next_round > 0)
        n = least(n, state->serve.next_round - state->serve.n_collectives - 1);
    give(&state->quiet, n);
}

void cpl_quiet_end_all(void)
{
    for (struct cpl_comm_state *s = cpl_context.first_state; s; s = s->next)
        cpl_quiet_settle_collectives(s);
}

/* --- the calls of an exchange --------------------------------------------------------------- */

void cpl_quiet_settle(struct cpl_exchange *x)
{
    int64_t n = take(&x->quiet);
    x->calls += n;
    cpl_trial_pass(&x->trial, n);
    cpl_trial_pass(&x->order.trial, n);
}

/* Calls of x at which all that is done is to leave them to MPI. */
static int64_t count_quiet(const struct cpl_exchange *x)
{
    if (x->phase == CPL_PHASE_LEARNING || cpl_trial_candidate(&x->trial) > 0 || x->sharing.active)
        return 0;
    int64_t n = least(MOST, cpl_trial_quiet(&x->trial));
    n = least(n, cpl_neighbor_order_quiet(x));
    if (x->phase == CPL_PHASE_PLANNED && x->kind >= CPL_ALLTOALLV)
        n = least(n, x->learned.next_agreement - x->calls - 1);
    return cpl_report_has_file() ? least(n, MOST_REPORTED) : n;
}

void cpl_quiet_grant(struct cpl_exchange *x)
{
    bool profiled = cpl_context.settings.mode == CPL_MODE_PROFILE;
    if (profiled || (x->before && !cpl_neighbor_order_is_learned(x->before, x)))
        return;
    x->after = cpl_context.last_exchange;
    give(&x->quiet, count_quiet(x));
}
