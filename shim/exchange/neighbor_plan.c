/* Planning an exchange: what this rank hands in, and how its neighbours take part in the plan.
 *
 * MPI does not say which of several parallel edges between two ranks matches which (MPICH matches
 * them in order in alltoallv and in reverse in alltoall). So each rank sends a token along every
 * edge, by the very call that is to be replaced: the edge's number among its parallel edges. The
 * tokens also tell receivers which messages are too large for combined messages and always go
 * straight. */
#include "shim/exchange/neighbor_internal.h"
#include "shim/meet/agree.h"
#include "shim/state/context.h"
#include "shim/state/describe.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

/* Calls in a turn of a trial: where ranks share cores, where a single one says little; and those
 * that do not count elsewhere, because they begin on all ranks at once, as no call does in use. */
#define CALLS_SHARING 4
#define CALLS_LEADING 1

#define MOST_DENSE (1 << 17) /* messages of a dense alltoall that are planned */

/* Adds out-message m, or only counts it if it is too large. */
static void add_message(struct cpl_neighbor_notes *notes, int m, struct cpl_pattern_entry message)
{
    notes->straight[m] = message.volume > cpl_context.settings.size_limit;
    if (notes->straight[m]) {
        notes->n_straight++;
        notes->straight_bytes += message.volume;
        return;
    }
    notes->payload[notes->n] = m;
    notes->messages[notes->n++] = message;
}

#define MAKE(member, n)                                                                            \
    ((notes->member = cpl_arena_alloc(&notes->arena, n, sizeof *notes->member)) != NULL)
struct cpl_neighbor_notes *cpl_neighbor_notes_make(const struct cpl_comm_state *state,
                                                   const struct cpl_exchange *x)
{
    const bool by_rank = x->kind >= CPL_ALLTOALLV;
    const size_t n_in = (size_t)(by_rank ? state->size : x->adjacency->in.n);
    const size_t n_out = (size_t)(by_rank ? state->size : x->adjacency->out.n);
    const size_t most = n_in > n_out ? n_in : n_out;
    struct cpl_neighbor_notes *notes = calloc(1, sizeof *notes);
    if (!notes)
        return NULL;
    notes->request = MPI_REQUEST_NULL;
    notes->usable = true;
    if (MAKE(messages, n_out) && MAKE(payload, n_out) && MAKE(straight, n_out) &&
        MAKE(token_out, n_out) && MAKE(token_in, n_in) && MAKE(in_part, n_in) &&
        MAKE(self_from, n_in) && MAKE(in_straight, n_in) && MAKE(ones, most) && MAKE(displs, most))
        return notes;
    cpl_neighbor_notes_free(notes);
    return NULL;
}
#undef MAKE

/* Sizes and lists the call's messages. */
static bool list_messages(const struct cpl_neighbor_call *call, int rank,
                          const struct cpl_adjacency *a, struct cpl_neighbor_notes *notes)
{
    struct cpl_neighbor_data data = {.out_span = NULL};
    bool done = cpl_neighbor_data_make(&data, a, 0) && cpl_neighbor_resolve(call, a, &data);
    notes->n = 0;
    notes->n_straight = notes->straight_bytes = 0;
    for (int m = 0; done && m < a->out.n_messages; m++)
        add_message(notes, m,
                    (struct cpl_pattern_entry){rank, a->out.rank[m],
                                               cpl_neighbor_payload_bytes(&data, a, m),
                                               call->send.same ? 0 : -1});
    cpl_neighbor_data_free(&data);
    return done;
}

/* Starts the exchange of tokens, one along every edge: its number among its parallel edges, and
 * whether its message goes straight. They go as MPI matches parallel edges in the call that is to
 * be replaced; by alltoallv where the order does not matter (allgather) or where MPI's call is
 * wrong (MPICH 4.0's alltoallw on ranks whose in- and out-degree differ). False: it has not. */
