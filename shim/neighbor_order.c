/* Ordering the sends of neighborhood exchanges (neighbor_order.h). */
#include "neighbor_order.h"

#include "collective.h"
#include "context.h"
#include "log.h"
#include "neighbor_internal.h"
#include "planner/order.h"

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
    return x->served ? 1 : x->trial.chosen;
}

static bool is_settled(const struct cpl_exchange *x)
{
    bool decided = x->phase != CPL_PHASE_LEARNING || x->settled;
    return decided && (x->served || !(x->phase == CPL_PHASE_PLANNED && x->trial.running));
}

/* Messages that a call takes this rank; -1: not known (MPI's own MPI_Alltoallv). */
static int32_t count_sends(const struct cpl_exchange *x)
{
    const struct cpl_neighbors *out = &x->adjacency->out;
    int32_t candidate = present(x);
    if (candidate > 0)
        return cpl_executor_n_sends(x->executors[candidate - 1]);
    return x->kind >= CPL_ALLTOALLV || !out->first_part ? -1 : out->first_part[out->n_messages];
}

static void note_follower(struct cpl_follower *next, const struct cpl_exchange *x, int32_t sends,
                          bool waits)
{
    next->times = sends >= 0 && next->number == x->order.number ? next->times + 1 : 1;
    next->number = x->order.number;
    next->sends = sends;
    next->settled = sends >= 0 && is_settled(x) && !x->order.trial.running;
    next->waits = waits;
    next->kind = (int32_t)x->kind;
    next->pattern = x->summary[0].known ? x->summary[0].pattern_fingerprint : 0;
}

static void note_call(struct cpl_exchange *x, bool waits)
{
    struct cpl_exchange *before = cpl_context.last_exchange;
    int32_t sends = count_sends(x);
    if (x->order.number == 0)
        x->order.number = ++cpl_context.n_exchanges;
    if (before)
        note_follower(&before->order.next, x, before == x ? 0 : sends, waits);
    cpl_context.last_exchange = x;
}

/* ---- the meeting ---- */

/* What a rank tells the others. */
enum { TOLD_ABLE, TOLD_NEXT, TOLD_LATER, TOLD_WAITS, N_TOLD };

/* What one rank sends at once: messages, which take `weight` sends each. */
struct list {
    int n;
    int32_t *to, *weight;
    int64_t *order; /* of the messages, the new one */
};

struct meeting {
    int32_t *told;  /* N_TOLD a rank */
    int32_t *key;   /* per rank */
    int64_t *wide;  /* the same */
    int64_t *first; /* the send lists of all ranks, of which this rank's only is filled */
    int32_t *when;  /* per rank when it has all, in the given order and in the new one, and two
                     * words for the bounds; of all ranks after that */
    struct list list;
    bool any_waits;
};

static bool open_meeting(struct meeting *m, const struct cpl_exchange *x, int n_ranks)
{
    size_t n = (size_t)n_ranks, most = (size_t)x->adjacency->out.n + 1;
    int32_t candidate = present(x);
    if (candidate > 0)
        most = (size_t)cpl_executor_n_sends(x->executors[candidate - 1]) + 1;
    *m = (struct meeting){.told = calloc(n, N_TOLD * sizeof *m->told),
                          .key = calloc(n, sizeof *m->key),
                          .wide = calloc(n, sizeof *m->wide),
                          .first = calloc(n + 1, sizeof *m->first),
                          .when = calloc(2 * (2 * n + 2), sizeof *m->when),
                          .list = {.to = calloc(most, sizeof *m->list.to),
                                   .weight = calloc(most, sizeof *m->list.weight),
                                   .order = calloc(most, sizeof *m->list.order)}};
    return m->told && m->key && m->wide && m->first && m->when && m->list.to && m->list.weight &&
           m->list.order;
}

static void close_meeting(struct meeting *m)
{
    free(m->told);
    free(m->key);
    free(m->wide);
    free(m->first);
    free(m->when);
    free(m->list.to);
    free(m->list.weight);
    free(m->list.order);
}

