/* The order in which the messages of a blocking exchange leave that a plan carries
 * (CARPOOL_ORDER=on): first to the ranks that send most in the exchange that follows
 * ([Ucar-order], planner/order.h).
 *
 * Each rank notes how many messages it has sent in the exchange that came next, on whatever
 * communicator. At the 4th, 8th, 16th ... call of an exchange, unless its plans are being tried,
 * the ranks look for a better order of the messages that wait for nobody. An exchange that follows
 * itself keeps its order. Thread rule: one thread. */
#include "shim/base/log.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/meet/agree.h"
#include "shim/state/context.h"
#include "shim/wait/collective.h"

#include <stdlib.h>

#define FIRST_MEETING 4

struct send {
    int32_t key, to, edge; /* key: what the receiver sends next */
};

/* The relay of the plan that carries the exchange; NULL: none does. */
static struct cpl_relay *find_relay(const struct cpl_exchange *x)
{
    int32_t chosen = x->phase == CPL_PHASE_PLANNED ? x->plans.trial.chosen : 0;
    struct cpl_executor *executor = cpl_exchange_executor(x, chosen);
    return executor ? cpl_executor_relay(executor) : NULL;
}

/* Messages that a call takes this rank; 0: not known. */
static int32_t count_sends(const struct cpl_exchange *x)
{
    const struct cpl_relay *relay = find_relay(x);
    const struct cpl_neighbors *out = &x->adjacency->out;
    return relay                     ? relay->slice.n_out
           : x->kind < CPL_ALLTOALLV ? out->first_part[out->n_messages]
                                     : 0;
}

static void note_call(struct cpl_exchange *x)
{
    struct cpl_exchange *before = cpl_context.exchanges.last;
    const struct cpl_plan_summary *s = &x->plans.summary[0];
    cpl_context.exchanges.last = x;
    if (!before)
        return;
    before->order.next_sends = before == x ? 0 : count_sends(x);
    before->order.next_kind = (int32_t)x->kind;
    before->order.next_pattern = s->known ? s->pattern_fingerprint : 0;
}

/* By descending key of the receiver, then by its rank. */
static int compare(const void *a, const void *b)
{
    const struct send *x = a, *y = b;
    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    int by_rank = (x->to > y->to) - (x->to < y->to);
    return by_rank ? by_rank : (x->edge > y->edge) - (x->edge < y->edge);
}

/* when[i]: when rank i has all that this rank sends it; of this rank: when it has sent all. */
static void note_times(int rank, const struct send *sends, int32_t n, int32_t *when)
{
    for (int32_t k = 0; k < n; k++)
        when[sends[k].to] = k + 1;
    when[rank] = n;
}

static int32_t find_last(const int32_t *key, const int32_t *when, int n_ranks)
{
    int32_t last = 0;
    for (int i = 0; i < n_ranks; i++)
        last = when[i] + key[i] > last ? when[i] + key[i] : last;
    return last;
}

/* Sorts the sends, where that is better. key: zeroed room for the keys of all ranks, then for the
 * times of this rank and of all, in both orders. Collective; the same result on all ranks. */
static bool sort(const struct cpl_comm_state *state, int32_t next, struct send *sends, int32_t n,
                 int32_t *key, struct cpl_order_units *units)
{
    const int n_ranks = state->size;
    int32_t *mine = key + n_ranks, *all = mine + 2 * (size_t)n_ranks;
    if (cpl_collective_Allgather(&next, 1, MPI_INT32_T, key, 1, MPI_INT32_T, state->private_comm) !=
        MPI_SUCCESS)
        return false;
    for (int32_t k = 0; k < n; k++)
        sends[k].key = key[sends[k].to];
    note_times(state->rank, sends, n, mine);
    qsort(sends, (size_t)n, sizeof *sends, compare);
    note_times(state->rank, sends, n, mine + n_ranks);
    if (cpl_collective_Allreduce(mine, all, 2 * n_ranks, MPI_INT32_T, MPI_MAX,
                                 state->private_comm) != MPI_SUCCESS)
        return false;
    struct cpl_order_units both = {find_last(key, all, n_ranks),
                                   find_last(key, all + n_ranks, n_ranks)};
    if (both.ordered >= both.given)
        return false;
    *units = both;
    return true;
}

/* Orders the relay's sends that wait for nothing; receivers need not know. `next`: how much this
 * rank sends in the following exchange. Collective; the same result on all ranks. */
static bool order(const struct cpl_comm_state *state, struct cpl_relay *relay, int32_t next,
                  struct cpl_order_units *units)
{
    const int32_t n = relay->n_first;
    int32_t *key = calloc(5 * (size_t)state->size, sizeof *key);
    struct send *sends = calloc((size_t)n + 1, sizeof *sends);
    for (int32_t k = 0; k < n && sends; k++)
        sends[k] = (struct send){.to = relay->slice.out_to[relay->own[k]], .edge = relay->own[k]};
    bool better = cpl_agree_all(state->private_comm, key && sends) &&
                  sort(state, next + relay->slice.n_out - n, sends, n, key, units);
    for (int32_t k = 0; k < n && better; k++)
        relay->own[k] = sends[k].edge;
    free(key);
    free(sends);
    return better;
}

static void meet(struct cpl_comm_state *state, struct cpl_exchange *x)
{
    struct cpl_order *o = &x->order;
    struct cpl_relay *relay = find_relay(x);
    if (!relay || cpl_agree_own(state) == MPI_COMM_NULL)
        return;
    if (order(state, relay, o->next_sends, &o->units) && state->rank == 0)
        cpl_log(CPL_LOG_INFO, "order",
                "%s, %d ranks, before %s: both done after %d sends instead of %d when those that "
                "send most next are sent to first",
                cpl_exchange_kind_name(x->kind), state->size,
                cpl_exchange_kind_name((enum cpl_neighbor_kind)o->next_kind), o->units.ordered,
                o->units.given);
}

void cpl_neighbor_order(struct cpl_comm_state *state, struct cpl_exchange *x)
{
    if (!cpl_context.settings.order || cpl_context.settings.mode == CPL_MODE_PROFILE ||
        x->kind >= CPL_KIND_ALLGATHER)
        return;
    if (!x->plans.trial.running && x->calls >= FIRST_MEETING && (x->calls & (x->calls - 1)) == 0)
        meet(state, x);
    note_call(x);
}