static bool send_tokens(struct cpl_neighbor_notes *notes, enum cpl_neighbor_kind kind,
                        MPI_Comm comm, const struct cpl_adjacency *a)
{
    int n = a->in.n > a->out.n ? a->in.n : a->out.n;
    for (int k = 0; k < a->out.n; k++) {
        int m = a->out.message[k];
        notes->token_out[k] = 2 * a->out.ordinal[k] + (m >= 0 && notes->straight[m]);
    }
    if (kind == CPL_NEIGHBOR_ALLTOALL)
        return PMPI_Ineighbor_alltoall(notes->token_out, 1, MPI_INT, notes->token_in, 1, MPI_INT,
                                       comm, &notes->request) == MPI_SUCCESS;
    for (int k = 0; k < n; k++) {
        notes->ones[k] = 1;
        notes->displs[k] = k;
    }
    return PMPI_Ineighbor_alltoallv(notes->token_out, notes->ones, notes->displs, MPI_INT,
                                    notes->token_in, notes->ones, notes->displs, MPI_INT, comm,
                                    &notes->request) == MPI_SUCCESS;
}

/* Lists the other ranks that there is data for or from. Returns their number, or -1. */
static int list_peers(const struct cpl_neighbor_side *side, const struct cpl_comm_state *state,
                      int *peers)
{
    int n = 0;
    for (int r = 0; r < state->size; r++) {
        int64_t bytes = cpl_neighbor_rank_bytes(side, r);
        if (bytes < 0)
            return -1;
        if (bytes > 0 && r != state->rank)
            peers[n++] = r;
    }
    return n;
}

/* Notes the messages of an alltoall. Returns false on failure. */
static bool note_ranks(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                       struct cpl_neighbor_notes *notes)
{
    int *out = calloc((size_t)state->size, sizeof *out);
    int *in = calloc((size_t)state->size, sizeof *in);
    bool done = false;
    cpl_adjacency_free(&notes->own);
    if (out && in) {
        int n_out = list_peers(&call->send, state, out), n_in = list_peers(&call->recv, state, in);
        done = n_out >= 0 && n_in >= 0 &&
               cpl_adjacency_make(state->rank, n_in, in, n_out, out, &notes->own);
    }
    free(out);
    free(in);
    return done && list_messages(call, state->rank, &notes->own, notes);
}

void cpl_neighbor_notes_fill(struct cpl_neighbor_notes *notes, const struct cpl_neighbor_call *call,
                             const struct cpl_comm_state *state, const struct cpl_exchange *x)
{
    const char *send = call->send.buffer, *recv = call->recv.buffer; /* NULL: none, or MPI_BOTTOM */
    /* On a device each copy takes longer than MPI takes for a message. */
    bool far = (send && cpl_device_has(send)) || (recv && cpl_device_has(recv));
    if (x->kind >= CPL_ALLTOALLV) {
        notes->usable = !far && note_ranks(call, state, notes);
        return;
    }
    notes->usable = list_messages(call, state->rank, x->adjacency, notes) && !far;
    notes->usable &= send_tokens(notes, call->kind, call->comm, x->adjacency);
}

/* Sorts the parts of every in-message, and the edges from the rank to itself, by the senders'
 * order. Returns false when the tokens make no sense, because the graph's two sides do not
 * match. */
static bool read_tokens(struct cpl_exchange *x, const int *token)
{
    const struct cpl_adjacency *a = x->adjacency;
    const struct cpl_neighbors *in = &a->in;
    struct cpl_neighbor_notes *notes = x->notes;
    for (int m = 0; m < in->n_messages; m++) {
        int first = in->first_part[m], n_parts = in->first_part[m + 1] - first;
        for (int p = first; p < first + n_parts; p++)
            notes->in_part[p] = -1;
        for (int p = first; p < first + n_parts; p++) {
            int ordinal = token[in->part[p]] / 2;
            if (ordinal < 0 || ordinal >= n_parts || notes->in_part[first + ordinal] >= 0)
                return false;
            notes->in_part[first + ordinal] = in->part[p];
            notes->in_straight[m] = token[in->part[p]] % 2;
        }
    }
    for (int k = 0; k < in->n_self; k++) {
        int ordinal = token[in->self[k]] / 2;
        if (ordinal < 0 || ordinal >= a->out.n_self)
            return false;
        notes->self_from[k] = a->out.self[ordinal];
    }
    return true;
}

/* Whether blocking calls choose by measurement. */
static bool is_measured(const struct cpl_exchange *x)
{
    return cpl_context.settings.mode == CPL_MODE_AUTO && !x->mpi_distrusted;
}

