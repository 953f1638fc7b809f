/* Calls of an exchange that pass without a look (meet/quiet.h): MPI carries the exchange, and for
 * some calls nothing is to be decided, measured or noted. */
#ifndef CARPOOL_QUIET_CALLS_H
#define CARPOOL_QUIET_CALLS_H

#include "shim/exchange/neighbor.h"
#include "shim/meet/quiet.h"

/* Whether a call passes without a look, so that it is MPI's. Local. */
static inline bool cpl_quiet_exchange(const struct cpl_neighbor_call *call)
{
    struct cpl_comm_state *state = cpl_quiet_state(call->comm);
    if (!state || cpl_context.busy.first_pending)
        return false;
    if (!state->watched && call->kind < CPL_ALLTOALLV) /* one rank */
        return true;
    if (!state->exchanges)
        return false;
    struct cpl_exchange *x = &state->exchanges[call->kind];
    if (x->quiet.remaining == 0)
        return false;
    x->quiet.remaining--;
    return true;
}

/* cpl_quiet_settle: brings the counters of an exchange up to date and ends its grant.
 * cpl_quiet_grant: if MPI carries the current call, lets the next calls pass until there is
 * something to do. Where messages are ordered none pass: each says what follows what. Local. */
void cpl_quiet_settle(struct cpl_exchange *exchange);
void cpl_quiet_grant(struct cpl_exchange *exchange);

#endif
