/* Collectives that pass without a look (quiet.h). */
#include "shim/meet/quiet.h"

#include "shim/state/hooks.h"

void cpl_quiet_settle_collectives(struct cpl_comm_state *state)
{
    int64_t n = cpl_quiet_take(&state->quiet);
    CPL_EACH_HOOKS(hooks)
    {
        if (hooks->passed)
            hooks->passed(state, n);
    }
}

/* Whether its collectives mean something to all parts. */
static bool are_looked_at(void)
{
    return cpl_context.settings.mode == CPL_MODE_PROFILE || cpl_context.exchanges.n_started > 0 ||
           cpl_context.busy.n_managed + cpl_context.busy.n_served + cpl_context.busy.n_hosts > 0;
}

void cpl_quiet_grant_collectives(MPI_Comm comm)
{
    const struct cpl_recent *recent = cpl_context_recent(comm);
    struct cpl_comm_state *state = comm == recent->comm ? recent->state : NULL;
    if (!state || state->inter || are_looked_at())
        return;
    cpl_quiet_settle_collectives(state);
    int64_t n = CPL_QUIET_MOST;
    CPL_EACH_HOOKS(hooks)
    {
        int64_t its = hooks->quiet ? hooks->quiet(state) : n;
        n = its < n ? its : n;
    }
    cpl_quiet_give(&state->quiet, n);
}

void cpl_quiet_end_all(void)
{
    for (struct cpl_comm_state *s = cpl_context.comms.first; s; s = s->next)
        cpl_quiet_settle_collectives(s);
}
