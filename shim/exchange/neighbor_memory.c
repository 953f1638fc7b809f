/* Making and freeing what an exchange holds for carrying calls (neighbor_internal.h). */
#include "shim/exchange/neighbor_internal.h"

#include <stdlib.h>

bool cpl_neighbor_plan_allocate(struct cpl_exchange *x)
{
    const struct cpl_adjacency *a = x->adjacency;
    x->ends.out_straight = cpl_neighbor_zeroed(a->out.n_messages, sizeof *x->ends.out_straight);
    x->ends.in_straight = cpl_neighbor_zeroed(a->in.n_messages, sizeof *x->ends.in_straight);
    x->ends.payload = cpl_neighbor_zeroed(a->out.n_messages, sizeof *x->ends.payload);
    x->ends.in_part = cpl_neighbor_zeroed(a->in.n, sizeof *x->ends.in_part);
    x->ends.self_from = cpl_neighbor_zeroed(a->in.n_self, sizeof *x->ends.self_from);
    return cpl_neighbor_data_make(&x->data, a, x->learned.n_extra_most) && x->ends.out_straight &&
           x->ends.in_straight && x->ends.payload && x->ends.in_part && x->ends.self_from;
}

int64_t cpl_exchange_forwarded(const struct cpl_exchange *x)
{
    int64_t bytes = x->plans.forwarded;
    for (int32_t k = 1; k <= x->plans.n_candidates; k++) {
        const struct cpl_executor *executor = cpl_exchange_executor(x, k);
        bytes += executor ? cpl_executor_work(executor).forwarded : 0;
    }
    return bytes;
}

static void end_candidates(struct cpl_exchange_plans *plans)
{
    for (int k = 0; k < plans->n_candidates; k++)
        if (plans->candidate[k].way->end)
            plans->candidate[k].way->end(&plans->candidate[k]);
    plans->n_candidates = 0;
    plans->carries = NULL;
}

void cpl_exchange_release(struct cpl_exchange *x)
{
    x->plans.forwarded = cpl_exchange_forwarded(x);
    end_candidates(&x->plans);
    free(x->order.message);
    x->order.message = NULL;
    free(x->ends.out_straight);
    free(x->ends.in_straight);
    free(x->ends.payload);
    free(x->ends.in_part);
    free(x->ends.self_from);
    cpl_neighbor_data_free(&x->data);
    cpl_adjacency_free(&x->learned.own);
    free(x->learned.sent);
    x->learned.sent = NULL;
    x->ends = (struct cpl_exchange_ends){NULL};
}

/* Moves what an exchange holds for carrying calls to *held. */
static void hold(struct cpl_exchange *x, struct cpl_exchange *held)
{
    *held = *x;
    x->plans.n_candidates = 0;
    x->plans.carries = NULL;
    x->plans.forwarded = 0;
    x->ends = (struct cpl_exchange_ends){NULL};
    x->data = (struct cpl_neighbor_data){.n_extra = 0};
    x->learned.own = (struct cpl_adjacency){.in = {.n = 0}};
    x->learned.sent = NULL;
    x->order.message = NULL;
}

/* Moves it back. */
static void give_back(struct cpl_exchange *x, const struct cpl_exchange *held)
{
    struct cpl_exchange_search search = x->plans.search;
    cpl_exchange_release(x);
    x->plans = held->plans;
    x->plans.search = search;
    x->ends = held->ends;
    x->data = held->data;
    x->learned.own = held->learned.own;
    x->learned.sent = held->learned.sent;
    x->order = held->order;
}

void cpl_neighbor_replan(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                         struct cpl_exchange *x, cpl_neighbor_planner *plan)
{
    struct cpl_exchange held;
    hold(x, &held);
    if (!plan(call, state, x)) {
        give_back(x, &held);
        return;
    }
    cpl_exchange_release(&held);
    x->plans.forwarded = held.plans.forwarded;
}