/* How many plans to ask for. */
static int count_plans(const struct cpl_exchange *x)
{
    return is_measured(x) && cpl_context.settings.trial > 0 ? CPL_MAX_PLANS : 1;
}

/* Agrees on plans for the noted messages, keeps them, asks the carriers for candidates and begins
 * their trial. Returns whether there are candidates on all ranks. Collective over the private
 * communicator. */
static bool agree(const struct cpl_comm_state *state, struct cpl_exchange *x)
{
    const struct cpl_neighbor_notes *notes = x->notes;
    const struct cpl_agree_input input = {.able = notes->usable,
                                          .n_messages = notes->n,
                                          .messages = notes->messages,
                                          .n_straight = notes->n_straight,
                                          .straight_bytes = notes->straight_bytes,
                                          .needed = x->mpi_distrusted,
                                          .same_payload = x->kind == CPL_NEIGHBOR_ALLGATHER ||
                                                          x->kind == CPL_NEIGHBOR_ALLGATHERV,
                                          .most_plans = count_plans(x),
                                          .turn = &x->plans.turn};
    struct cpl_agree_output agreed;
    if (!cpl_plan_agree(state->private_comm, &input, &agreed))
        return false;
    const bool again = x->plans.n > 0;
    const struct cpl_plan_cost before = x->plans.summary[0].cost;
    memcpy(x->plans.summary, agreed.summary, (size_t)agreed.n * sizeof *agreed.summary);
    x->plans.n = agreed.n;
    for (int k = 0; k < agreed.n && again; k++) {
        x->plans.summary[k].cost.ms = before.ms + agreed.summary[0].cost.ms;
        x->plans.summary[k].cost.times_planned =
            (before.times_planned ? before.times_planned : 1) + 1;
    }
    bool made = cpl_carriers_offer(state, x, &agreed);
    cpl_agree_output_free(&agreed);
    if (!made)
        return false;
    cpl_trial_begin(&x->plans.trial, x->plans.n_candidates + 1,
                    is_measured(x) ? (int32_t)cpl_context.settings.trial : 0);
    if (cpl_context.machine.shares_cores)
        x->plans.trial.calls_a_turn = CALLS_SHARING;
    else
        x->plans.trial.lead_in = CALLS_LEADING;
    return true;
}

/* Tells every rank whether it is sent to, and how, and reads what the senders tell. Returns false
 * when they have other messages than this rank expects: the program's counts do not fit.
 * Collective. */
static bool tell_ranks(const struct cpl_comm_state *state, struct cpl_exchange *x)
{
    struct cpl_neighbor_notes *notes = x->notes;
    const struct cpl_neighbors *out = &x->adjacency->out, *in = &x->adjacency->in;
    int n_sent = 0, *token = notes->token_in;
    for (int m = 0; m < out->n_messages; m++)
        notes->token_out[out->rank[m]] = 2 + notes->straight[m]; /* 0: nothing */
    if (cpl_collective_Alltoall(notes->token_out, 1, MPI_INT, token, 1, MPI_INT,
                                state->private_comm) != MPI_SUCCESS)
        return false;
    for (int r = 0; r < state->size; r++)
        n_sent += token[r] != 0;
    for (int k = 0; k < in->n; k++)
        notes->ones[k] = token[in->peer[k]] - 2;
    return n_sent == in->n && read_tokens(x, notes->ones);
}

/* Why the noted messages of an alltoall are not worth a plan. Collective; alike on all ranks. */
static enum cpl_left_alone why_not(const struct cpl_comm_state *state, const struct cpl_exchange *x)
{
    enum { MESSAGES, SMALL, NEW, UNABLE, N };
    const struct cpl_neighbor_notes *notes = x->notes;
    const int64_t pairs = (int64_t)state->size * (state->size - 1);
    int64_t all[N], mine[N] = {[UNABLE] = !notes || !notes->usable};
    if (!mine[UNABLE]) {
        mine[MESSAGES] = notes->n + notes->n_straight;
        mine[SMALL] = notes->n;
        for (int m = 0; m < notes->own.out.n_messages && x->learned.sent; m++)
            mine[NEW] += !x->learned.sent[notes->own.out.rank[m]];
    }
    if (cpl_collective_Allreduce(mine, all, N, MPI_INT64_T, MPI_SUM, state->private_comm) !=
            MPI_SUCCESS ||
        all[UNABLE] > 0)
        return CPL_LEFT_NO_PLAN;
    if (all[MESSAGES] == 0) /* one that MPI must not carry is carried all the same */
        return x->mpi_distrusted ? CPL_LEFT_NOT : CPL_LEFT_EMPTY;
    if (8 * all[NEW] > all[MESSAGES])
        return CPL_LEFT_ELSEWHERE;
    if (2 * all[MESSAGES] <= pairs)
        return CPL_LEFT_NOT;
    return all[MESSAGES] > MOST_DENSE || 2 * all[SMALL] < all[MESSAGES] ? CPL_LEFT_DENSE
                                                                        : CPL_LEFT_NOT;
}

