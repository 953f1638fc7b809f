/* Nonblocking neighborhood collectives: their calls, and when these are carried (neighbor.h;
 * doc/architecture.md, Nonblocking collectives).
 *
 * The ranks agree at a meeting (meet/meeting.h) of any communicator with all ranks of
 * MPI_COMM_WORLD: if all have then made the same number of calls of each kind, these are planned
 * and the next call is the first one carried, on all ranks alike. In auto mode the program's pace
 * is looked at there, too: when it has become slower, the calls are given back to MPI. The calls on
 * a communicator of fewer ranks are planned at meetings of its own, and carried from its next
 * meeting after all ranks of MPI_COMM_WORLD have settled that they poll (pt2pt_parts.h). */
#include "shim/base/log.h"
#include "shim/carry/line.h"
#include "shim/carry/requests.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/meet/agree.h"
#include "shim/meet/meeting.h"
#include "shim/plan/plan_root.h"
#include "shim/state/context.h"
#include "shim/state/hooks.h"
#include "shim/state/memory.h"
#include "shim/wait/collective.h"
#include "shim/wait/progress.h"

#include <stdlib.h>

/* Calls are not tried, but given back when the program has become slower: that takes so many times
 * from collective to collective of before, so in mode auto nothing is decided before the date. */
#define LEAST_PACES 6
#define PACED_DATE  (LEAST_PACES + 2)

#define LONGEST_PAUSE 64   /* between regular meetings */
#define LONGEST_IDLE  4096 /* as long as there never was anything to decide */
#define NO_CANDIDATE  INT64_MAX

/* Notes the messages: of neighborhood collectives, those of the first call of a kind, in which all
 * ranks start an exchange of tokens, at the same place in the communicator's sequence of
 * collectives; of MPI_Ialltoallv and _w, those of the latest one. */
static void note(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                 struct cpl_exchange *x)
{
    struct cpl_neighbor_notes **notes = &x->nonblocking.notes;
    struct cpl_serve *serve = state->serve;
    if (!serve->named) { /* the communicator gets a number from its first rank */
        serve->named = true;
        serve->id = (int64_t)cpl_context.rank << 32 | cpl_context.exchanges.n_serve_ids++;
        PMPI_Ibcast(&serve->id, 1, MPI_INT64_T, 0, state->comm, &serve->request);
    }
    int tries = 0; /* until then all ranks start an exchange of tokens, or none */
    while (!*notes && !(*notes = cpl_neighbor_notes_make(state, x)) && call->kind < CPL_ALLTOALLV)
        cpl_memory_wait(&tries, "the notes of a nonblocking call");
    if (*notes)
        cpl_neighbor_notes_fill(*notes, call, state, x);
}

bool cpl_neighbor_start(const struct cpl_neighbor_call *call, MPI_Request *request)
{
    struct cpl_comm_state *state = cpl_neighbor_describe(call);
    if (!state)
        return false;
    struct cpl_exchange *x = cpl_exchange_of(state, call->kind);
    bool first = x->nonblocking.n++ == 0;
    if (cpl_context.exchanges.n_started++ == 0)
        cpl_meeting_end_grants(); /* from now on the pace of collectives is taken */
    if (cpl_neighbor_may_be_served(state) &&
        (call->kind < CPL_ALLTOALLV ? first : x->nonblocking.phase == CPL_STARTED_OPEN))
        note(call, state, x);
    struct cpl_neighbor_op *op =
        cpl_exchange_is_served(x) ? cpl_neighbor_op_make(call, state, x) : NULL;
    if (!op)
        return false;
    x->nonblocking.n_planned++;
    cpl_context.exchanges.n_carried++;
    op->request = cpl_request_make(call->comm, true);
    cpl_request_open_collective(op->request);
    *request = op->request->handle;
    cpl_neighbor_op_start(op);
    return true;
}

static void meet(struct cpl_comm_state *state)
{
    static const struct cpl_serve blank = {.request = MPI_REQUEST_NULL};
    state->serve = (struct cpl_serve *)&blank;
}

static void begin(struct cpl_comm_state *state)
{
    state->serve = cpl_memory_need(sizeof *state->serve, "a communicator");
    state->serve->request = MPI_REQUEST_NULL;
    if (cpl_context.settings.mode == CPL_MODE_AUTO)
        cpl_date_put_off(&state->serve->date, 0, cpl_meeting_first(state, PACED_DATE));
}

