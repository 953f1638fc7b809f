/* The table of ways (way.h). */
#include "shim/exchange/way.h"

#include "shim/exchange/exchange.h"
#include "shim/meet/agree.h"
#include "shim/state/comm_state.h"

static const struct cpl_way *const ways[] = {&cpl_way_plan, &cpl_way_straight, &cpl_way_packed,
                                             &cpl_way_reduction};

bool cpl_ways_offer(const struct cpl_comm_state *state, struct cpl_exchange *x,
                    struct cpl_agree_output *agreed)
{
    struct cpl_exchange_plans *plans = &x->plans;
    bool made = true;
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
        if (ways[k]->offer)
            plans->n_candidates +=
                ways[k]->offer(state, x, agreed, &plans->candidate[plans->n_candidates],
                               CPL_MOST_CANDIDATES - plans->n_candidates, &made);
    return plans->n_candidates > 0 && cpl_agree_all(state->private_comm, made);
}
