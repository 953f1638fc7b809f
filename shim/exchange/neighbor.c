/* Deciding what becomes of a neighborhood collective (neighbor.h); ways carry the planned ones
 * (way.h). */
#include "shim/exchange/neighbor.h"
#include "shim/meet/agree.h"
#include "shim/meet/floor.h"
#include "shim/meet/meeting.h"
#include "shim/wait/progress.h"

#include "shim/base/log.h"
#include "shim/exchange/carrying.h"
#include "shim/exchange/quiet_calls.h"
#include "shim/report/report.h"
#include "shim/state/context.h"
#include "shim/wait/assembly.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

/* Whether the exchange has been seen often enough; the same answer on all ranks. MPICH's alltoallw
 * (4.0.2) is wrong and damages memory on ranks whose in- and out-degree differ: where there are
 * such ranks it is never called. */
static bool must_plan(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                      struct cpl_exchange *exchange)
{
    if (call->kind == CPL_NEIGHBOR_ALLTOALLW && exchange->calls == 1 &&
        cpl_context.settings.mode != CPL_MODE_PROFILE && cpl_agree_own(state) != MPI_COMM_NULL)
        exchange->mpi_distrusted =
            !cpl_agree_all(state->private_comm, state->adjacency.in.n == state->adjacency.out.n);
    int64_t first = exchange->mpi_distrusted
                        ? 1
                        : cpl_meeting_first(state, cpl_settings_learn(&cpl_context.settings) + 1);
    if (!cpl_date_has_come(&exchange->learned.date, first, exchange->calls))
        return false;
    cpl_date_keep(&exchange->learned.date, exchange->calls, CPL_NEVER);
    return true;
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
                                          .most_plans = cpl_neighbor_plan_most(x),
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
                         struct cpl_exchange *exchange, cpl_neighbor_settler *settle)
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

/* Plans, unless it is early: then the ranks try again at a later call. */
static void plan(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                 struct cpl_exchange *exchange)
{
    bool first = exchange->phase == CPL_PHASE_LEARNING;
    bool early = cpl_neighbor_is_early(call, state, exchange, state->adjacency.out.n_messages);
    if (!early)
        cpl_neighbor_plan(call, state, exchange);
    exchange->learned.left = first && early ? CPL_LEFT_SHORT : CPL_LEFT_NOT;
}

/* Logs the result of a trial that has ended. */
static void log_choice(const struct cpl_comm_state *state, const struct cpl_exchange *exchange,
                       int32_t before)
{
    const struct cpl_trial *trial = &exchange->plans.trial;
    const char *name =
        trial->chosen > 0 ? exchange->plans.candidate[trial->chosen - 1].name : "MPI";
    if (state->rank != 0 || (trial->chosen == before && trial->n_trials > 1))
        return;
    cpl_log(CPL_LOG_INFO, "trial", "%s, %d ranks: %s from now on (%.1f us a call, MPI %.1f)",
            cpl_exchange_kind_name(exchange->kind), state->size, name,
            cpl_trial_us(trial, trial->chosen), cpl_trial_us(trial, 0));
}

/* Notes what a call took; collective as cpl_agree_trial is. */
static void note_call(const struct cpl_comm_state *state, struct cpl_exchange *exchange,
                      double seconds)
{
    int32_t before = exchange->plans.trial.chosen;
    if (cpl_agree_trial(state->private_comm, &exchange->plans.trial, seconds * 1e6))
        log_choice(state, exchange, before);
}

void cpl_neighbor_enter(struct cpl_exchange *exchange)
{
    cpl_quiet_settle(exchange);
    exchange->calls++;
    while (exchange->nonblocking.pending)
        cpl_progress_poll();
}

/* Ranks that share cores, and so have turns of several calls that count, give them to those that
 * they wait for. All ranks know that alike from when the exchange was planned; what a rank knows of
 * the machine may have changed since. */
static void meet(MPI_Comm comm, const struct cpl_exchange *x)
{
    if (x->plans.trial.calls_a_turn > 1)
        cpl_assembly_gather(comm);
    else
        cpl_collective_Barrier(comm);
}

/* Whether a candidate carries the current blocking call, or (with `carries` NULL) its messages are
 * sent in an order of the shim's. While a trial is running all ranks come together first: otherwise
 * it would time a late rank, not the exchange. Collective. */
static bool take_turn(const struct cpl_comm_state *state, struct cpl_exchange *exchange)
{
    bool planned = exchange->phase == CPL_PHASE_PLANNED;
    int32_t candidate = planned ? cpl_trial_candidate(&exchange->plans.trial) : 0;
    if (planned && cpl_trial_begins_turn(&exchange->plans.trial))
        meet(state->private_comm, exchange);
    exchange->plans.carries = candidate > 0 ? &exchange->plans.candidate[candidate - 1] : NULL;
    return candidate > 0 || exchange->order.message;
}

