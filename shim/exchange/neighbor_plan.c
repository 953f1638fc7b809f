/* Planning an exchange: what this rank hands in, and how its neighbours take part in the plan.
 *
 * MPI does not say which of several parallel edges between two ranks matches which (MPICH matches
 * them in order in alltoallv and in reverse in alltoall). So each rank sends a token along every
 * edge, by the very call that is to be replaced: the edge's number among its parallel edges. The
 * tokens also tell receivers which messages are too large for combined messages and always go
 * straight. */
#include "shim/exchange/neighbor_internal.h"
#include "shim/meet/agree.h"
#include "shim/meet/floor.h"
#include "shim/state/context.h"

#include <string.h>

/* Calls in a turn of a trial: where ranks share cores, where a single one says little; and those
 * that do not count elsewhere, because they begin on all ranks at once, as no call does in use. */
#define CALLS_SHARING 4
#define CALLS_LEADING 1

void cpl_neighbor_list_add(struct cpl_neighbor_list *list, int m, int dst, int64_t bytes)
{
    list->straight[m] = bytes > cpl_context.settings.size_limit;
    if (list->straight[m]) {
        list->n_straight++;
        list->straight_bytes += bytes;
        return;
    }
    list->payload[list->n] = m;
    list->dst[list->n] = dst;
    list->bytes[list->n++] = bytes;
}

bool cpl_neighbor_plan_read(struct cpl_exchange *x, const int *token)
{
    const struct cpl_adjacency *a = x->adjacency;
    const struct cpl_neighbors *in = &a->in;
    for (int m = 0; m < in->n_messages; m++) {
        int first = in->first_part[m], n_parts = in->first_part[m + 1] - first;
        for (int p = first; p < first + n_parts; p++)
            x->ends.in_part[p] = -1;
        for (int p = first; p < first + n_parts; p++) {
            int ordinal = token[in->part[p]] / 2;
            if (ordinal < 0 || ordinal >= n_parts || x->ends.in_part[first + ordinal] >= 0)
                return false;
            x->ends.in_part[first + ordinal] = in->part[p];
            x->ends.in_straight[m] = token[in->part[p]] % 2;
        }
    }
    for (int k = 0; k < in->n_self; k++) {
        int ordinal = token[in->self[k]] / 2;
        if (ordinal < 0 || ordinal >= a->out.n_self)
            return false;
        x->ends.self_from[k] = a->out.self[ordinal];
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

/* Keeps the agreed plans, asks the ways for candidates and begins their trial. Returns whether
 * there are candidates on all ranks. Frees the agreement. Collective over the private
 * communicator. */
static bool begin_trial(const struct cpl_comm_state *state, struct cpl_exchange *x,
                        struct cpl_agree_output *agreed)
{
    struct cpl_exchange_search *search = &x->plans.search;
    memcpy(x->plans.summary, agreed->summary, (size_t)agreed->n * sizeof *agreed->summary);
    x->plans.n = agreed->n;
    search->ms += agreed->summary[0].cost.ms;
    for (int k = 0; k < agreed->n && search->n > 0; k++) {
        x->plans.summary[k].cost.ms = search->ms;
        x->plans.summary[k].cost.times_planned = search->n + 1;
    }
    search->n++;
    bool made = cpl_ways_offer(state, x, agreed);
    cpl_agree_output_free(agreed);
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

bool cpl_neighbor_plan_agree(const struct cpl_comm_state *state, struct cpl_exchange *x,
                             const struct cpl_neighbor_list *list, bool able, bool same_payload)
{
    const struct cpl_agree_input input = {.able = able,
                                          .n_messages = list->n,
                                          .dst = list->dst,
                                          .bytes = list->bytes,
                                          .n_straight = list->n_straight,
                                          .straight_bytes = list->straight_bytes,
                                          .needed = x->mpi_distrusted,
                                          .same_payload = same_payload,
                                          .most_plans = count_plans(x),
                                          .turn = &x->plans.search.turn};
    struct cpl_agree_output output;
    return cpl_plan_agree(state->private_comm, &input, &output) && begin_trial(state, x, &output);
}

/* What a full search may gain beyond a short one, as a part of an exchange's time: so much later it
 * has to pay (bench/results/planning.md). */
#define GAIN_OF_SEARCHING_ON 0.1

bool cpl_neighbor_is_early(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                           struct cpl_exchange *x, int n_messages)
{
    struct cpl_exchange_search *s = &x->plans.search;
    const struct cpl_agree_input input = {.n_messages = n_messages,
                                          .same_payload = call->send.same,
                                          .most_plans = count_plans(x),
                                          .turn = &s->turn};
    double ms =
        1e3 * (cpl_samples_quartile(&x->direct) * (double)(x->calls - 1 - x->calls_planned) +
               cpl_samples_quartile(&x->planned) * (double)x->calls_planned);
    bool planned = x->phase == CPL_PHASE_PLANNED;
    bool early = !x->mpi_distrusted &&
                 cpl_plan_is_early(state->private_comm, &input,
                                   planned ? ms * GAIN_OF_SEARCHING_ON : ms, x->calls, s->again);
    if (early)
        cpl_date_put_off(&x->learned.date, x->calls, s->turn.pause);
    else
        s->again = s->turn.search == CPL_SEARCH_SHORT;
    return early;
}

void cpl_neighbor_settle(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                         struct cpl_exchange *exchange,
                         void (*settle)(const struct cpl_neighbor_call *call,
                                        struct cpl_comm_state *state,
                                        struct cpl_exchange *exchange))
{
    if (cpl_agree_own(state) == MPI_COMM_NULL)
        return;
    exchange->learned.left =
        exchange->phase == CPL_PHASE_LEARNING ? CPL_LEFT_THREADS : CPL_LEFT_NOT;
    if (!cpl_floor_take(state->private_comm))
        return;
    settle(call, state, exchange);
    cpl_floor_leave();
}
