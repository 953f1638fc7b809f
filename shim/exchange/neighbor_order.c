/* Ordering the sends of neighborhood exchanges (neighbor_order.h). */
#include "shim/exchange/neighbor_order.h"
#include "shim/meet/agree.h"

#include "shim/base/log.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/state/context.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_MEETING 4
#define STEADY        2 /* times in a row that the same exchange has followed */

static bool is_wanted(void)
{
    return cpl_context.settings.order != CPL_ORDER_OFF &&
           cpl_context.settings.mode != CPL_MODE_PROFILE;
}

/* ---- what follows what ---- */

/* What carries the exchange's calls: 0 for MPI, or one of its plans. */
static int32_t present(const struct cpl_exchange *x)
{
    if (x->phase != CPL_PHASE_PLANNED)
        return 0;
    return x->nonblocking.served ? 1 : x->plans.trial.chosen;
}

/* The relay of a candidate that is a plan; NULL: it is none. */
static struct cpl_relay *find_relay(const struct cpl_exchange *x, int32_t candidate)
{
    struct cpl_executor *executor = cpl_exchange_executor(x, candidate);
    return executor ? cpl_executor_relay(executor) : NULL;
}

static bool is_settled(const struct cpl_exchange *x)
{
    bool decided = x->phase != CPL_PHASE_LEARNING || x->nonblocking.settled;
    return decided &&
           (x->nonblocking.served || !(x->phase == CPL_PHASE_PLANNED && x->plans.trial.running));
}

/* Messages that a call takes this rank; -1: not known (MPI's own MPI_Alltoallv, a way
 * that is no plan). */
static int32_t count_sends(const struct cpl_exchange *x)
{
    const struct cpl_neighbors *out = &x->adjacency->out;
    int32_t candidate = present(x);
    const struct cpl_relay *relay = find_relay(x, candidate);
    if (relay)
        return relay->slice.n_out;
    return candidate > 0 || x->kind >= CPL_ALLTOALLV || !out->first_part
               ? -1
               : out->first_part[out->n_messages];
}

static void note_follower(struct cpl_follower *next, const struct cpl_exchange *x, int32_t sends,
                          bool waits)
{
    bool same = next->number == x->order.number;
    next->changes += !same && next->number > 0;
    next->times = sends >= 0 && same ? next->times + 1 : 1;
    next->number = x->order.number;
    next->sends = sends;
    next->settled = sends >= 0 && is_settled(x) && !x->order.trial.running;
    next->waits = waits;
    next->kind = (int32_t)x->kind;
    next->pattern = x->plans.summary[0].known ? x->plans.summary[0].pattern_fingerprint : 0;
}

static void note_call(struct cpl_exchange *x, bool waits)
{
    struct cpl_exchange *before = cpl_context.exchanges.last;
    int32_t sends = count_sends(x);
    if (x->order.number == 0)
        x->order.number = ++cpl_context.exchanges.n;
    if (before)
        note_follower(&before->order.next, x, before == x ? 0 : sends, waits);
    cpl_context.exchanges.last = x;
}

/* ---- the meeting ---- */

/* By the same exchange, on this rank. */
static bool is_followed(const struct cpl_follower *next)
{
    return next->changes <= CPL_VARIED && next->times >= STEADY && next->settled;
}

/* What a rank tells the others. */
enum { TOLD_ABLE, TOLD_NEXT, TOLD_LATER, TOLD_WAITS, N_TOLD };

/* Room for what this rank sends at once, and for what all tell (N_TOLD words a rank). */
static bool open_meeting(const struct cpl_comm_state *state, const struct cpl_exchange *x,
                         struct cpl_send_order *sends, int32_t **told)
{
    const struct cpl_relay *relay = find_relay(x, present(x));
    int most = relay ? relay->slice.n_out : x->adjacency->out.n;
    *told = calloc((size_t)state->size, N_TOLD * sizeof **told);
    return cpl_send_order_make(sends, state->rank, state->size, most) && *told;
}

