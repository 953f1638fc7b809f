/* The order in which the combined messages of planned point-to-point exchanges are sent
 * (send_order.h; doc/point-to-point.md) with CARPOOL_ORDER=on: first those to ranks that send most
 * in the next exchange. The ranks' cycles say which exchange comes next (cycle.h). */
#include "shim/base/log.h"
#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/state/comm_state.h"
#include "shim/wait/collective.h"

#include <string.h>

/* The plan of the batch that comes after this rank's batch by `plan`. CPL_NO_PLAN: the order does
 * not matter, because there is none, it is the same, or all ranks meet in a collective before
 * it. */
static int find_next(const struct cpl_cycle *cycle, int plan)
{
    int at = 0;
    while (at < cycle->n && cycle->step[at].plan != plan)
        at++;
    if (at == cycle->n)
        return CPL_NO_PLAN;
    const struct cpl_step *step = &cycle->step[(at + 1) % cycle->n];
    return step->signature == CPL_STEP_COLLECTIVE || step->plan == plan ? CPL_NO_PLAN : step->plan;
}

/* Which plan follows each plan on most ranks; CPL_NO_PLAN: none. The same on all ranks.
 * Collective. */
static bool agree_on_next(const struct cpl_comm_state *state, int *next)
{
    const struct cpl_pt2pt *p = state->pt2pt;
    int32_t mine[CPL_MAX_COMBINED_PLANS][CPL_MAX_COMBINED_PLANS] = {{0}},
            all[CPL_MAX_COMBINED_PLANS][CPL_MAX_COMBINED_PLANS];
    for (int k = 0; k < p->plans.n; k++) {
        next[k] = find_next(&p->cycle, k);
        if (next[k] != CPL_NO_PLAN)
            mine[k][next[k]] = 1;
    }
    if (cpl_collective_Allreduce(mine, all, CPL_MAX_COMBINED_PLANS * CPL_MAX_COMBINED_PLANS,
                                 MPI_INT32_T, MPI_SUM, state->private_comm) != MPI_SUCCESS)
        return false;
    bool any = false;
    for (int k = 0; k < p->plans.n; k++) {
        int32_t most = 0;
        next[k] = CPL_NO_PLAN;
        for (int j = 0; j < p->plans.n; j++)
            if (all[k][j] > most) {
                most = all[k][j];
                next[k] = j;
            }
        any |= next[k] != CPL_NO_PLAN;
    }
    return any;
}

void cpl_pt2pt_order_sends(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    const struct cpl_plan_summary *summary = p->plans.summary;
    int next[CPL_MAX_COMBINED_PLANS];
    memset(p->plans.order, 0, sizeof p->plans.order);
    if (!cpl_context.settings.order || p->plans.n < 2 || !agree_on_next(state, next))
        return;
    for (int k = 0; k < p->plans.n; k++) {
        struct cpl_pt2pt_order *o = &p->plans.order[k];
        if (next[k] == CPL_NO_PLAN)
            continue;
        o->next = next[k];
        int32_t sends = cpl_combined_relay(&p->line->combined, o->next)->slice.n_out;
        if (cpl_relay_order(cpl_combined_relay(&p->line->combined, k), state, sends, &o->units) &&
            state->rank == 0)
            cpl_log(CPL_LOG_INFO, "order",
                    "pt2pt, tag %d, %d ranks, before tag %d: both done after %d sends instead of "
                    "%d when ranks that send most next come first",
                    summary[k].tag, state->size, summary[o->next].tag, o->units.ordered,
                    o->units.given);
    }
}
