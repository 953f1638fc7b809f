/* The order in which the messages of a blocking exchange leave that a plan carries
 * (CARPOOL_ORDER=on): first to the ranks that send most in the exchange that follows
 * ([Ucar-order], planner/order.h).
 *
 * Each rank notes how many messages it has sent in the exchange that came next, on whatever
 * communicator. At the 4th, 8th, 16th ... call of an exchange, unless its plans are being tried,
 * the ranks tell each other, and order the messages that wait for nobody: where a send takes a unit
 * of time and receiving none, no other order lets the last rank do both exchanges sooner. An
 * exchange that follows itself keeps its order. Thread rule: one thread. */
#include "shim/base/log.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/meet/agree.h"
#include "shim/state/context.h"
#include "shim/wait/collective.h"

#include <stdlib.h>

#define FIRST_MEETING 4

/* The relay of the plan that carries the exchange; NULL: none does. */
static struct cpl_relay *find_relay(const struct cpl_exchange *x)
{
    int32_t chosen = x->phase == CPL_PHASE_PLANNED ? x->plans.trial.chosen : 0;
    struct cpl_executor *executor = cpl_exchange_executor(x, chosen);
    return executor ? cpl_executor_relay(executor) : NULL;
}

/* Orders the relay's sends that wait for nothing, if some rank sends anything next; receivers need
 * not know. What a rank forwards in this exchange comes before that. Collective; the same result on
 * all ranks. */
static bool order(const struct cpl_comm_state *state, struct cpl_relay *relay, int32_t next)
{
    const int32_t n = relay->n_first, *to = relay->slice.out_to;
    const int32_t mine[2] = {next, relay->slice.n_out - n};
    int32_t most = 0, *own = relay->own, *key = calloc((size_t)state->size, sizeof mine);
    bool done = cpl_agree_all(state->private_comm, key) &&
                cpl_collective_Allgather(mine, 2, MPI_INT32_T, key, 2, MPI_INT32_T,
                                         state->private_comm) == MPI_SUCCESS;
    for (int32_t r = 0; done && r < state->size; r++) {
        most = key[2 * r] > most ? key[2 * r] : most;
        key[r] = key[2 * r] + key[2 * r + 1];
    }
    for (int32_t k = 1; most > 0 && k < n; k++) { /* by insertion */
        const int32_t edge = own[k];
        int32_t at = k;
        for (; at > 0 && key[to[own[at - 1]]] < key[to[edge]]; at--)
            own[at] = own[at - 1];
        own[at] = edge;
    }
    free(key);
    return most > 0;
}

static void meet(struct cpl_comm_state *state, struct cpl_exchange *x)
{
    struct cpl_order *o = &x->order;
    struct cpl_relay *relay = find_relay(x);
    if (!relay || cpl_agree_own(state) == MPI_COMM_NULL || !order(state, relay, o->next_sends))
        return;
    if (!o->ordered && state->rank == 0)
        cpl_log(CPL_LOG_INFO, "order", "%s, %d ranks: those that send most next come first",
                cpl_exchange_kind_name(x->kind), state->size);
    o->ordered = true;
}

void cpl_neighbor_order(struct cpl_comm_state *state, struct cpl_exchange *x)
{
    if (cpl_context.settings.mode == CPL_MODE_PROFILE || x->kind >= CPL_KIND_ALLGATHER)
        return;
    if (!x->plans.trial.running && x->calls >= FIRST_MEETING && (x->calls & (x->calls - 1)) == 0)
        meet(state, x);
    struct cpl_exchange *before = cpl_context.exchanges.last;
    const struct cpl_relay *relay = find_relay(x);
    int32_t sends = relay ? relay->slice.n_out : 0; /* that a call takes this rank */
    if (!relay && x->kind < CPL_ALLTOALLV)
        sends = x->adjacency->out.first_part[x->adjacency->out.n_messages];
    if (before)
        before->order.next_sends = before == x ? 0 : sends;
    cpl_context.exchanges.last = x;
}