/* Puts together what the ranks say. Returns false on all of them when one is not able, or nothing
 * follows; *waits: a call that follows somewhere is only started. */
static bool gather_keys(MPI_Comm comm, const struct cpl_exchange *x, struct cpl_send_order *sends,
                        int32_t *told, bool *waits)
{
    const struct cpl_follower *next = &x->order.next;
    const struct cpl_relay *relay = find_relay(x, present(x));
    int32_t later = relay ? relay->slice.n_out - relay->n_first : 0;
    int32_t mine[N_TOLD] = {is_followed(next), next->sends, later, next->waits};
    if (cpl_collective_Allgather(mine, N_TOLD, MPI_INT32_T, told, N_TOLD, MPI_INT32_T, comm) !=
        MPI_SUCCESS)
        return false;
    bool any_sends = false, all_able = true;
    *waits = false;
    for (int i = 0; i < sends->n_ranks; i++) {
        const int32_t *one = told + (size_t)i * N_TOLD;
        all_able &= one[TOLD_ABLE] != 0;
        any_sends |= one[TOLD_NEXT] > 0;
        *waits |= one[TOLD_WAITS] != 0;
        sends->key[i] = one[TOLD_NEXT] + one[TOLD_LATER];
    }
    return all_able && any_sends;
}

/* The messages of the program, which MPI sends in the order of the neighbours. */
static void list_messages(const struct cpl_neighbors *out, struct cpl_send_order *sends)
{
    for (int k = 0; k < out->n; k++)
        if (out->message[k] >= 0)
            sends->given[sends->n_given++] = out->peer[k];
    for (sends->n = 0; sends->n < out->n_messages; sends->n++) {
        sends->to[sends->n] = out->rank[sends->n];
        sends->weight[sends->n] = out->first_part[sends->n + 1] - out->first_part[sends->n];
    }
}

/* What sending by ourselves needs where MPI has carried the exchange so far: tags of its own and
 * how parallel edges match. Collective, the same result on all ranks. */
static bool prepare_straight(struct cpl_comm_state *state, struct cpl_exchange *x,
                             const struct cpl_send_order *sends)
{
    x->order.message = calloc((size_t)sends->n + 1, sizeof *x->order.message);
    for (int k = 0; k < sends->n && x->order.message; k++)
        x->order.message[k] = (int)sends->order[k];
    if (!cpl_agree_all(state->private_comm, x->order.message))
        return false;
    if (x->ends.out_straight) /* they are known; alike on all ranks */
        return true;
    if (cpl_agree_all(state->private_comm, cpl_neighbor_plan_allocate(x)) &&
        cpl_agree_all(state->private_comm, cpl_neighbor_plan_match(state, x)))
        return true;
    cpl_exchange_release(x);
    return false;
}

/* Makes the order; the same result on all ranks. Collective. */
static bool make(struct cpl_comm_state *state, struct cpl_exchange *x, struct cpl_send_order *sends,
                 bool waits)
{
    struct cpl_order *o = &x->order;
    struct cpl_relay *relay = find_relay(x, present(x));
    cpl_neighbor_order_free(o);
    if (relay)
        cpl_relay_set_order(relay, sends);
    else if (!prepare_straight(state, x, sends))
        return false;
    o->candidate = present(x);
    o->key = sends->key;
    sends->key = NULL;
    bool measured = cpl_context.settings.mode == CPL_MODE_AUTO && !waits && !x->nonblocking.served;
    cpl_trial_begin(&o->trial, 2, measured ? (int32_t)cpl_context.settings.trial : 0);
    o->made = true;
    if (relay)
        cpl_relay_use_order(relay, o->trial.chosen == 1);
    return true;
}