/* Puts together what the ranks say. Returns false on all of them when one is not able, or nothing
 * follows. */
static bool gather_keys(MPI_Comm comm, const struct cpl_exchange *x, int n_ranks, struct meeting *m)
{
    const struct cpl_follower *next = &x->order.next;
    int32_t candidate = present(x);
    int32_t mine[N_TOLD] = {next->times >= STEADY && next->settled, next->sends, 0, next->waits};
    if (candidate > 0)
        mine[TOLD_LATER] = cpl_executor_n_sends(x->executors[candidate - 1]) -
                           cpl_executor_first_sends(x->executors[candidate - 1], m->list.to);
    if (cpl_collective_Allgather(mine, N_TOLD, MPI_INT32_T, m->told, N_TOLD, MPI_INT32_T, comm) !=
        MPI_SUCCESS)
        return false;
    bool any_sends = false, all_able = true;
    for (int i = 0; i < n_ranks; i++) {
        const int32_t *told = m->told + (size_t)i * N_TOLD;
        all_able &= told[TOLD_ABLE] != 0;
        any_sends |= told[TOLD_NEXT] > 0;
        m->any_waits |= told[TOLD_WAITS] != 0;
        m->key[i] = told[TOLD_NEXT] + told[TOLD_LATER];
        m->wide[i] = m->key[i];
    }
    return all_able && any_sends;
}

static void list_messages(const struct cpl_exchange *x, struct list *list)
{
    const struct cpl_neighbors *out = &x->adjacency->out;
    int32_t candidate = present(x);
    list->n = candidate > 0 ? cpl_executor_first_sends(x->executors[candidate - 1], list->to)
                            : out->n_messages;
    for (int m = 0; m < list->n; m++) {
        list->weight[m] = candidate > 0 ? 1 : out->first_part[m + 1] - out->first_part[m];
        if (candidate == 0)
            list->to[m] = out->rank[m];
    }
}

static void note_arrival(int32_t *when, int32_t to, int32_t at)
{
    when[to] = at > when[to] ? at : when[to];
}

/* When the receivers have this rank's messages in the order of before: that of the plan, or of the
 * neighbours, as MPI sends. */
static int32_t time_given(const struct cpl_exchange *x, const struct list *list, int rank,
                          int32_t *when)
{
    const struct cpl_neighbors *out = &x->adjacency->out;
    int32_t at = 0;
    if (present(x) > 0)
        for (int m = 0; m < list->n; m++)
            note_arrival(when, list->to[m], ++at);
    else
        for (int k = 0; k < out->n; k++)
            if (out->peer[k] >= 0 && out->peer[k] != rank)
                note_arrival(when, out->peer[k], ++at);
    note_arrival(when, rank, at);
    return at;
}

static void time_ordered(const struct list *list, int rank, int32_t *when)
{
    int32_t at = 0;
    for (int k = 0; k < list->n; k++) {
        at += list->weight[list->order[k]];
        note_arrival(when, list->to[list->order[k]], at);
    }
    note_arrival(when, rank, at);
}

static int32_t last_of(const int32_t *when, const int32_t *key, int n)
{
    int32_t last = 0;
    for (int i = 0; i < n; i++)
        last = when[i] + key[i] > last ? when[i] + key[i] : last;
    return last;
}

/* Compares the two orders. Collective. */
static bool compare(MPI_Comm comm, const struct cpl_exchange *x, int rank, int n_ranks,
                    struct meeting *m, struct cpl_order_units *units)
{
    int n = 2 * n_ranks + 2;
    int32_t *mine = m->when, *all = m->when + n, most_key = 0;
    int32_t sent = time_given(x, &m->list, rank, mine);
    time_ordered(&m->list, rank, mine + n_ranks);
    mine[n - 2] = sent + m->key[rank];
    mine[n - 1] = sent;
    if (cpl_collective_Allreduce(mine, all, n, MPI_INT32_T, MPI_MAX, comm) != MPI_SUCCESS)
        return false;
    for (int i = 0; i < n_ranks; i++)
        most_key = m->key[i] > most_key ? m->key[i] : most_key;
    *units = (struct cpl_order_units){.given = last_of(all, m->key, n_ranks),
                                      .ordered = last_of(all + n_ranks, m->key, n_ranks),
                                      .least = all[n - 2],
                                      .most = all[n - 1] + most_key};
    return units->ordered < units->given;
}

