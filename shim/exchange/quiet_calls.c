/* Calls of an exchange that pass without a look (quiet_calls.h). */
#include "shim/exchange/quiet_calls.h"

#include "shim/exchange/neighbor_internal.h"
#include "shim/report/report.h"

/* In a row, so that some calls are timed: for a report, or while learning. */
#define MOST_UNTIMED 15

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void cpl_quiet_settle(struct cpl_exchange *x)
{
    int64_t n = cpl_quiet_take(&x->quiet);
    x->calls += n;
    cpl_trial_pass(&x->plans.trial, n);
}

/* Until the ranks meet some calls are timed, to know what all have taken; MPI_Alltoallv's look at
 * the messages before. */
static int64_t count_quiet_learning(const struct cpl_exchange *x)
{
    bool looks = x->kind >= CPL_ALLTOALLV || x->direct.n < CPL_N_SAMPLES;
    return looks ? 0 : least(MOST_UNTIMED, cpl_date_quiet(&x->learned.date, 0, x->calls));
}

/* The number of next calls of x at which there is nothing to do but leave them to MPI. */
static int64_t count_quiet(const struct cpl_exchange *x)
{
    if (x->phase == CPL_PHASE_LEARNING)
        return count_quiet_learning(x);
    if (cpl_trial_candidate(&x->plans.trial) > 0)
        return 0;
    int64_t n = least(CPL_QUIET_MOST, cpl_trial_quiet(&x->plans.trial));
    if ((x->phase == CPL_PHASE_PLANNED && x->kind >= CPL_ALLTOALLV) || cpl_neighbor_plans_again(x))
        n = least(n, cpl_date_quiet(&x->learned.date, 0, x->calls));
    return cpl_report_has_file() ? least(n, MOST_UNTIMED) : n;
}

void cpl_quiet_grant(struct cpl_exchange *x)
{
    if (cpl_context.settings.mode != CPL_MODE_PROFILE && !cpl_context.settings.order)
        cpl_quiet_give(&x->quiet, count_quiet(x));
}