static bool is_part(const struct cpl_comm_state *state)
{
    return state->size < cpl_context.size;
}

/* Whether a request that all ranks have started is complete. */
static bool has_come(MPI_Request *request)
{
    int done = 1;
    if (*request != MPI_REQUEST_NULL)
        PMPI_Test(request, &done, MPI_STATUS_IGNORE);
    return done;
}

static bool is_undecided(const struct cpl_exchange *x)
{
    return x->nonblocking.n > 0 && x->nonblocking.n >= cpl_settings_learn(&cpl_context.settings) &&
           x->nonblocking.phase == CPL_STARTED_OPEN;
}

/* Whether the ranks of `host` decide about a communicator's calls: of all ranks about those of all
 * communicators of all ranks, others about their own. */
static bool is_decided_at(const struct cpl_comm_state *host, const struct cpl_comm_state *s)
{
    return is_part(host) ? s == host : !is_part(s);
}

/* The communicator with the lowest number that has calls to decide about; NULL: none. */
static struct cpl_comm_state *find_candidate(const struct cpl_comm_state *host)
{
    struct cpl_comm_state *found = NULL;
    for (struct cpl_comm_state *s = cpl_context.comms.first; s; s = s->next) {
        if (!is_decided_at(host, s))
            continue;
        bool in_question = false;
        for (int k = 0; s->serve->named && k < CPL_N_NEIGHBOR_KINDS; k++) {
            enum cpl_started_phase phase = s->exchanges[k].nonblocking.phase;
            in_question |= is_undecided(&s->exchanges[k]) || phase == CPL_STARTED_DOUBTED ||
                           (phase == CPL_STARTED_WAITING && cpl_context.busy.parts);
        }
        if (in_question && has_come(&s->serve->request) &&
            (!found || s->serve->id < found->serve->id))
            found = s;
    }
    return found;
}

enum able { HOPELESS, NOT_YET, ABLE };

static enum able how_able(struct cpl_comm_state *candidate)
{
    bool ready = cpl_context.n_epochs == 0;
    if (cpl_context.met_others || cpl_context.service.barred)
        return HOPELESS;
    for (int k = 0; k < CPL_N_NEIGHBOR_KINDS; k++) {
        const struct cpl_exchange *x = &candidate->exchanges[k];
        if (!is_undecided(x))
            continue;
        if (!x->nonblocking.notes || !x->nonblocking.notes->usable)
            return HOPELESS;
        ready &= has_come(&x->nonblocking.notes->request);
    }
    return ready ? ABLE : NOT_YET;
}

/* What the ranks vote. The least counts: of the candidate's name, and of a hash of that and of the
 * calls made of each kind, which are the same if the complement is. Behind these the program's
 * pace, which is summed up. */
enum { HOW_ABLE, ID, SAME, NEGATED, N_LEAST };
enum { NS_BEFORE = N_LEAST, NS_SINCE, N_WORDS };

/* Calls that all ranks must have made alike when they settle what becomes of the nonblocking ones.
 * Where several threads call, the ranks may be at different blocking ones, too. */
static int64_t count_calls(const struct cpl_comm_state *state, int kind)
{
    const struct cpl_exchange *x = &state->exchanges[kind];
    int64_t blocking = x->calls + x->pass.granted - x->pass.remaining;
    return x->nonblocking.n + (cpl_context.service.shared ? blocking << 32 : 0);
}

void cpl_neighbor_count_served(struct cpl_comm_state *state, bool served)
{
    if (state->serve->counted == served)
        return;
    state->serve->counted = served;
    if (!is_part(state))
        cpl_context.busy.n_served += served ? 1 : -1;
    cpl_progress_update();
}

/* Calls of one kind are carried from the next one on. Collective over `over`. */
static void begin_serving(MPI_Comm over, struct cpl_comm_state *state, struct cpl_exchange *x)
{
    bool waits = is_part(state) && !cpl_context.busy.parts;
    x->nonblocking.phase = waits                     ? CPL_STARTED_WAITING
                           : cpl_agree_service(over) ? CPL_STARTED_SERVED
                                                     : CPL_STARTED_BY_MPI;
    if (cpl_exchange_is_served(x))
        cpl_neighbor_count_served(state, true);
    else if (waits && cpl_context.service.shared) /* nobody else hastens it */
        cpl_date_hasten(&state->serve->date, state->meeting.n, LONGEST_PAUSE);
}

