/* Deciding what becomes of an allgather (allgather.h); allgather_run.c carries it. */
#include "shim/exchange/allgather.h"
#include "shim/meet/agree.h"
#include "shim/meet/desk.h"
#include "shim/meet/floor.h"
#include "shim/state/hooks.h"

#include "planner/place.h"
#include "shim/base/aside.h"
#include "shim/base/log.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/plan/plan_agree.h"
#include "shim/plan/plan_root.h"
#include "shim/report/report.h"
#include "shim/state/context.h"
#include "shim/state/memory.h"
#include "shim/wait/collective.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL     4096 /* bytes in all: calls of less are MPI's in any case, unless forced */
#define ENOUGH_US 2000 /* that calls have taken when the ranks agree first, */
#define STEP_US   2.0  /* at so much a message one after the other */
#define BYTE_US   1e-4 /* and a byte */
#define PROMISING 0.9  /* of MPI's modelled time: worth a trial */
#define NOT_FAR   2.0  /* the same where pairs were measured (promises) */

#define BLOCKING_TAG 999 /* on the private communicator, above those of exchanges */

/* What a way that is not in place gathers in, at most: its data is copied once more. */
#define MOST_ROOM (INT64_C(64) << 20)

static void meet(struct cpl_comm_state *state)
{
    const struct cpl_settings *settings = &cpl_context.settings;
    state->allgathers.least = settings->mode == CPL_MODE_FORCE ? 1 : SMALL;
    if (state->inter || state->size < 2 || settings->allgather == CPL_ALLGATHER_CHOICE_OFF)
        state->allgathers.least = CPL_ALLGATHER_NONE;
}

/* What is kept of the communicator's allgathers, from the first call on that may be carried. */
static struct cpl_allgather *keep(struct cpl_comm_state *state)
{
    if (!state->allgathers.kept)
        state->allgathers.kept =
            cpl_memory_need(sizeof *state->allgathers.kept, "the allgathers of a communicator");
    return state->allgathers.kept;
}

/* ---- the ranks agree ---- */

static bool allocate(struct cpl_allgather *a, int size)
{
    size_t n = (size_t)size;
    a->rank_at = calloc(CPL_N_ALLGATHER_WAYS * n, sizeof *a->rank_at);
    a->span = calloc(n, sizeof *a->span);
    a->at = calloc(n + 1, sizeof *a->at);
    return a->rank_at && a->span && a->at;
}

static void release(struct cpl_allgather *a)
{
    for (int kind = 0; kind < CPL_N_ALLGATHER_KINDS; kind++)
        for (int k = 0; k < CPL_ALLGATHER_CLASSES; k++) {
            free(a->sizes[kind][k]);
            a->sizes[kind][k] = NULL;
        }
    free(a->rank_at);
    free(a->span);
    free(a->at);
    free(a->room);
    a->rank_at = NULL;
    a->span = NULL;
    a->at = NULL;
    a->room = NULL;
}

/* On the rank that plans. */
static void plan_at_root(struct cpl_allgather *a, const struct cpl_desk *desk)
{
    struct cpl_machine machine;
    struct cpl_error error;
    double start = PMPI_Wtime();
    enum cpl_status status = cpl_plan_root_machine(desk->n_ranks, desk->headers,
                                                   sizeof(struct cpl_seat), &machine, &error);
    if (!status) {
        bool even = cpl_place_is_even(&machine) && !machine.distance_us;
        status = cpl_allgather_plan(&machine, a->rank_at, a->plan.model, &error);
        a->plan.measured = machine.distance_us != NULL;
        a->plan.outcome = even ? CPL_ALLGATHER_EVEN : CPL_ALLGATHER_PLACED;
        cpl_machine_free(&machine);
    }
    a->plan.plan_ms = (PMPI_Wtime() - start) * 1e3;
    if (!status)
        return;
    a->plan.outcome = CPL_ALLGATHER_FAILED;
    cpl_log(CPL_LOG_WARN, "allgather", "%s; allgathers are left to MPI", error.text);
}

