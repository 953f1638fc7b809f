/* Deciding what becomes of an allgather (allgather.h); carrier_gather.c carries it. */
#include "shim/exchange/allgather.h"
#include "shim/meet/agree.h"
#include "shim/meet/decision.h"
#include "shim/state/hooks.h"

#include "planner/place.h"
#include "shim/base/aside.h"
#include "shim/base/log.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/plan/plan_root.h"
#include "shim/report/report.h"
#include "shim/state/context.h"
#include "shim/state/memory.h"

#include <stdio.h>
#include <stdlib.h>

#define SMALL     4096 /* bytes in all: calls of less are MPI's in any case, unless forced */
#define PROMISING 0.9  /* of MPI's modelled time: worth a trial */
#define NOT_FAR   2.0  /* the same where pairs were measured (promises) */

static void meet(struct cpl_comm_state *state)
{
    const struct cpl_settings *settings = &cpl_context.settings;
    state->allgathers.least = settings->mode == CPL_MODE_FORCE ? 1 : SMALL;
    if (state->inter || state->size < 2 || settings->allgather == CPL_ALLGATHER_CHOICE_OFF)
        state->allgathers.least = CPL_ALLGATHER_NONE;
}

/* ---- the ranks agree ---- */

static void end(struct cpl_comm_state *state)
{
    struct cpl_allgather *a = state->allgathers.kept;
    for (int k = 0; a && k < CPL_N_ALLGATHER_KINDS * CPL_ALLGATHER_CLASSES; k++) {
        if (a->sizes[k])
            cpl_exchange_end(a->sizes[k], state);
        free(a->sizes[k]);
    }
    if (a) {
        cpl_arena_free(&a->arena);
        free(a->gathering.room);
    }
}

/* On the rank that plans. */
static void plan_at_root(struct cpl_allgather *a, const struct cpl_decision *decision)
{
    struct cpl_machine machine;
    struct cpl_error error;
    double start = PMPI_Wtime();
    enum cpl_status status =
        cpl_plan_root_machine(decision->n_ranks, decision->seats, &machine, &error);
    if (!status) {
        status = cpl_allgather_plan(&machine, a->rank_at, a->plan.model, &error);
        a->plan.measured = machine.distance_us != NULL;
        a->plan.even = cpl_place_is_even(&machine) && !machine.distance_us;
        cpl_machine_free(&machine);
    }
    a->plan.plan_ms = (PMPI_Wtime() - start) * 1e3;
    a->plan.made = !status;
    if (status)
        cpl_log(CPL_LOG_WARN, "allgather", "%s; allgathers are left to MPI", error.text);
}

/* Hands in where the ranks sit, plans, spreads it. Collective; the same result on all ranks. */
static bool find_plan(struct cpl_comm_state *state)
{
    struct cpl_allgather *a = state->allgathers.kept;
    CPL_DECISION(decision, state->private_comm);
    if (!cpl_decision_hand_in(&decision, &(struct cpl_handed_in){.able = true, .seated = true}))
        return false;
    if (cpl_decision_is_root(&decision))
        plan_at_root(a, &decision);
    cpl_decision_answer(&decision, &a->plan, sizeof a->plan);
    cpl_decision_answer(&decision, a->rank_at,
                        CPL_N_ALLGATHER_ALGORITHMS * (size_t)state->size * sizeof *a->rank_at);
    return a->plan.made;
}

static bool allows(enum cpl_allgather_algorithm algorithm)
{
    int32_t choice = cpl_context.settings.allgather;
    return choice == CPL_ALLGATHER_CHOICE_AUTO ||
           choice == CPL_ALLGATHER_CHOICE_ALGORITHMS + (int32_t)algorithm;
}

/* Whether an algorithm is worth a trial for the calls of a class. With measured distances any is
 * that places the ranks, or is not MPI's own, unless it is modelled much slower: pairs that are
 * measured tell little of links that more or fewer of them share. */
static bool promises(const struct cpl_allgather *a, const struct cpl_allgather_class *model,
                     int algorithm)
{
    if (cpl_context.settings.mode == CPL_MODE_FORCE)
        return true;
    if (a->plan.measured)
        return (model->placed[algorithm] || algorithm != model->mpi_algorithm) &&
               model->us[algorithm] < NOT_FAR * model->mpi_us;
    return !a->plan.even && model->us[algorithm] < PROMISING * model->mpi_us;
}

/* The bytes below which nothing is tried; CPL_ALLGATHER_NONE: nothing is at all. */
static int64_t least_bytes(const struct cpl_comm_state *state)
{
    const struct cpl_allgather *a = state->allgathers.kept;
    for (int32_t k = 0; k < CPL_ALLGATHER_CLASSES; k++)
        for (int w = 0; w < CPL_N_ALLGATHER_ALGORITHMS; w++)
            if (cpl_allgather_class_most(k) >= state->allgathers.least &&
                allows((enum cpl_allgather_algorithm)w) && promises(a, &a->plan.model[k], w))
                return k > 0 ? cpl_allgather_class_most(k - 1) + 1 : state->allgathers.least;
    return CPL_ALLGATHER_NONE;
}

/* Places the ranks. On all ranks alike, calls are carried, or tried, from now on, or MPI has them
 * for good. Collective. */