/* Whether it is too early to plan: calls that do not wait are not timed, so the program must have
 * run for long enough. Collective over the host; the same result on all ranks. */
static bool is_early(struct cpl_comm_state *host, struct cpl_exchange *x)
{
    if (x->phase != CPL_PHASE_LEARNING)
        return false;
    const struct cpl_neighbor_notes *notes = x->nonblocking.notes;
    struct cpl_plan_turn *turn = &x->plans.turn;
    const int64_t n = notes->n + (x->kind >= CPL_ALLTOALLV ? notes->n_straight : 0);
    const struct cpl_agree_input input = {.n_messages = (int)n, .turn = turn};
    bool early =
        cpl_plan_is_early(host->private_comm, &input,
                          (PMPI_Wtime() - cpl_context.account.start) * 1e3, host->meeting.n, true);
    if (early)
        cpl_date_put_off(&host->serve->date, host->meeting.n, turn->pause);
    return early;
}

static void free_notes(struct cpl_exchange *x)
{
    cpl_neighbor_notes_free(x->nonblocking.notes);
    x->nonblocking.notes = NULL;
}

/* Decides about the calls of one kind. Returns whether that was possible by now. Collective over
 * the host; the same result on all ranks. */
static bool settle_kind(struct cpl_comm_state *host, struct cpl_comm_state *state,
                        struct cpl_exchange *x, bool able)
{
    MPI_Comm over = host->private_comm;
    if (able && is_early(host, x)) {
        x->learned.left = CPL_LEFT_SHORT;
        return false;
    }
    if (x->learned.left == CPL_LEFT_SHORT)
        x->learned.left = CPL_LEFT_NOT;
    if (able && x->phase == CPL_PHASE_LEARNING) {
        cpl_neighbor_notes_free(x->notes);
        x->notes = x->nonblocking.notes;
        x->nonblocking.notes = NULL;
        cpl_neighbor_plan_noted(state, x, cpl_agree_own(state) != MPI_COMM_NULL);
    }
    x->nonblocking.phase = CPL_STARTED_BY_MPI;
    /* Nonblocking calls are not measured: a plan that was made to be tried must promise more. With
     * fewer ranks all collectives of all ranks poll for it, which takes more than lanes save. */
    const struct cpl_plan_summary *s = &x->plans.summary[0];
    bool promises = cpl_context.settings.mode != CPL_MODE_AUTO ||
                    (cpl_plan_promises(s) && !(is_part(state) && s->planned.mpi_max == 0));
    if (able && x->phase == CPL_PHASE_PLANNED && promises)
        begin_serving(over, state, x);
    if (x->nonblocking.notes && x->nonblocking.notes->request == MPI_REQUEST_NULL)
        free_notes(x);
    return true;
}

/* Gives the calls of one kind back to MPI: the next one is MPI's, on all ranks alike. Collective
 * over the communicator, on which all have started the same calls. */
static void take_back(struct cpl_comm_state *state, struct cpl_exchange *x)
{
    bool served = state->persistent.n > 0;
    cpl_neighbor_drain(x);
    x->nonblocking.phase = CPL_STARTED_GIVEN_BACK;
    if (state->rank == 0)
        cpl_log(CPL_LOG_INFO, "neighbor", "nonblocking %s, %d ranks: %s",
                cpl_exchange_kind_name(x->kind), state->size, cpl_left_alone_text(CPL_LEFT_SLOWED));
    for (int k = 0; k < CPL_N_NEIGHBOR_KINDS; k++)
        served |= cpl_exchange_is_served(&state->exchanges[k]);
    if (served || !state->serve->counted)
        return;
    cpl_agree_all(state->private_comm, true); /* until all have drained, all poll */
    cpl_neighbor_count_served(state, false);
}

/* Whether calls that the ranks of `host` decide about are carried. */
static bool any_carried(const struct cpl_comm_state *host)
{
    return is_part(host) ? host->serve->counted : cpl_context.busy.n_served > 0;
}

/* Doubts the calls that are carried, when the program has become slower by them. Returns whether it
 * has; the same on all ranks. */