/* Whether MPI is to carry a call without timing it: outside trials, not while learning, and without
 * a report. Counts it then. */
static bool pass_untimed(struct cpl_exchange *exchange)
{
    if (exchange->plans.trial.running || exchange->phase == CPL_PHASE_LEARNING ||
        cpl_report_is_wanted())
        return false;
    cpl_trial_note(&exchange->plans.trial, 0);
    cpl_quiet_grant(exchange);
    return true;
}

/* Carries a blocking call whose data is resolved. Returns MPI's result, after the error handler
 * when it is an error. */
static int run(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
               struct cpl_exchange *exchange)
{
    const struct cpl_candidate *carries = exchange->plans.carries;
    struct cpl_carrying c = {.state = state,
                             .x = exchange,
                             .way = carries ? carries->way : &cpl_way_straight,
                             .made = carries ? carries->made : NULL,
                             .data = &exchange->data};
    c.way->start(&c);
    if (c.way->wait)
        c.way->wait(&c);
    else
        while (!c.way->progress(&c))
            cpl_progress_poll();
    cpl_carrying_note(&c, cpl_neighbor_unpack_aside(c.data));
    if (c.result != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(call->comm, c.result);
    return c.result;
}

/* Notes how long a blocking call took. */
static void note_time(struct cpl_exchange *x, double seconds, bool planned)
{
    struct cpl_exchange_plans *plans = &x->plans;
    cpl_samples_add(planned ? &x->planned : &x->direct, seconds);
    if (!plans->timeline && cpl_report_is_wanted())
        plans->timeline = calloc(1, sizeof *plans->timeline); /* else there is no picture */
    if (plans->timeline)
        cpl_timeline_add(plans->timeline, x->calls - 1, seconds, planned, plans->trial.running);
}

/* Carries a blocking call whose data is resolved, with what follows for the exchange's figures and
 * its trial; start: when the call began, in seconds. Returns MPI's result, after the error handler
 * when it is an error. Collective. */
static int carry_now(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                     struct cpl_exchange *exchange, double start)
{
    int result = run(call, state, exchange);
    double seconds = PMPI_Wtime() - start;
    exchange->calls_planned += exchange->plans.carries != NULL;
    exchange->order.n_calls += !exchange->plans.carries;
    note_time(exchange, seconds, exchange->plans.carries != NULL);
    if (exchange->phase == CPL_PHASE_PLANNED)
        note_call(state, exchange, seconds);
    return result;
}

bool cpl_neighbor_carry_entered(struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                                struct cpl_exchange *exchange, cpl_neighbor_resolver *resolve,
                                int *result)
{
    cpl_neighbor_order(state, exchange);
    bool carried = take_turn(state, exchange);
    if (!carried && pass_untimed(exchange))
        return false;
    double start = PMPI_Wtime();
    if (carried && resolve(call, state, exchange)) {
        *result = carry_now(call, state, exchange, start);
        return true;
    }
    call->state = state;
    call->watched = exchange;
    call->start = start;
    return false;
}

bool cpl_neighbor_resolve_own(const struct cpl_neighbor_call *call,
                              const struct cpl_comm_state *state, struct cpl_exchange *x)
{
    return cpl_neighbor_resolve_all(call, state, x, &x->data);
}

bool cpl_neighbor_carry(struct cpl_neighbor_call *call, int *result)
{
    struct cpl_comm_state *state = cpl_comm_state_get(call->comm);
    if (!state || !state->watched)
        return false;
    struct cpl_exchange *exchange = cpl_exchange_of(state, call->kind);
    cpl_neighbor_enter(exchange);
    bool plans_again = cpl_neighbor_plans_again(exchange) && !exchange->plans.trial.running;
    if ((exchange->phase == CPL_PHASE_LEARNING || plans_again) && must_plan(call, state, exchange))
        cpl_neighbor_settle(call, state, exchange, plan);
    return cpl_neighbor_carry_entered(call, state, exchange, cpl_neighbor_resolve_own, result);
}

void cpl_neighbor_passed(struct cpl_neighbor_call *call)
{
    if (!call->watched)
        return;
    double seconds = PMPI_Wtime() - call->start;
    note_time(call->watched, seconds, false);
    if (call->watched->phase == CPL_PHASE_PLANNED)
        note_call(call->state, call->watched, seconds);
    cpl_quiet_grant(call->watched);
}