static void agree(struct cpl_comm_state *state)
{
    CPL_ASIDE;
    struct cpl_allgather *a = state->allgathers.kept;
    struct cpl_gathering *g = &a->gathering;
    struct cpl_expense expense = cpl_account_begin(&cpl_context.account, PMPI_Wtime());
    a->agreed = true;
    a->rank_at =
        CPL_ARENA_ARRAY(&a->arena, int32_t, (CPL_N_ALLGATHER_ALGORITHMS + 1) * state->size);
    g->span = CPL_ARENA_ARRAY(&a->arena, struct cpl_span, state->size);
    g->at = CPL_ARENA_ARRAY(&a->arena, int64_t, state->size + 1);
    a->plan.made =
        cpl_agree_all(state->private_comm, a->rank_at && g->span && g->at) && find_plan(state);
    for (int32_t r = 0; a->plan.made && r < state->size; r++)
        a->rank_at[CPL_N_ALLGATHER_ALGORITHMS * state->size + r] = r;
    if (!cpl_report_is_wanted()) /* else all calls are to be told of */
        state->allgathers.least = a->plan.made ? least_bytes(state) : CPL_ALLGATHER_NONE;
    cpl_account_end(&cpl_context.account, expense, CPL_COST_PLANNING, PMPI_Wtime());
}

/* ---- a call ---- */

/* What the model says of an algorithm; busiest sends are those of one rank, one after the other. */
static struct cpl_metrics metrics_of(enum cpl_allgather_algorithm algorithm, int32_t n_ranks,
                                     double us)
{
    int32_t steps = cpl_allgather_steps(algorithm, n_ranks);
    return (struct cpl_metrics){.sends_max = steps,
                                .sends_avg = steps,
                                .recvs_max = steps,
                                .hops_max = steps,
                                .mpi_max = steps,
                                .modelled_us = us};
}

/* Adds an algorithm: what the report says of it and, if it is worth a trial, a candidate. */
static void add_algorithm(struct cpl_allgather *a, const struct cpl_allgather_class *model,
                          enum cpl_allgather_algorithm algorithm, int32_t n_ranks, int64_t bytes,
                          struct cpl_exchange_plans *plans)
{
    struct cpl_plan_summary *s = &plans->summary[plans->n++];
    s->known = 1;
    snprintf(s->strategy, sizeof s->strategy, "%s", cpl_allgather_name(algorithm));
    s->n_messages = (int64_t)n_ranks * (n_ranks - 1);
    s->bytes = bytes * (n_ranks - 1);
    s->cost.ms = a->plan.plan_ms;
    s->direct =
        metrics_of((enum cpl_allgather_algorithm)model->mpi_algorithm, n_ranks, model->mpi_us);
    s->planned = metrics_of(algorithm, n_ranks, model->us[algorithm]);
    s->reason = cpl_context.settings.mode == CPL_MODE_PROFILE ? CPL_LEFT_PROFILED : 0;
    if (!promises(a, model, algorithm))
        s->reason = CPL_LEFT_NO_GAIN;
    if (s->reason)
        return;
    plans->candidate[plans->n_candidates++] = (struct cpl_candidate){
        .carrier = &cpl_gather_carriers[algorithm],
        .made =
            a->rank_at +
            (model->placed[algorithm] ? (int32_t)algorithm : CPL_N_ALLGATHER_ALGORITHMS) * n_ranks,
        .summary = s,
    };
}

/* Plans an exchange: lists its candidates, best first, and begins their trial. The first one's
 * ranks agree. Collective then; alike on all ranks. */
static void plan(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                 struct cpl_exchange *x)
{
    struct cpl_allgather *a = state->allgathers.kept;
    const int64_t bytes = cpl_allgather_bytes(call, state->size);
    const struct cpl_allgather_class *model = &a->plan.model[cpl_allgather_class_of(bytes)];
    const struct cpl_settings *settings = &cpl_context.settings;
    struct cpl_exchange_plans *plans = &x->plans;
    bool listed[CPL_N_ALLGATHER_ALGORITHMS] = {false};
    if (!a->agreed)
        agree(state);
    for (int best; a->plan.made; listed[best] = true) {
        best = -1;
        for (int w = 0; w < CPL_N_ALLGATHER_ALGORITHMS; w++)
            if (!listed[w] && allows((enum cpl_allgather_algorithm)w) &&
                (best < 0 || model->us[w] < model->us[best]))
                best = w;
        if (best < 0)
            break;
        add_algorithm(a, model, (enum cpl_allgather_algorithm)best, state->size, bytes, plans);
    }
    x->phase = plans->n_candidates > 0 ? CPL_PHASE_PLANNED : CPL_PHASE_DIRECT;
    if (plans->n_candidates > 0)
        cpl_trial_begin(&plans->trial, plans->n_candidates + 1,
                        settings->mode == CPL_MODE_AUTO ? (int32_t)settings->trial : 0);
}

bool cpl_allgather_carry(struct cpl_neighbor_call *call, int *result)
{
    struct cpl_comm_state *state = cpl_comm_state_get(call->comm);
    const bool may = state && state->allgathers.least < CPL_ALLGATHER_NONE;
    const int64_t bytes = may ? cpl_allgather_bytes(call, state->size) : 0;
    if (!may || bytes < state->allgathers.least)
        return false;
    if (!state->allgathers.kept)
        state->allgathers.kept =
            cpl_memory_need(sizeof *state->allgathers.kept, "the allgathers of a communicator");
    struct cpl_allgather *a = state->allgathers.kept;
    const int32_t class_ = cpl_allgather_class_of(bytes);
    struct cpl_exchange **x =
        &a->sizes[((int)call->kind - CPL_KIND_ALLGATHER) * CPL_ALLGATHER_CLASSES + class_];
    if (!*x) {
        *x = cpl_memory_need(sizeof **x, "the allgathers of some size");
        (*x)->kind = call->kind;
        (*x)->data_most = cpl_allgather_class_most(class_);
    }
    if (a->agreed && (*x)->phase == CPL_PHASE_LEARNING)
        plan(call, state, *x);
    return cpl_life_carry(plan, call, state, *x, result);
}

const struct cpl_hooks cpl_allgather_hooks = {.meet = meet, .end = end};