/* Hands in where the ranks sit, plans, spreads it. Collective; the same result on all ranks. */
static bool find_plan(struct cpl_comm_state *state)
{
    struct cpl_allgather *a = state->allgathers.kept;
    const struct cpl_seat seat = cpl_agree_seat(state->private_comm);
    struct cpl_desk desk;
    cpl_desk_open(&desk, state->private_comm, cpl_agree_root(state->private_comm, state->rank));
    bool ready = cpl_desk_hand_in(
        &desk, &(struct cpl_handed_in){.able = true, .header = &seat, .header_bytes = sizeof seat});
    if (ready) {
        if (cpl_desk_is_root(&desk))
            plan_at_root(a, &desk);
        cpl_desk_answer(&desk, &a->plan, sizeof a->plan);
        cpl_desk_answer(&desk, a->rank_at,
                        CPL_N_ALLGATHER_WAYS * (size_t)state->size * sizeof *a->rank_at);
    }
    cpl_desk_close(&desk);
    return ready && a->plan.outcome != CPL_ALLGATHER_FAILED;
}

static bool allows(enum cpl_allgather_way way)
{
    int32_t choice = cpl_context.settings.allgather;
    return choice == CPL_ALLGATHER_CHOICE_AUTO ||
           choice == CPL_ALLGATHER_CHOICE_WAYS + (int32_t)way;
}

/* Whether a way is worth a trial for the calls of a class. With measured distances any is that
 * places the ranks, or is not MPI's own, unless it is modelled much slower: pairs that are measured
 * tell little of links that more or fewer of them share. */
static bool promises(const struct cpl_allgather *a, const struct cpl_allgather_class *model,
                     int way)
{
    if (a->plan.outcome != CPL_ALLGATHER_PLACED)
        return false;
    if (a->plan.measured)
        return (model->placed[way] || way != model->mpi_way) &&
               model->us[way] < NOT_FAR * model->mpi_us;
    return model->us[way] < PROMISING * model->mpi_us;
}

/* The ways that may carry calls of a class, best first. Returns how many. */
static int32_t list_ways(const struct cpl_allgather *a, int32_t class_,
                         enum cpl_allgather_way way[CPL_N_ALLGATHER_WAYS])
{
    const struct cpl_allgather_class *model = &a->plan.model[class_];
    bool forced = cpl_context.settings.mode == CPL_MODE_FORCE;
    int32_t n = 0;
    for (int w = 0; w < CPL_N_ALLGATHER_WAYS; w++) {
        if (!allows((enum cpl_allgather_way)w) || !(forced || promises(a, model, w)))
            continue;
        int32_t k = n++;
        for (; k > 0 && model->us[w] < model->us[way[k - 1]]; k--)
            way[k] = way[k - 1];
        way[k] = (enum cpl_allgather_way)w;
    }
    return n;
}

static struct cpl_allgather_size *make_size(struct cpl_allgather *a, int kind, int32_t class_)
{
    if (!a->sizes[kind][class_])
        a->sizes[kind][class_] = calloc(1, sizeof *a->sizes[kind][class_]);
    return a->sizes[kind][class_];
}

/* Begins the trials of all classes in which a way promises something. False when memory ran out. */
static bool begin_trials(struct cpl_allgather *a)
{
    bool measured = cpl_context.settings.mode == CPL_MODE_AUTO && cpl_context.settings.trial > 0;
    for (int kind = 0; kind < CPL_N_ALLGATHER_KINDS; kind++)
        for (int32_t k = 0; k < CPL_ALLGATHER_CLASSES; k++) {
            enum cpl_allgather_way way[CPL_N_ALLGATHER_WAYS];
            int32_t n_ways = list_ways(a, k, way);
            if (n_ways == 0)
                continue;
            struct cpl_allgather_size *size = make_size(a, kind, k);
            if (!size)
                return false;
            size->n_ways = n_ways;
            memcpy(size->way, way, sizeof way);
            cpl_trial_begin(&size->trial, measured ? n_ways + 1 : 2,
                            measured ? (int32_t)cpl_context.settings.trial : 0);
        }
    return true;
}