static bool doubt(const struct cpl_comm_state *host, const int64_t *words)
{
    if (!any_carried(host) || cpl_context.settings.mode != CPL_MODE_AUTO ||
        !cpl_pace_is_slower((double)words[NS_SINCE], (double)words[NS_BEFORE]))
        return false;
    for (struct cpl_comm_state *s = cpl_context.comms.first; s; s = s->next)
        for (int k = 0; is_decided_at(host, s) && s->exchanges && k < CPL_N_NEIGHBOR_KINDS; k++)
            if (cpl_exchange_is_served(&s->exchanges[k]))
                s->exchanges[k].nonblocking.phase = CPL_STARTED_DOUBTED;
    return true;
}

static void vote(struct cpl_comm_state *state, int64_t *words)
{
    const struct cpl_pace *pace = &state->serve->pace;
    struct cpl_comm_state *candidate = state->serve->candidate = find_candidate(state);
    words[HOW_ABLE] = candidate ? how_able(candidate) : ABLE;
    if (candidate && words[HOW_ABLE] == ABLE && cpl_context.settings.mode == CPL_MODE_AUTO &&
        pace->before.n < LEAST_PACES)
        words[HOW_ABLE] = NOT_YET;
    words[ID] = candidate ? candidate->serve->id : NO_CANDIDATE;
    struct cpl_alike same = {CPL_HASH_START};
    cpl_alike_add(&same, words[ID]);
    for (int k = 0; candidate && k < CPL_N_NEIGHBOR_KINDS; k++)
        cpl_alike_add(&same, count_calls(candidate, k));
    words[SAME] = (int64_t)same.hash;
    words[NEGATED] = ~words[SAME];
    if (!any_carried(state))
        return;
    words[NS_BEFORE] = cpl_agree_ns(cpl_pace_before(pace));
    words[NS_SINCE] = cpl_agree_ns(cpl_pace_since(pace));
}

/* Decides about the candidate, when all ranks have the same one. Collective, as settling is. */
static enum cpl_settled decide(struct cpl_comm_state *host, const int64_t *words)
{
    if (words[ID] == NO_CANDIDATE)
        return CPL_SETTLED;
    if (words[SAME] != ~words[NEGATED] || words[HOW_ABLE] == NOT_YET)
        return CPL_NOT_SETTLED;
    struct cpl_comm_state *candidate = host->serve->candidate;
    bool all_settled = true;
    for (int k = 0; k < CPL_N_NEIGHBOR_KINDS; k++) {
        struct cpl_exchange *x = &candidate->exchanges[k];
        if (x->nonblocking.phase == CPL_STARTED_DOUBTED)
            take_back(candidate, x);
        else if (x->nonblocking.phase == CPL_STARTED_WAITING)
            begin_serving(host->private_comm, candidate, x);
        else if (is_undecided(x))
            all_settled &= settle_kind(host, candidate, x, words[HOW_ABLE] == ABLE);
    }
    return all_settled ? CPL_SETTLED_MORE : CPL_SETTLED; /* else it is early, and has a date */
}

static enum cpl_settled settle(struct cpl_comm_state *state, bool regular, const int64_t *words)
{
    bool doubts = regular && doubt(state, words);
    enum cpl_settled settled = decide(state, words);
    state->serve->met_any |= settled != CPL_SETTLED;
    return doubts ? CPL_SETTLED_MORE : settled;
}

void cpl_neighbor_note_pace(struct cpl_comm_state *state)
{
    struct cpl_serve *s = state->serve;
    if (state->blank || !cpl_neighbor_may_be_served(state))
        return;
    if (cpl_context.exchanges.n_started > 0)
        cpl_pace_note(&s->pace, cpl_context.exchanges.n_started,
                      cpl_context.exchanges.n_carried > s->n_carried);
    s->n_carried = cpl_context.exchanges.n_carried;
}

void cpl_neighbor_note_collective(struct cpl_comm_state *state)
{
    if (!state->blank && state->line->embed.tried) {
        state->serve->pace.n = cpl_context.exchanges.n_started; /* it says nothing of the others */
        state->line->embed.tried = false;
    }
    cpl_neighbor_note_pace(state);
}

