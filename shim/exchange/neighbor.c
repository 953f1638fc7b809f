/* The life of blocking calls (neighbor.h; doc/architecture.md, Life of an exchange): learned,
 * planned, tried, carried, reviewed; carriers do what is planned.
 *
 * At the 4th, 8th, 16th, ... call of MPI_Alltoallv or MPI_Alltoallw the ranks add up how many
 * messages there are and how many go where none went the call before. When most go where one went,
 * the exchange is planned. Dense patterns, in which more than half of all pairs of ranks have
 * messages, are planned when most messages are small enough to travel with others, and there are
 * not too many of them. A plan is right for all later messages, too; whether it still fits is only
 * a matter of speed. */
#include "shim/exchange/neighbor.h"
#include "shim/meet/agree.h"
#include "shim/meet/meeting.h"
#include "shim/wait/progress.h"

#include "shim/base/log.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/report/report.h"
#include "shim/state/context.h"
#include "shim/wait/assembly.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

/* Logs the result of a trial that has ended. */
static void log_choice(const struct cpl_comm_state *state, const struct cpl_exchange *x,
                       int32_t before)
{
    const struct cpl_trial *trial = &x->plans.trial;
    const char *name =
        trial->chosen > 0 ? x->plans.candidate[trial->chosen - 1].summary->strategy : "MPI";
    if (state->rank != 0 || (trial->chosen == before && trial->n_trials > 1))
        return;
    cpl_log(CPL_LOG_INFO, "trial", "%s, %d ranks: %s from now on (%.1f us a call, MPI %.1f)",
            cpl_exchange_kind_name(x->kind), state->size, name, cpl_trial_us(trial, trial->chosen),
            cpl_trial_us(trial, 0));
}

/* What a call by a plan has gained, or cost while it was tried, beside MPI's, once they are known.
 */
static void settle_account(const struct cpl_trial *trial, double us)
{
    struct cpl_account *account = &cpl_context.account;
    const double mpi_us = cpl_trial_us(trial, 0);
    const int32_t candidate = cpl_trial_candidate(trial);
    if (candidate == 0 || mpi_us <= 0)
        return;
    double gain = 1e-6 * (mpi_us - (trial->running ? us : cpl_trial_us(trial, candidate)));
    if (gain > 0)
        account->gained += gain;
    else if (trial->running)
        account->spent[CPL_COST_TRIALS] -= gain;
}

/* Notes in the trial what a call took on this rank. At the end of a round the ranks put their times
 * together. Collective. */
static void note_call(const struct cpl_comm_state *state, struct cpl_exchange *x, double seconds)
{
    struct cpl_trial *trial = &x->plans.trial;
    const int32_t before = trial->chosen;
    double slowest_us[CPL_MAX_TRIED];
    settle_account(trial, seconds * 1e6);
    if (cpl_trial_passing(trial) > 0) {
        cpl_trial_pass(trial, 1);
        return;
    }
    if (!cpl_trial_note(trial, seconds * 1e6))
        return;
    memcpy(slowest_us, trial->own_us, sizeof slowest_us);
    cpl_collective_Allreduce(trial->own_us, slowest_us, trial->n, MPI_DOUBLE, MPI_MAX,
                             state->private_comm);
    cpl_trial_judge(trial, slowest_us);
    if (!trial->running)
        log_choice(state, x, before);
}

/* The candidate that carries the current blocking call; NULL: MPI. While a trial is running all
 * ranks come together first: otherwise it would time a late rank, not the exchange. Those that
 * share cores, and so have turns of several calls that count, give them to those that they wait
 * for. All ranks know that alike from when the exchange was planned; what a rank knows of the
 * machine may have changed since. Collective. */
static const struct cpl_candidate *take_turn(const struct cpl_comm_state *state,
                                             const struct cpl_exchange *x)
{
    bool planned = x->phase == CPL_PHASE_PLANNED;
    int32_t candidate = planned ? cpl_trial_candidate(&x->plans.trial) : 0;
    bool begins = planned && cpl_trial_begins_turn(&x->plans.trial);
    if (begins && x->plans.trial.calls_a_turn > 1)
        cpl_assembly_gather(state->private_comm);
    else if (begins)
        cpl_collective_Barrier(state->private_comm);
    return candidate > 0 ? &x->plans.candidate[candidate - 1] : NULL;
}