/* Sorts this rank's list. */
static bool sort_list(int rank, int n_ranks, struct meeting *m)
{
    struct cpl_error error;
    for (int i = 0; i <= n_ranks; i++)
        m->first[i] = i > rank ? m->list.n : 0;
    return !cpl_order_sends(n_ranks, m->first, m->list.to, m->wide, m->list.order, &error);
}

/* What sending by ourselves needs where MPI has carried the exchange so far: tags of its own and
 * how parallel edges match. Collective, the same result on all ranks. */
static bool prepare_straight(struct cpl_comm_state *state, struct cpl_exchange *x,
                             const struct list *list)
{
    bool has_room = state->private_comm != MPI_COMM_NULL || cpl_context.n_planned < CPL_MAX_PLANNED;
    x->order.message = calloc((size_t)list->n + 1, sizeof *x->order.message);
    for (int k = 0; k < list->n && x->order.message; k++)
        x->order.message[k] = (int)list->order[k];
    if (!cpl_agree_all(state->comm, has_room && x->order.message))
        return false;
    if (state->private_comm == MPI_COMM_NULL &&
        !cpl_agree_private(state->comm, state->rank, &state->private_comm))
        return false;
    cpl_comm_state_number(state);
    if (x->out_straight) /* they are known; alike on all ranks */
        return true;
    if (cpl_agree_all(state->comm, cpl_neighbor_plan_allocate(x)) &&
        cpl_agree_all(state->comm, cpl_neighbor_plan_match(state, x)))
        return true;
    cpl_exchange_release(x);
    return false;
}

