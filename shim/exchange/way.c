/* The table of ways (way.h). */
#include "shim/exchange/way.h"

#include "shim/exchange/exchange.h"
#include "shim/meet/agree.h"
#include "shim/state/comm_state.h"

#define WAY(name) &cpl_way_##name,
static const struct cpl_way *const ways[] = {
#include "shim/exchange/ways.def"
};

bool cpl_ways_offer(const struct cpl_comm_state *state, struct cpl_exchange *x,
                    struct cpl_agree_output *agreed)
{
    struct cpl_exchange_plans *plans = &x->plans;
    bool made = true, decided = false;
    for (int k = 0; k < agreed->n; k++)
        decided |= agreed->summary[k].decided;
    if (!decided) /* profile runs, nothing to gain: MPI's */
        return false;
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
        if (ways[k]->offer)
            plans->n_candidates +=
                ways[k]->offer(state, x, agreed, &plans->candidate[plans->n_candidates],
                               CPL_MOST_CANDIDATES - plans->n_candidates, &made);
    return plans->n_candidates > 0 && cpl_agree_all(state->private_comm, made);
}