/* Calls in a row that pass, so that some are timed: for a report, or while learning. */
#define MOST_UNTIMED 15

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The number of next calls of x at which there is nothing to do but leave them to MPI. Until the
 * ranks meet some calls are timed, to know what all have taken; MPI_Alltoallv's look at the
 * messages before. */
static int64_t count_passing(const struct cpl_exchange *x)
{
    const int64_t n_before_date = cpl_date_passing(&x->learned.date, 0, x->calls);
    if (x->phase == CPL_PHASE_LEARNING) {
        bool looks = x->kind >= CPL_ALLTOALLV || x->direct.n < CPL_N_SAMPLES;
        return looks ? 0 : least(MOST_UNTIMED, n_before_date);
    }
    if (cpl_trial_candidate(&x->plans.trial) > 0)
        return 0;
    int64_t n = least(CPL_PASS_MOST, cpl_trial_passing(&x->plans.trial));
    if ((x->phase == CPL_PHASE_PLANNED && x->kind >= CPL_ALLTOALLV) || cpl_neighbor_plans_again(x))
        n = least(n, n_before_date);
    return cpl_report_has_file() ? least(n, MOST_UNTIMED) : n;
}

/* If MPI carries the current call, lets the next calls pass until there is something to do. Where
 * messages are ordered none pass: each says what follows what. */
static void grant(struct cpl_exchange *x)
{
    if (cpl_context.settings.mode != CPL_MODE_PROFILE && !cpl_context.settings.order)
        cpl_pass_give(&x->pass, count_passing(x));
}

/* Whether MPI is to carry a call without timing it: outside trials, not while learning, and without
 * a report. Counts it then. */
static bool pass_untimed(struct cpl_exchange *x)
{
    if (x->plans.trial.running || x->phase == CPL_PHASE_LEARNING || cpl_report_is_wanted())
        return false;
    cpl_trial_note(&x->plans.trial, 0);
    grant(x);
    return true;
}

#define FIRST_ALLTOALL 4 /* the call at which the ranks first agree */
#define MOST_VAIN      6 /* agreements or plans that came to nothing: then MPI has it for good */

/* The ranks agree once more, or not any more. */
static void go_on_learning(struct cpl_exchange *x)
{
    x->phase = ++x->learned.n_vain < MOST_VAIN ? CPL_PHASE_LEARNING : CPL_PHASE_DIRECT;
}

static bool is_alltoall(const struct cpl_exchange *x)
{
    return x->kind == CPL_ALLTOALLV || x->kind == CPL_ALLTOALLW;
}

/* The ranks have come to settle something: plan, unless there is nothing to plan or it is early.
 * Collective. */
static void settle(cpl_planner *plan, const struct cpl_neighbor_call *call,
                   struct cpl_comm_state *state, struct cpl_exchange *x)
{
    const bool first = x->phase == CPL_PHASE_LEARNING;
    x->learned.left = CPL_LEFT_NOT;
    if (is_alltoall(x) && first && !cpl_alltoall_promises(call, state, x)) {
        if (x->learned.left != CPL_LEFT_EMPTY) /* that says nothing of later calls */
            go_on_learning(x);
        return;
    }
    int n_messages = is_alltoall(x)            ? x->notes->own.out.n_messages
                     : x->kind < CPL_ALLTOALLV ? state->adjacency.out.n_messages
                                               : state->size;
    if (!cpl_neighbor_is_early(call, state, x, n_messages))
        plan(call, state, x);
    else if (first)
        x->learned.left = CPL_LEFT_SHORT;
}

/* Whether the plan of an alltoall still fits; when more than a quarter of the messages are not in
 * it, the exchange is learned anew. Collective. */