/* The bytes below which nothing is tried; CPL_ALLGATHER_NONE: nothing is at all. */
static int64_t least_bytes(const struct cpl_comm_state *state)
{
    const struct cpl_allgather *a = state->allgathers.kept;
    enum cpl_allgather_way way[CPL_N_ALLGATHER_WAYS];
    for (int32_t k = 0; k < CPL_ALLGATHER_CLASSES; k++)
        if (cpl_allgather_class_most(k) >= state->allgathers.least && list_ways(a, k, way) > 0)
            return k > 0 ? cpl_allgather_class_most(k - 1) + 1 : state->allgathers.least;
    return CPL_ALLGATHER_NONE;
}

static void log_plan(const struct cpl_comm_state *state, int64_t least)
{
    if (least < CPL_ALLGATHER_NONE)
        cpl_log(
            CPL_LOG_INFO, "allgather",
            "%d ranks placed in %.1f ms; allgathers of %lld bytes and more promise to be faster",
            state->size, state->allgathers.kept->plan.plan_ms, (long long)least);
    else
        cpl_log(CPL_LOG_INFO, "allgather", "%d ranks: nothing is modelled faster than MPI",
                state->size);
}

/* Places the ranks. On all ranks alike, calls are carried, or tried, from now on, or MPI has them
 * for good. Collective. */
static void agree(struct cpl_comm_state *state)
{
    CPL_ASIDE;
    struct cpl_allgather *a = state->allgathers.kept;
    a->agreed = true;
    bool done = cpl_agree_own(state) != MPI_COMM_NULL &&
                cpl_agree_all(state->private_comm, allocate(a, state->size)) && find_plan(state);
    done = done && cpl_agree_all(state->private_comm, begin_trials(a));
    if (!done) {
        a->plan.outcome = CPL_ALLGATHER_FAILED;
        release(a);
    }
    for (int w = 0; w < CPL_N_ALLGATHER_WAYS && done; w++)
        for (int32_t point = 0; point < state->size; point++)
            if (a->rank_at[w * state->size + point] == state->rank)
                a->point[w] = point;
    int64_t least = done ? least_bytes(state) : CPL_ALLGATHER_NONE;
    if (done && state->rank == 0)
        log_plan(state, least);
    if (cpl_report_is_wanted()) /* all calls are to be told of */
        return;
    state->allgathers.least = least;
    if (least == CPL_ALLGATHER_NONE)
        release(a);
}

/* Whether placing the ranks would cost too much yet. Collective; the same result on all ranks. */
static bool is_early(const struct cpl_comm_state *state)
{
    struct cpl_plan_turn turn = {.search = CPL_SEARCH_FULL};
    const struct cpl_agree_input input = {.n_messages = state->size, .turn = &turn};
    return cpl_plan_is_early(state->private_comm, &input,
                             (PMPI_Wtime() - cpl_context.account.start) * 1e3,
                             state->allgathers.kept->n_calls, true);
}

/* Agrees, unless other threads are in calls, or it is early: then the ranks try again after as
 * many calls. */
static void agree_alone(struct cpl_comm_state *state)
{
    struct cpl_allgather *a = state->allgathers.kept;
    a->enough_us = 2 * a->worth_us;
    if (cpl_agree_own(state) == MPI_COMM_NULL)
        return;
    a->denied = !cpl_floor_take(state->private_comm);
    if (a->denied) {
        a->n_calls = 0;
        return;
    }
    if (!is_early(state)) {
        struct cpl_expense expense = cpl_account_begin(&cpl_context.account, PMPI_Wtime());
        agree(state);
        cpl_account_end(&cpl_context.account, expense, CPL_COST_PLANNING, PMPI_Wtime());
    }
    cpl_floor_leave();
}

/* ---- a call ---- */

/* Counts a call of some size. Whether the ranks are to agree now; alike on all ranks. */
static bool is_time(struct cpl_allgather *a, int n_ranks, int64_t bytes)
{
    if (a->agreed)
        return false;
    a->worth_us +=
        STEP_US * cpl_allgather_steps(CPL_ALLGATHER_DOUBLING, n_ranks) + BYTE_US * (double)bytes;
    return a->n_calls > cpl_settings_learn(&cpl_context.settings) &&
           (cpl_context.settings.mode == CPL_MODE_FORCE ||
            a->worth_us >= (a->enough_us > 0 ? a->enough_us : ENOUGH_US));
}