static void log_order(const struct cpl_comm_state *state, const struct cpl_exchange *x)
{
    const struct cpl_order *o = &x->order;
    if (state->rank != 0)
        return;
    cpl_log(CPL_LOG_INFO, "order",
            "%s, %d ranks, before %s: both done after %d sends instead of %d when those that send "
            "most next are sent to first; %s",
            cpl_exchange_kind_name(x->kind), state->size,
            cpl_exchange_kind_name((enum cpl_neighbor_kind)o->next.kind), o->units.ordered,
            o->units.given,
            o->trial.running       ? "to be tried"
            : o->trial.chosen == 1 ? "ordered from now on"
                                   : "not measured faster");
}

/* Whether the ranks have found the same as the last time. */
static bool is_unchanged(const struct cpl_exchange *x, const struct cpl_send_order *sends)
{
    const struct cpl_order *o = &x->order;
    const struct cpl_relay *relay = find_relay(x, present(x));
    return o->made && o->candidate == present(x) && (!relay || relay->has_order) &&
           memcmp(o->key, sends->key, (size_t)sends->n_ranks * sizeof *o->key) == 0;
}

static void find_order(MPI_Comm comm, struct cpl_comm_state *state, struct cpl_exchange *x,
                       struct cpl_send_order *sends, bool waits)
{
    struct cpl_order_units units;
    const struct cpl_relay *relay = find_relay(x, present(x));
    if (relay)
        cpl_relay_list_first(relay, sends);
    else
        list_messages(&x->adjacency->out, sends);
    if (!cpl_send_order_find(comm, sends, &units)) {
        cpl_neighbor_order_free(&x->order);
        return;
    }
    x->order.units = units;
    if (make(state, x, sends, waits))
        log_order(state, x);
}

static void meet(struct cpl_comm_state *state, struct cpl_exchange *x)
{
    struct cpl_send_order sends;
    int32_t *told;
    bool waits;
    bool is_mpis = present(x) == 0;
    bool has_order = is_mpis ? x->kind < CPL_ALLTOALLV : find_relay(x, present(x)) != NULL;
    if (!is_settled(x) || !has_order)
        return;
    MPI_Comm comm = cpl_agree_own(state);
    if (comm == MPI_COMM_NULL)
        return;
    bool ready =
        open_meeting(state, x, &sends, &told) && (state->watched || x->kind >= CPL_ALLTOALLV);
    if (cpl_agree_all(comm, ready) && gather_keys(comm, x, &sends, told, &waits) &&
        !is_unchanged(x, &sends))
        find_order(comm, state, x, &sends, waits);
    cpl_send_order_free(&sends);
    free(told);
}

/* ---- the trial ---- */

/* Notes what the last call and the one after it took. Collective at the end of a round. */
static void judge(const struct cpl_comm_state *state, struct cpl_exchange *x)
{
    struct cpl_order *o = &x->order;
    double slowest_us[CPL_MAX_TRIED];
    bool was_timed = o->is_timed;
    int32_t chosen = o->trial.chosen;
    o->is_timed = false;
    if (cpl_context.exchanges.timed == x) /* nothing has followed */
        cpl_context.exchanges.timed = NULL;
    if (!o->made || (o->trial.running && !was_timed) || !cpl_trial_note(&o->trial, o->own_us))
        return;
    memcpy(slowest_us, o->trial.own_us, sizeof slowest_us);
    cpl_agree_times(state->private_comm, slowest_us, 1e-6, o->trial.n, MPI_MAX);
    cpl_trial_judge(&o->trial, slowest_us);
    if (!o->trial.running && (o->trial.n_trials == 1 || o->trial.chosen != chosen))
        log_order(state, x);
}

bool cpl_neighbor_order_is_tried(const struct cpl_exchange *x)
{
    const struct cpl_order *o = &x->order;
    return o->made && o->trial.running && is_settled(x) && o->candidate == present(x);
}

void cpl_neighbor_order_begin(struct cpl_exchange *x)
{
    x->order.is_timed = true;
    x->order.own_us = 0;
    x->order.start = PMPI_Wtime();
    cpl_context.exchanges.timed = x;
}