static bool fits(const struct cpl_comm_state *state, struct cpl_exchange *x)
{
    struct cpl_learned *learned = &x->learned;
    int64_t mine[2] = {learned->n_extra, learned->n_messages}, all[2] = {0, 0};
    cpl_collective_Allreduce(mine, all, 2, MPI_INT64_T, MPI_SUM, state->private_comm);
    learned->n_extra = learned->n_messages = 0;
    if (4 * all[0] <= all[1])
        return true;
    cpl_exchange_release(x);
    x->plans.again = false; /* other messages are another search */
    learned->left = CPL_LEFT_ELSEWHERE;
    go_on_learning(x);
    cpl_date_hasten(&learned->date, x->calls, 2);
    return false;
}

/* Plans an exchange, or reviews its plan, when it is time. That needs a private communicator, and
 * no other thread in a call. Collective. */
static void look(cpl_planner *plan, const struct cpl_neighbor_call *call,
                 struct cpl_comm_state *state, struct cpl_exchange *x)
{
    const bool alltoall = is_alltoall(x), learns = x->phase == CPL_PHASE_LEARNING;
    const bool plans_again = cpl_neighbor_plans_again(x) && !x->plans.trial.running;
    const int64_t first = alltoall ? FIRST_ALLTOALL : cpl_settings_learn(&cpl_context.settings) + 1;
    if (!learns && !plans_again &&
        (!alltoall || x->phase != CPL_PHASE_PLANNED || cpl_exchange_is_served(x)))
        return;
    if (alltoall && learns && x->calls == x->learned.date.next - 1) {
        if (!x->learned.sent)
            x->learned.sent = calloc((size_t)state->size, 1);
        for (int r = 0; x->learned.sent && r < state->size; r++)
            x->learned.sent[r] = cpl_neighbor_rank_bytes(&call->send, r) > 0;
    }
    if (!cpl_date_has_come(&x->learned.date, cpl_meeting_first(state, first), x->calls))
        return;
    cpl_date_keep(&x->learned.date, x->calls, CPL_NEVER);
    if ((alltoall && !learns && !fits(state, x)) || (!learns && !plans_again) ||
        cpl_agree_own(state) == MPI_COMM_NULL)
        return;
    x->learned.left = learns ? CPL_LEFT_THREADS : CPL_LEFT_NOT;
    if (!cpl_exclusive_take(state->private_comm))
        return;
    settle(plan, call, state, x);
    cpl_exclusive_leave();
}

bool cpl_life_carry(cpl_planner *plan, struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                    struct cpl_exchange *x, int *result)
{
    cpl_pass_settle(x);
    x->calls++;
    while (x->nonblocking.pending)
        cpl_progress_poll();
    look(plan, call, state, x);
    if (cpl_context.settings.order)
        cpl_neighbor_order(state, x);
    struct cpl_carrying c = {.state = state, .x = x, .by = take_turn(state, x), .data = &x->data};
    if (!c.by && pass_untimed(x))
        return false;
    const bool timed = x->plans.trial.running || x->planned.n < CPL_N_SAMPLES ||
                       cpl_report_is_wanted(); /* else without a look at the clock */
    const double start = c.by && timed ? PMPI_Wtime() : 0;
    if (c.by && c.by->carrier->resolve(call, &c)) {
        c.by->carrier->start(&c);
        c.by->carrier->wait(&c);
        *result = c.result;
        if (c.result != MPI_SUCCESS)
            PMPI_Comm_call_errhandler(call->comm, c.result);
        x->calls_planned++;
        const double seconds = timed ? PMPI_Wtime() - start : 0;
        if (timed)
            cpl_samples_add(&x->planned, seconds);
        note_call(state, x, seconds);
        return true;
    }
    call->state = state;
    call->watched = x;
    call->start = PMPI_Wtime();
    return false;
}

bool cpl_neighbor_carry(struct cpl_neighbor_call *call, int *result)
{
    struct cpl_comm_state *state = cpl_neighbor_describe(call);
    return state && cpl_life_carry(cpl_neighbor_plan, call, state,
                                   cpl_exchange_of(state, call->kind), result);
}

void cpl_neighbor_passed(struct cpl_neighbor_call *call)
{
    if (!call->watched)
        return;
    struct cpl_exchange *x = call->watched;
    const double seconds = PMPI_Wtime() - call->start;
    cpl_samples_add(&x->direct, seconds);
    if (x->phase == CPL_PHASE_PLANNED)
        note_call(call->state, x, seconds);
    grant(x);
}