/* Makes room for so many bytes. Collective; the same result on all ranks. */
static bool make_room(struct cpl_comm_state *state, int64_t bytes)
{
    struct cpl_allgather *a = state->allgathers.kept;
    if (bytes <= a->n_room)
        return true;
    if (a->lacks_room || bytes > MOST_ROOM)
        return false;
    int64_t n_room = cpl_allgather_class_most(cpl_allgather_class_of(bytes)) + 1;
    free(a->room);
    a->room = malloc((size_t)n_room);
    a->lacks_room = !cpl_agree_all(state->private_comm, a->room);
    a->n_room = a->lacks_room ? 0 : n_room;
    return !a->lacks_room;
}

/* Which way carries the call at hand, CPL_N_ALLGATHER_WAYS: MPI does. While a trial is running all
 * ranks come together first. Collective. */
static enum cpl_allgather_way take_turn(struct cpl_comm_state *state,
                                        const struct cpl_allgather_size *size, int64_t bytes)
{
    if (!size || size->n_ways == 0 || cpl_context.settings.mode == CPL_MODE_PROFILE)
        return CPL_N_ALLGATHER_WAYS;
    int32_t candidate = cpl_trial_candidate(&size->trial);
    if (size->trial.running)
        cpl_collective_Barrier(state->private_comm);
    if (candidate == 0)
        return CPL_N_ALLGATHER_WAYS;
    enum cpl_allgather_way way = size->way[candidate - 1];
    if (!cpl_allgather_is_in_place(way) && !make_room(state, bytes))
        return CPL_N_ALLGATHER_WAYS;
    return way;
}

static const char *candidate_name(const struct cpl_allgather_size *size, int32_t candidate)
{
    return candidate > 0 ? cpl_allgather_name(size->way[candidate - 1]) : "MPI";
}

static void note_call(const struct cpl_comm_state *state, struct cpl_allgather_size *size,
                      double seconds)
{
    int32_t before = size->trial.chosen;
    if (size->n_ways == 0 || cpl_context.settings.mode == CPL_MODE_PROFILE ||
        !cpl_agree_trial(state->private_comm, &size->trial, seconds * 1e6) || state->rank != 0 ||
        (size->trial.chosen == before && size->trial.n_trials > 1))
        return;
    cpl_log(CPL_LOG_INFO, "trial",
            "allgather of some %lld bytes, %d ranks: %s from now on "
            "(%.1f us a call, MPI %.1f)",
            (long long)(size->bytes / size->calls), state->size,
            candidate_name(size, size->trial.chosen),
            cpl_trial_us(&size->trial, size->trial.chosen), cpl_trial_us(&size->trial, 0));
}

/* Finds the data of a call: for each rank, and what this one sends unless it is in place. False
 * when MPI would refuse an argument. */
static bool resolve(const struct cpl_allgather_call *call, const struct cpl_comm_state *state,
                    struct cpl_span *span, struct cpl_span *own)
{
    if (!cpl_neighbor_resolve_ranks(&call->recv, state->size, span))
        return false;
    if (call->send.buffer == MPI_IN_PLACE)
        return true;
    const struct cpl_span *to = &span[state->rank];
    return cpl_neighbor_resolve_rank(&call->send, 0, own) &&
           (own->address != to->address || own->count != to->count || own->count == 0 ||
            own->type.handle != to->type.handle); /* MPI's to refuse: buffers overlap */
}

