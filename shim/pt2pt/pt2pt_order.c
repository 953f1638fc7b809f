/* The order in which the combined messages of planned point-to-point exchanges are sent
 * (send_order.h; doc/point-to-point.md): first those to ranks that send most in the next exchange.
 * The ranks' cycles say which exchange comes next (cycle.h). */
#include "shim/base/log.h"
#include "shim/meet/agree.h"
#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/state/comm_state.h"
#include "shim/wait/collective.h"

#include <stdlib.h>

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
    int32_t mine[CPL_MAX_RIDE_PLANS][CPL_MAX_RIDE_PLANS] = {{0}},
            all[CPL_MAX_RIDE_PLANS][CPL_MAX_RIDE_PLANS];
    for (int k = 0; k < p->plans.n; k++) {
        next[k] = find_next(&p->cycle, k);
        if (next[k] != CPL_NO_PLAN)
            mine[k][next[k]] = 1;
    }
    if (cpl_collective_Allreduce(mine, all, CPL_MAX_RIDE_PLANS * CPL_MAX_RIDE_PLANS, MPI_INT32_T,
                                 MPI_SUM, state->private_comm) != MPI_SUCCESS)
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

/* Gathers the numbers of messages that each rank sends in each plan, in all and of those that wait
 * for others: two words per plan. NULL on all ranks when memory ran out on one. Collective. */
static int32_t *gather_sends(const struct cpl_comm_state *state)
{
    const struct cpl_pt2pt *p = state->pt2pt;
    int n = 2 * p->plans.n;
    int32_t mine[2 * CPL_MAX_RIDE_PLANS];
    int32_t *all = calloc((size_t)state->size * (size_t)n, sizeof *all);
    for (int k = 0; k < p->plans.n; k++) {
        const struct cpl_relay *relay = cpl_rides_relay(&p->line->rides, k);
        mine[2 * k] = relay->slice.n_out;
        mine[2 * k + 1] = relay->slice.n_out - relay->n_first;
    }
    if (cpl_agree_all(state->private_comm, all) &&
        cpl_collective_Allgather(mine, n, MPI_INT32_T, all, n, MPI_INT32_T, state->private_comm) ==
            MPI_SUCCESS)
        return all;
    free(all);
    return NULL;
}

/* Orders plan k before plan `next`. Collective. */
static void order_plan(struct cpl_comm_state *state, int k, int next, const int32_t *all)
{
    struct cpl_pt2pt *p = state->pt2pt;
    struct cpl_send_order sends;
    struct cpl_order_units units;
    struct cpl_relay *relay = cpl_rides_relay(&p->line->rides, k);
    int n_words = 2 * p->plans.n;
    bool ready = cpl_send_order_make(&sends, state->rank, state->size, relay->slice.n_out);
    if (cpl_agree_all(state->private_comm, ready)) {
        for (int i = 0; i < state->size; i++)
            sends.key[i] = all[i * n_words + 2 * next] + all[i * n_words + 2 * k + 1];
        cpl_relay_list_first(relay, &sends);
        if (cpl_send_order_find(state->private_comm, &sends, &units)) {
            cpl_relay_set_order(relay, &sends);
            cpl_relay_use_order(relay, true);
            p->plans.order[k] = (struct cpl_pt2pt_order){true, next, units};
        }
    }
    cpl_send_order_free(&sends);
}

void cpl_pt2pt_order_sends(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    int next[CPL_MAX_RIDE_PLANS];
    for (int k = 0; k < CPL_MAX_RIDE_PLANS; k++)
        p->plans.order[k].found = false;
    if (cpl_context.settings.order == CPL_ORDER_OFF || p->plans.n < 2 ||
        !agree_on_next(state, next))
        return;
    int32_t *all = gather_sends(state);
    for (int k = 0; k < p->plans.n && all; k++) {
        if (next[k] != CPL_NO_PLAN)
            order_plan(state, k, next[k], all);
        if (p->plans.order[k].found && state->rank == 0)
            cpl_log(CPL_LOG_INFO, "order",
                    "pt2pt, tag %d, %d ranks, before tag %d: both done after %d sends instead of "
                    "%d when ranks that send most next come first; ordered from now on",
                    p->plans.summary[k].tag, state->size, p->plans.summary[next[k]].tag,
                    p->plans.order[k].units.ordered, p->plans.order[k].units.given);
    }
    free(all);
}
