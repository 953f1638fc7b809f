/* What is kept of a communicator's exchanges, made when it is needed (exchange.h). */
#include "shim/exchange/exchange.h"

#include "shim/exchange/neighbor_internal.h"
#include "shim/exchange/neighbor_serve.h"
#include "shim/meet/meeting.h"
#include "shim/state/memory.h"

#include <stdlib.h>

void cpl_exchange_meet(struct cpl_comm_state *state)
{
    static const struct cpl_serve blank = {.request = MPI_REQUEST_NULL};
    state->serve = (struct cpl_serve *)&blank;
}

bool cpl_exchange_begin(struct cpl_comm_state *state)
{
    state->serve = calloc(1, sizeof *state->serve);
    if (!state->serve)
        return false;
    state->serve->request = MPI_REQUEST_NULL;
    if (cpl_context.settings.mode == CPL_MODE_AUTO)
        cpl_date_put_off(&state->serve->date, 0, cpl_meeting_first(state, CPL_PACED_DATE));
    return true;
}

void cpl_exchange_make(struct cpl_comm_state *state)
{
    cpl_comm_state_own(state);
    state->exchanges = cpl_memory_need(CPL_N_NEIGHBOR_KINDS * sizeof *state->exchanges,
                                       "the exchanges of a communicator");
    for (int k = 0; k < CPL_N_NEIGHBOR_KINDS; k++) {
        struct cpl_exchange *x = &state->exchanges[k];
        *x = (struct cpl_exchange){.kind = (enum cpl_neighbor_kind)k,
                                   .first_tag = k * CPL_NEIGHBOR_TAGS,
                                   .adjacency =
                                       k < CPL_ALLTOALLV ? &state->adjacency : &x->learned.own};
    }
}