/* Completes what was started for an agreement. Collective. */
static void forget_notes(struct cpl_comm_state *state)
{
    cpl_collective_waitall(1, &state->serve->request, MPI_STATUSES_IGNORE);
    for (int k = 0; k < CPL_N_NEIGHBOR_KINDS; k++) {
        struct cpl_exchange *x = &state->exchanges[k];
        if (x->nonblocking.notes)
            cpl_collective_waitall(1, &x->nonblocking.notes->request, MPI_STATUSES_IGNORE);
        free_notes(x);
        if (x->nonblocking.phase == CPL_STARTED_OPEN)
            x->nonblocking.phase = CPL_STARTED_BY_MPI;
    }
}

static void before_free(struct cpl_comm_state *state)
{
    if (state->serve->named)
        forget_notes(state);
    if (!state->serve->counted)
        return;
    state->persistent.kept = cpl_context.active && state->persistent.n > 0 &&
                             !cpl_agree_all(state->private_comm, state->persistent.n_left == 0);
    if (!state->persistent.kept)
        cpl_neighbor_count_served(state, false);
}

static void end(struct cpl_comm_state *state)
{
    for (int k = 0; state->exchanges && k < CPL_N_NEIGHBOR_KINDS; k++)
        cpl_exchange_end(&state->exchanges[k], state);
}

/* Those of fewer ranks have nothing to decide about before the first call. */
static struct cpl_date *date(struct cpl_comm_state *state)
{
    bool decides = cpl_neighbor_may_be_served(state) && (!is_part(state) || state->serve->named);
    return decides ? &state->serve->date : NULL;
}

static bool waits(const struct cpl_comm_state *state)
{
    bool any = false;
    for (int k = 0; state->exchanges && k < CPL_N_NEIGHBOR_KINDS; k++)
        any |= state->exchanges[k].nonblocking.phase == CPL_STARTED_WAITING;
    return any;
}

static enum cpl_part_need part_need(const struct cpl_comm_state *state)
{
    if (state->serve->counted)
        return CPL_PART_SERVED;
    bool learns = false;
    for (int k = 0; is_part(state) && state->serve->named && k < CPL_N_NEIGHBOR_KINDS; k++)
        learns |= is_undecided(&state->exchanges[k]);
    return waits(state) ? CPL_PART_WAITS : learns ? CPL_PART_LEARNS : CPL_PART_NOTHING;
}

static int64_t longest(const struct cpl_comm_state *state)
{
    bool any = any_carried(state) || (is_part(state) && waits(state));
    return state->serve->met_any || (any && !cpl_context.service.shared) ? LONGEST_PAUSE
                                                                         : LONGEST_IDLE;
}

static void resume(struct cpl_comm_state *state)
{
    if (cpl_neighbor_may_be_served(state) && cpl_context.exchanges.n_started > 0)
        cpl_pace_resume(&state->serve->pace, cpl_context.exchanges.n_started);
}

static void add_alike(const struct cpl_comm_state *state, struct cpl_alike *alike)
{
    static const struct cpl_exchange none;
    const struct cpl_serve *s = state->serve;
    cpl_alike_add(alike, s->met_any);
    cpl_alike_add(alike, state->persistent.n);
    for (int k = 0; k < CPL_N_NEIGHBOR_KINDS; k++) {
        const struct cpl_exchange *x = state->exchanges ? &state->exchanges[k] : &none;
        cpl_alike_add(alike, x->calls + x->pass.granted - x->pass.remaining);
        cpl_alike_add(alike, x->phase);
        cpl_alike_add(alike, x->plans.n + 8 * x->plans.again);
        cpl_alike_add(alike, x->plans.trial.chosen + 8 * x->plans.trial.running);
        cpl_alike_add(alike, x->nonblocking.phase);
    }
}

static const struct cpl_item item = {.first = 2,
                                     .n_least = N_LEAST,
                                     .n_sums = N_WORDS - N_LEAST,
                                     .date = date,
                                     .longest = longest,
                                     .vote = vote,
                                     .settle = settle,
                                     .resume = resume};

const struct cpl_hooks cpl_exchange_hooks = {.meet = meet,
                                             .begin = begin,
                                             .before_free = before_free,
                                             .end = end,
                                             .poll = cpl_neighbor_poll,
                                             .alike = add_alike,
                                             .part_need = part_need,
                                             .item = &item};
