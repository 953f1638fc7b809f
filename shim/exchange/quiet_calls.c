/* Calls of an exchange that pass without a look (quiet_calls.h). */
#include "shim/exchange/quiet_calls.h"

#include "shim/report/report.h"

#define MOST_REPORTED 15 /* so that some calls are timed for a report */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void cpl_quiet_settle(struct cpl_exchange *x)
{
    int64_t n = cpl_quiet_take(&x->quiet);
    x->calls += n;
    cpl_trial_pass(&x->plans.trial, n);
    cpl_trial_pass(&x->order.trial, n);
}

/* The number of next calls of x at which there is nothing to do but leave them to MPI. */
static int64_t count_quiet(const struct cpl_exchange *x)
{
    if (x->phase == CPL_PHASE_LEARNING || cpl_trial_candidate(&x->plans.trial) > 0)
        return 0;
    int64_t n = least(CPL_QUIET_MOST, cpl_trial_quiet(&x->plans.trial));
    n = least(n, cpl_neighbor_order_quiet(x));
    if (x->phase == CPL_PHASE_PLANNED && x->kind >= CPL_ALLTOALLV)
        n = least(n, cpl_date_quiet(&x->learned.date, 0, x->calls));
    return cpl_report_has_file() ? least(n, MOST_REPORTED) : n;
}

void cpl_quiet_grant(struct cpl_exchange *x)
{
    bool profiled = cpl_context.settings.mode == CPL_MODE_PROFILE;
    if (profiled || (x->order.before && !cpl_neighbor_order_is_learned(x->order.before, x)))
        return;
    x->order.after = cpl_context.exchanges.last;
    cpl_quiet_give(&x->quiet, count_quiet(x));
}