bool cpl_alltoall_promises(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                           struct cpl_exchange *x)
{
    if (!x->notes)
        x->notes = cpl_neighbor_notes_make(state, x);
    if (x->notes)
        cpl_neighbor_notes_fill(x->notes, call, state, x);
    x->learned.left = why_not(state, x);
    return x->learned.left == CPL_LEFT_NOT;
}

/* Plans an exchange by its notes. Returns whether it is. Collective; the same on all ranks. */
static bool plan_noted(const struct cpl_comm_state *state, struct cpl_exchange *x)
{
    const bool by_rank = x->kind >= CPL_ALLTOALLV;
    if (by_rank) {
        x->learned.left = why_not(state, x);
        if (x->learned.left != CPL_LEFT_NOT)
            return false;
        x->adjacency = &x->notes->own;
        x->learned.n_extra_most = 2 * state->size;
    }
    bool ready = cpl_neighbor_data_make(&x->data, x->adjacency, x->learned.n_extra_most);
    return cpl_agree_all(state->private_comm, ready) && agree(state, x) &&
           cpl_agree_all(state->private_comm,
                         by_rank ? tell_ranks(state, x) : read_tokens(x, x->notes->token_in));
}

void cpl_neighbor_plan_noted(const struct cpl_comm_state *state, struct cpl_exchange *x, bool noted)
{
    bool planned = noted && plan_noted(state, x);
    x->phase = planned ? CPL_PHASE_PLANNED : x->plans.again ? CPL_PHASE_LEARNING : CPL_PHASE_DIRECT;
    if (!planned)
        cpl_exchange_release(x);
}

void cpl_neighbor_plan(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                       struct cpl_exchange *x)
{
    if (x->phase == CPL_PHASE_PLANNED)
        cpl_exchange_release(x);
    if (!x->notes)
        x->notes = cpl_neighbor_notes_make(state, x);
    bool noted = cpl_agree_all(state->private_comm, x->notes);
    if (noted) {
        cpl_neighbor_notes_fill(x->notes, call, state, x);
        cpl_collective_waitall(1, &x->notes->request, MPI_STATUSES_IGNORE);
    }
    cpl_neighbor_plan_noted(state, x, noted);
}

/* What a full search may gain beyond a short one, as a part of an exchange's time: so much later it
 * has to pay (bench/results/planning.md). */
#define GAIN_OF_SEARCHING_ON 0.1

bool cpl_neighbor_is_early(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                           struct cpl_exchange *x, int n_messages)
{
    const struct cpl_agree_input input = {.n_messages = n_messages,
                                          .same_payload = call->send.same,
                                          .most_plans = count_plans(x),
                                          .turn = &x->plans.turn};
    double ms =
        1e3 * (cpl_samples_quartile(&x->direct) * (double)(x->calls - 1 - x->calls_planned) +
               cpl_samples_quartile(&x->planned) * (double)x->calls_planned);
    bool planned = x->phase == CPL_PHASE_PLANNED;
    bool early =
        cpl_plan_is_early(state->private_comm, &input, planned ? ms * GAIN_OF_SEARCHING_ON : ms,
                          x->calls, x->plans.again || x->kind >= CPL_KIND_ALLGATHER);
    if (early)
        cpl_date_put_off(&x->learned.date, x->calls, x->plans.turn.pause);
    else
        x->plans.again = x->plans.turn.search == CPL_SEARCH_SHORT;
    return early;
}
