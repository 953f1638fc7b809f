/* The order in which a blocking neighborhood exchange's messages leave (CARPOOL_ORDER=on): first to
 * the ranks that send most in the exchange that follows.
 *
 * Each rank notes how many messages it has sent in the exchange that came next, on whatever
 * communicator. At the 4th, 8th, 16th ... call of an exchange, unless its plans are being tried,
 * the ranks look for a better order (meet/send_order.h). In a plan it is one of the messages that
 * leave at once. Where MPI carries the exchange, the library sends the program's messages itself
 * (way_straight.c). An exchange that follows itself keeps its order. Thread rule: one thread. */
#include "shim/base/log.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/meet/agree.h"
#include "shim/state/context.h"

#include <stdlib.h>

#define FIRST_MEETING 4

/* What carries the exchange's calls: 0 for MPI, or one of its candidates. */
static int32_t present(const struct cpl_exchange *x)
{
    return x->phase == CPL_PHASE_PLANNED ? x->plans.trial.chosen : 0;
}

/* The relay of the plan that carries the exchange; NULL: none does. */
static struct cpl_relay *find_relay(const struct cpl_exchange *x)
{
    struct cpl_executor *executor = cpl_exchange_executor(x, present(x));
    return executor ? cpl_executor_relay(executor) : NULL;
}

/* MPI carries it, and it has neighbours. */
static bool is_mpis(const struct cpl_exchange *x)
{
    return x->kind < CPL_ALLTOALLV && present(x) == 0;
}

/* Messages that a call takes this rank; 0: not known. */
static int32_t count_sends(const struct cpl_exchange *x)
{
    const struct cpl_relay *relay = find_relay(x);
    const struct cpl_neighbors *out = &x->adjacency->out;
    return relay ? relay->slice.n_out : is_mpis(x) ? out->first_part[out->n_messages] : 0;
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

/* A message of several parts is in the list several times, side by side. */
static void drop_repeated(int32_t *list, int32_t n)
{
    int32_t n_kept = 0;
    for (int32_t k = 0; k < n; k++)
        if (k == 0 || list[k] != list[k - 1])
            list[n_kept++] = list[k];
}

/* MPI sends the program's messages in the order of the neighbours. */
static bool order_mpis(struct cpl_comm_state *state, struct cpl_exchange *x)
{
    const struct cpl_neighbors *out = &x->adjacency->out;
    int32_t *list = calloc((size_t)out->n + 1, sizeof *list), n = 0;
    for (int k = 0; k < out->n && list; k++)
        if (out->message[k] >= 0)
            list[n++] = out->message[k];
    free(x->order.message);
    x->order.message = NULL;
    x->order.units = (struct cpl_order_units){0, 0};
    if (!cpl_send_order_find(state, x->order.next_sends, list, n, out->rank, &x->order.units) ||
        !(x->ends.out_straight /* how edges match is known; alike on all ranks */ ||
          cpl_neighbor_match(state, x))) {
        free(list);
        return false;
    }
    drop_repeated(list, n);
    x->order.message = list;
    return true;
}

static void meet(struct cpl_comm_state *state, struct cpl_exchange *x)
{
    struct cpl_order *o = &x->order;
    struct cpl_relay *relay = find_relay(x);
    if ((!relay && !is_mpis(x)) || cpl_agree_own(state) == MPI_COMM_NULL)
        return;
    bool better =
        relay ? cpl_relay_order(relay, state, o->next_sends, &o->units) : order_mpis(state, x);
    if (better && state->rank == 0)
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
    bool tried =
        x->phase == CPL_PHASE_LEARNING || (x->phase == CPL_PHASE_PLANNED && x->plans.trial.running);
    if (!tried && x->calls >= FIRST_MEETING && (x->calls & (x->calls - 1)) == 0)
        meet(state, x);
    note_call(x);
}