static int carry(const struct cpl_allgather_call *call, struct cpl_comm_state *state,
                 enum cpl_allgather_way way, const struct cpl_span *own, int32_t class_)
{
    const struct cpl_allgather *a = state->allgathers.kept;
    bool placed = a->rank_at && a->plan.model[class_].placed[way];
    struct cpl_gathering g = {.comm = state->private_comm,
                              .tag = BLOCKING_TAG,
                              .way = way,
                              .rank_at =
                                  placed ? a->rank_at + (size_t)way * (size_t)state->size : NULL,
                              .n = state->size,
                              .point = placed ? a->point[way] : state->rank,
                              .own = call->send.buffer == MPI_IN_PLACE ? NULL : own,
                              .span = a->span,
                              .at = a->at,
                              .room = a->room};
    int result = cpl_gathering_run(&g);
    if (result != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(call->comm, result);
    return result;
}

bool cpl_allgather_carry(struct cpl_allgather_call *call, int *result)
{
    struct cpl_comm_state *state = cpl_comm_state_get(call->comm);
    struct cpl_allgather *a = keep(state);
    int64_t bytes = cpl_allgather_bytes(call, state->size);
    a->n_calls++;
    if (is_time(a, state->size, bytes))
        agree_alone(state);
    bool wanted = cpl_report_is_wanted();
    int32_t class_ = cpl_allgather_class_of(bytes);
    struct cpl_allgather_size *size =
        wanted ? make_size(a, call->kind, class_) : a->sizes[call->kind][class_];
    if (!size)
        return false;
    size->calls++;
    size->bytes += bytes;
    struct cpl_span own;
    enum cpl_allgather_way way = take_turn(state, size, bytes);
    if (way == CPL_N_ALLGATHER_WAYS && !size->trial.running && !wanted) {
        note_call(state, size, 0);
        return false;
    }
    call->start = PMPI_Wtime();
    call->state = state;
    call->watched = size;
    if (way == CPL_N_ALLGATHER_WAYS || !resolve(call, state, state->allgathers.kept->span, &own))
        return false;
    *result = carry(call, state, way, &own, class_);
    double seconds = PMPI_Wtime() - call->start;
    size->calls_carried++;
    cpl_samples_add(&size->carried, seconds);
    note_call(state, size, seconds);
    return true;
}

void cpl_allgather_passed(struct cpl_allgather_call *call)
{
    if (!call->watched)
        return;
    double seconds = PMPI_Wtime() - call->start;
    cpl_samples_add(&call->watched->direct, seconds);
    note_call(call->state, call->watched, seconds);
}

/* ---- the end ---- */

static enum cpl_left_alone why_not_carried(const struct cpl_allgather *a,
                                           const struct cpl_allgather_size *size)
{
    if (!a->agreed)
        return a->denied ? CPL_LEFT_THREADS : CPL_LEFT_FEW_CALLS;
    if (a->plan.outcome == CPL_ALLGATHER_FAILED)
        return CPL_LEFT_NO_PLAN;
    if (size->n_ways == 0)
        return CPL_LEFT_NO_GAIN;
    if (cpl_context.settings.mode == CPL_MODE_PROFILE)
        return CPL_LEFT_PROFILED;
    if (size->trial.chosen == 0 && !size->trial.running)
        return CPL_LEFT_SLOWER;
    return CPL_LEFT_NOT;
}

/* What the model says of a way; busiest sends are those of one rank, one after the other. */
static struct cpl_metrics metrics_of(enum cpl_allgather_way way, int32_t n_ranks, double us)
{
    int32_t steps = cpl_allgather_steps(way, n_ranks);
    return (struct cpl_metrics){.sends_max = steps,
                                .sends_avg = steps,
                                .recvs_max = steps,
                                .hops_max = steps,
                                .mpi_max = steps,
                                .modelled_us = us};
}

/* The way that is modelled fastest. */
static enum cpl_allgather_way fastest(const struct cpl_allgather_class *model)
{
    int best = 0;
    for (int w = 1; w < CPL_N_ALLGATHER_WAYS; w++)
        best = model->us[w] <= model->us[best] ? w : best;
    return (enum cpl_allgather_way)best;
}

static void tell_choice(const struct cpl_allgather *a, const struct cpl_allgather_size *size,
                        int32_t n_ranks, int32_t class_, struct cpl_record *r)
{
    const struct cpl_trial *trial = &size->trial;
    const struct cpl_allgather_class *model = &a->plan.model[class_];
    struct cpl_plan_summary *s = &r->summary;
    r->reason = why_not_carried(a, size);
    if (!a->agreed || a->plan.outcome == CPL_ALLGATHER_FAILED)
        return;
    int32_t chosen = trial->chosen > 0 ? trial->chosen - 1 : 0;
    enum cpl_allgather_way way = size->n_ways > 0 ? size->way[chosen] : fastest(model);
    s->known = 1;
    s->decided = r->reason == CPL_LEFT_NOT && trial->chosen > 0;
    snprintf(s->strategy, sizeof s->strategy, "%s", cpl_allgather_name(way));
    if (s->decided)
        snprintf(r->way, sizeof r->way, "%s", cpl_allgather_name(way));
    s->n_messages = (int64_t)n_ranks * (n_ranks - 1);
    s->bytes = size->bytes / size->calls * (n_ranks - 1);
    s->cost.ms = a->plan.plan_ms;
    s->direct = metrics_of((enum cpl_allgather_way)model->mpi_way, n_ranks, model->mpi_us);
    s->planned = metrics_of(way, n_ranks, model->us[way]);
    r->trials.n = trial->n_trials;
    r->trials.calls = trial->tried;
    r->trials.n_tried = trial->rounds > 0 ? trial->n : 0;
    for (int32_t k = 0; k < r->trials.n_tried; k++) {
        r->trials.us[k] = cpl_trial_us(trial, k);
        r->trials.modelled_us[k] = k > 0 ? model->us[size->way[k - 1]] : model->mpi_us;
        snprintf(r->trials.tried[k], sizeof r->trials.tried[k], "%s",
                 k > 0 ? cpl_allgather_name(size->way[k - 1]) : "direct");
    }
}

/* The medians of the slowest rank. */
enum { DIRECT, CARRIED, N_MEDIANS };

static void add_record(const struct cpl_comm_state *state, int kind, int32_t class_,
                       const double *medians)
{
    const struct cpl_allgather *a = state->allgathers.kept;
    const struct cpl_allgather_size *size = a->sizes[kind][class_];
    if (!size || size->calls == 0)
        return;
    struct cpl_record r = {.kind = CPL_KIND_ALLGATHER + kind,
                           .n_ranks = state->size,
                           .n_communicators = 1,
                           .calls = size->calls,
                           .calls_planned = size->calls_carried,
                           .data_most = cpl_allgather_class_most(class_)};
    r.direct_seconds = medians[DIRECT] * (double)(r.calls - r.calls_planned);
    r.planned_seconds = medians[CARRIED] * (double)r.calls_planned;
    tell_choice(a, size, state->size, class_, &r);
    cpl_report_add(&r);
}

static void end(struct cpl_comm_state *state)
{
    struct cpl_allgather *a = state->allgathers.kept;
    double own[CPL_N_ALLGATHER_KINDS][CPL_ALLGATHER_CLASSES][N_MEDIANS] = {{{0}}};
    double all[CPL_N_ALLGATHER_KINDS][CPL_ALLGATHER_CLASSES][N_MEDIANS];
    if (!a)
        return;
    if (a->n_calls > 0 && cpl_report_is_wanted()) {
        for (int kind = 0; kind < CPL_N_ALLGATHER_KINDS; kind++)
            for (int32_t k = 0; k < CPL_ALLGATHER_CLASSES; k++) {
                const struct cpl_allgather_size *size = a->sizes[kind][k];
                own[kind][k][DIRECT] = size ? cpl_samples_median(&size->direct) : 0;
                own[kind][k][CARRIED] = size ? cpl_samples_median(&size->carried) : 0;
            }
        memcpy(all, own, sizeof all);
        if (state->private_comm != MPI_COMM_NULL)
            cpl_collective_Reduce(own, all, (int)(sizeof own / sizeof(double)), MPI_DOUBLE, MPI_MAX,
                                  0, state->private_comm);
        for (int kind = 0; kind < CPL_N_ALLGATHER_KINDS && state->rank == 0; kind++)
            for (int32_t k = 0; k < CPL_ALLGATHER_CLASSES; k++)
                add_record(state, kind, k, all[kind][k]);
    }
    release(a);
}

const struct cpl_hooks cpl_allgather_hooks = {.name = "allgathers", .meet = meet, .end = end};