bool cpl_neighbor_is_ordered(const struct cpl_exchange *x, int32_t candidate)
{
    const struct cpl_order *o = &x->order;
    return o->made && o->candidate == candidate && is_settled(x) &&
           cpl_trial_candidate(&o->trial) == 1;
}

bool cpl_neighbor_order_waits(void)
{
    return cpl_context.exchanges.timed;
}

void cpl_neighbor_order_ended(const struct cpl_exchange *exchange)
{
    struct cpl_exchange *timed = cpl_context.exchanges.timed;
    if (!timed || timed == exchange)
        return;
    timed->order.own_us = (PMPI_Wtime() - timed->order.start) * 1e6;
    cpl_context.exchanges.timed = NULL;
}

/* ---- calls ---- */

void cpl_neighbor_order(struct cpl_comm_state *state, struct cpl_exchange *exchange)
{
    struct cpl_order *o = &exchange->order;
    if (!is_wanted())
        return;
    judge(state, exchange);
    if (cpl_date_has_come(&o->date, FIRST_MEETING, exchange->calls)) {
        cpl_date_keep(&o->date, exchange->calls, CPL_NEVER);
        if (!o->trial.running || !o->made)
            meet(state, exchange);
    }
    note_call(exchange, false);
}

bool cpl_neighbor_order_is_learned(const struct cpl_exchange *before, const struct cpl_exchange *x)
{
    const struct cpl_follower *next = &before->order.next;
    if (next->changes > CPL_VARIED)
        return true;
    if (next->number != x->order.number)
        return false;
    return x->phase == CPL_PHASE_LEARNING ? next->times >= STEADY : is_followed(next);
}

int64_t cpl_neighbor_order_quiet(const struct cpl_exchange *x)
{
    const struct cpl_order *o = &x->order;
    int64_t until_meeting = cpl_date_quiet(&o->date, 0, x->calls);
    if (!is_wanted())
        return INT64_MAX;
    if (!o->made)
        return until_meeting;
    int64_t until_trial = o->trial.chosen == 1 ? 0 : cpl_trial_quiet(&o->trial);
    return until_trial < until_meeting ? until_trial : until_meeting;
}

void cpl_neighbor_order_started(struct cpl_exchange *exchange)
{
    if (is_wanted())
        note_call(exchange, true);
}

static bool has_served(const struct cpl_comm_state *state)
{
    bool any = false;
    for (int k = 0; state->exchanges && k < CPL_N_NEIGHBOR_KINDS; k++)
        any |= state->exchanges[k].nonblocking.served;
    return any;
}

/* The communicator with the next number whose nonblocking calls are carried: all ranks go through
 * them alike. */
static struct cpl_comm_state *next_served(int64_t after)
{
    struct cpl_comm_state *found = NULL;
    for (struct cpl_comm_state *s = cpl_context.comms.first; s; s = s->next)
        if (s->size == cpl_context.size && has_served(s) && s->serve->id > after &&
            (!found || s->serve->id < found->serve->id))
            found = s;
    return found;
}

void cpl_neighbor_order_served(void)
{
    struct cpl_comm_state *s = is_wanted() ? next_served(-1) : NULL;
    for (; s; s = next_served(s->serve->id))
        for (int k = 0; k < CPL_N_NEIGHBOR_KINDS; k++) {
            struct cpl_exchange *x = &s->exchanges[k];
            if (!x->nonblocking.served)
                continue;
            int64_t n = ++x->order.n_meetings;
            if ((n & (n - 1)) == 0)
                meet(s, x);
        }
}

void cpl_neighbor_order_forget(const struct cpl_exchange *exchange)
{
    if (cpl_context.exchanges.last == exchange)
        cpl_context.exchanges.last = NULL;
    if (cpl_context.exchanges.timed == exchange)
        cpl_context.exchanges.timed = NULL;
}