/* Makes the order; the same result on all ranks. Collective. */
static bool make(struct cpl_comm_state *state, struct cpl_exchange *x, struct meeting *m)
{
    struct cpl_order *o = &x->order;
    int32_t candidate = present(x);
    cpl_neighbor_order_free(o);
    bool done =
        candidate == 0
            ? prepare_straight(state, x, &m->list)
            : cpl_agree_all(state->private_comm,
                            cpl_executor_set_order(x->executors[candidate - 1], m->list.order));
    if (!done)
        return false;
    o->candidate = candidate;
    o->key = m->key;
    m->key = NULL;
    bool measured = cpl_context.settings.mode == CPL_MODE_AUTO && !m->any_waits && !x->served;
    cpl_trial_begin(&o->trial, 2, measured ? (int32_t)cpl_context.settings.trial : 0);
    o->made = true;
    if (candidate > 0)
        cpl_executor_use_order(x->executors[candidate - 1], o->trial.chosen == 1);
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
static bool is_unchanged(const struct cpl_exchange *x, const struct meeting *m, int n_ranks)
{
    const struct cpl_order *o = &x->order;
    return o->made && o->candidate == present(x) &&
           (o->candidate == 0 || cpl_executor_has_order(x->executors[o->candidate - 1])) &&
           memcmp(o->key, m->key, (size_t)n_ranks * sizeof *o->key) == 0;
}

static void meet(struct cpl_comm_state *state, struct cpl_exchange *x)
{
    MPI_Comm comm = state->private_comm != MPI_COMM_NULL ? state->private_comm : state->comm;
    struct cpl_order_units units;
    struct meeting m;
    if (!is_settled(x) || (x->kind >= CPL_ALLTOALLV && present(x) == 0))
        return;
    bool ready = open_meeting(&m, x, state->size);
    if (cpl_agree_all(comm, ready && state->has_adjacency) &&
        gather_keys(comm, x, state->size, &m) && !is_unchanged(x, &m, state->size)) {
        list_messages(x, &m.list);
        bool sorted = cpl_agree_all(comm, sort_list(state->rank, state->size, &m));
        if (sorted && compare(comm, x, state->rank, state->size, &m, &units)) {
            x->order.units = units;
            if (make(state, x, &m))
                log_order(state, x);
        } else {
            cpl_neighbor_order_free(&x->order);
        }
    }
    close_meeting(&m);
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
    if (cpl_context.timed_exchange == x) /* nothing has followed */
        cpl_context.timed_exchange = NULL;
    if (!o->made || (o->trial.running && !was_timed) || !cpl_trial_note(&o->trial, o->own_us))
        return;
    memcpy(slowest_us, o->trial.own_us, sizeof slowest_us);
    cpl_collective_Allreduce(o->trial.own_us, slowest_us, o->trial.n, MPI_DOUBLE, MPI_MAX,
                             state->private_comm);
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
    cpl_context.timed_exchange = x;
}

bool cpl_neighbor_is_ordered(const struct cpl_exchange *x, int32_t candidate)
{
    const struct cpl_order *o = &x->order;
    return o->made && o->candidate == candidate && is_settled(x) &&
           cpl_trial_candidate(&o->trial) == 1;
}

bool cpl_neighbor_order_waits(void)
{
    return cpl_context.timed_exchange;
}

void cpl_neighbor_order_ended(const struct cpl_exchange *exchange)
{
    struct cpl_exchange *timed = cpl_context.timed_exchange;
    if (!timed || timed == exchange)
        return;
    timed->order.own_us = (PMPI_Wtime() - timed->order.start) * 1e6;
    cpl_context.timed_exchange = NULL;
}

/* ---- calls ---- */

void cpl_neighbor_order(struct cpl_comm_state *state, struct cpl_exchange *exchange)
{
    struct cpl_order *o = &exchange->order;
    if (!is_wanted())
        return;
    judge(state, exchange);
    if (o->next_meeting == 0)
        o->next_meeting = FIRST_MEETING;
    if (exchange->calls >= o->next_meeting) {
        o->next_meeting = 2 * exchange->calls;
        if (!o->trial.running || !o->made)
            meet(state, exchange);
    }
    note_call(exchange, false);
}

void cpl_neighbor_order_started(struct cpl_exchange *exchange)
{
    if (is_wanted())
        note_call(exchange, true);
}

static bool has_served(const struct cpl_comm_state *state)
{
    bool any = false;
    for (int k = 0; k < CPL_N_NEIGHBOR_KINDS; k++)
        any |= state->exchanges[k].served;
    return any;
}

/* The communicator with the next number whose nonblocking calls are carried: all ranks go through
 * them alike. */
static struct cpl_comm_state *next_served(int64_t after)
{
    struct cpl_comm_state *found = NULL;
    for (struct cpl_comm_state *s = cpl_context.first_state; s; s = s->next)
        if (has_served(s) && s->serve.id > after && (!found || s->serve.id < found->serve.id))
            found = s;
    return found;
}

void cpl_neighbor_order_served(void)
{
    struct cpl_comm_state *s = is_wanted() ? next_served(-1) : NULL;
    for (; s; s = next_served(s->serve.id))
        for (int k = 0; k < CPL_N_NEIGHBOR_KINDS; k++) {
            struct cpl_exchange *x = &s->exchanges[k];
            if (!x->served)
                continue;
            int64_t n = ++x->order.n_meetings;
            if ((n & (n - 1)) == 0)
                meet(s, x);
        }
}

void cpl_neighbor_order_free(struct cpl_order *order)
{
    free(order->key);
    free(order->message);
    order->key = NULL;
    order->message = NULL;
    order->made = false;
}

void cpl_neighbor_order_forget(const struct cpl_exchange *exchange)
{
    if (cpl_context.last_exchange == exchange)
        cpl_context.last_exchange = NULL;
    if (cpl_context.timed_exchange == exchange)
        cpl_context.timed_exchange = NULL;
}
