/* The review: whether what is managed still pays (doc/point-to-point.md, Review). */
#include "shim/base/log.h"
#include "shim/base/names.h"
#include "shim/carry/line.h"
#include "shim/meet/agree.h"
#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/state/comm_state.h"
#include "shim/state/context.h"

/* The words of a vote that are summed up. NS: a collective since the window began (pt2pt_turn.c).
 */
enum { LATE, TARDY, IN_TIME, RODE, WALKED, NS, KNOWS, NS_TO_SPEND, N_WORDS };

_Static_assert(N_WORDS == CPL_PT2PT_N_SUMS, "words that are summed up");

void cpl_pt2pt_review_vote(const struct cpl_comm_state *state, int64_t *words)
{
    const struct cpl_pt2pt *p = state->pt2pt;
    words[NS] = cpl_agree_ns(cpl_pt2pt_turn_seconds(state));
    words[KNOWS] = words[NS] > 0;
    words[NS_TO_SPEND] = cpl_agree_ns(cpl_context_balance());
    if (p->phase != CPL_PT2PT_MANAGED)
        return;
    words[LATE] = p->line->rides.late;
    words[TARDY] = p->line->rides.tardy;
    words[IN_TIME] = p->line->rides.in_time;
    words[RODE] = p->plans.n_carried;
    words[WALKED] = p->plans.n_walked;
}

int64_t cpl_pt2pt_ns_a_collective(const struct cpl_comm_state *state, const int64_t *words)
{
    return words[KNOWS] == state->size ? words[NS] : 0;
}

void cpl_pt2pt_plan_nothing(struct cpl_pt2pt *p)
{
    for (int k = 0; k < p->learned.n_signatures; k++)
        p->learned.signature[k].planned = false;
    cpl_cycle_end(&p->cycle);
}

/* Batches of each rank that tell whether they ride: the first reduction of a kind is MPI's. */
#define LEAST_BATCHES 16

/* More than one in so many out-edges that left late: the plans do not fit what the program does. */
#define IN_TIME_PER_LATE 8

void cpl_pt2pt_give_up(struct cpl_pt2pt *p, int reason)
{
    cpl_pt2pt_abandon(p);
    if (!p->given_up)
        p->reason = reason;
    p->given_up = true;
    cpl_pt2pt_plan_nothing(p);
}

void cpl_pt2pt_review_soon(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    p->plans.n_carried = p->plans.n_walked = 0;
    cpl_date_hasten(&p->date, state->meeting.n, CPL_PT2PT_SOON);
}

static bool pays_by_reductions_only(const struct cpl_pt2pt *p)
{
    bool all = true;
    for (int k = 0; k < p->plans.n; k++)
        all &= p->plans.only_embeds[k];
    return all;
}

#define LONGER 4.0

/* Whether rides are late because ranks are: mostly, what they did not wait for came after all. Then
 * they wait longer from now on. The same answer on all ranks. */
static bool holds_longer(struct cpl_comm_state *state, const int64_t *words)
{
    struct cpl_rides *rides = &state->pt2pt->line->rides;
    if (words[LATE] * IN_TIME_PER_LATE <= words[IN_TIME] || 2 * words[TARDY] < words[LATE] ||
        rides->hold_seconds * LONGER > CPL_PT2PT_LONGEST_HOLD)
        return false;
    cpl_rides_hold(rides, rides->hold_seconds * LONGER);
    if (state->rank == 0)
        cpl_log(CPL_LOG_INFO, "pt2pt", "%d ranks: rides are late, held for %.0f us from now on",
                state->size, rides->hold_seconds * 1e6);
    return true;
}

static bool tells_whether_batches_ride(int n_ranks, const int64_t *words)
{
    return words[WALKED] + words[RODE] >= (int64_t)LEAST_BATCHES * n_ranks;
}

/* Why the plans are to be given up; CPL_LEFT_NOT: they are not. The same answer on all ranks. */
static enum cpl_left_alone find_fault(struct cpl_pt2pt *p, int n_ranks, const int64_t *words)
{
    if (words[LATE] * IN_TIME_PER_LATE > words[IN_TIME])
        return CPL_LEFT_GIVEN_UP;
    if (!pays_by_reductions_only(p) || !tells_whether_batches_ride(n_ranks, words))
        return CPL_LEFT_NOT;
    p->plans.n_carried = p->plans.n_walked = 0;
    return words[WALKED] > words[RODE] ? CPL_LEFT_UNREDUCED : CPL_LEFT_NOT;
}

#define SOON_LEARNED                                                                               \
    4 /* collectives until the ranks agree again, or times those of the first lesson */

/* The communicator is MPI's again. What made the plans useless may pass: in mode auto it is tried
 * again. Alike on all ranks. */
static void begin_pause(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    if (cpl_context.settings.mode != CPL_MODE_AUTO)
        return;
    cpl_pt2pt_lengthen_pause(p);
    p->date.next = p->date.regular = state->meeting.n + p->plans.pause;
    cpl_pt2pt_rest(state);
}

/* The pause is over. */
static void learn_again(struct cpl_comm_state *state)
{
    cpl_pt2pt_relearn(state);
    struct cpl_date *date = &state->pt2pt->date;
    int64_t lesson = state->pt2pt->lesson > 1 ? state->pt2pt->lesson : 1;
    date->next = date->regular = state->meeting.n + SOON_LEARNED * lesson;
    if (state->rank == 0)
        cpl_log(CPL_LOG_INFO, "pt2pt", "%d ranks: learned about again", state->size);
}

/* MPI takes the communicator back, if nothing is left in the shim's hands. */
static void give_back(struct cpl_comm_state *state)
{
    if (!cpl_pt2pt_drain(state)) {
        cpl_date_hasten(&state->pt2pt->date, state->meeting.n, CPL_PT2PT_SOON);
        return;
    }
    cpl_pt2pt_unmanage(state);
    begin_pause(state);
}

/* The plans are those of a short search, and faster than MPI for long: the ranks learn again, and
 * search for longer. Whether they have begun to; the same on all ranks. */
static bool searches_on(struct cpl_comm_state *state)
{
    const struct cpl_pt2pt_plans *plans = &state->pt2pt->plans;
    if (plans->turn.compares || state->meeting.n < plans->turn.next ||
        plans->planning.search != CPL_SEARCH_SHORT || !cpl_pt2pt_drain(state))
        return false;
    cpl_pt2pt_unmanage(state);
    cpl_pt2pt_rest(state);
    learn_again(state);
    return true;
}

/* Looks whether what is managed still pays. */
enum cpl_settled cpl_pt2pt_review(struct cpl_comm_state *state, const int64_t *words)
{
    struct cpl_pt2pt *p = state->pt2pt;
    if (!p->given_up && holds_longer(state, words)) {
        cpl_date_hasten(&p->date, state->meeting.n, CPL_PT2PT_SOON);
        return CPL_SETTLED;
    }
    bool may_turn = cpl_context.settings.mode == CPL_MODE_AUTO &&
                    (!pays_by_reductions_only(p) || tells_whether_batches_ride(state->size, words));
    enum cpl_left_alone fault = p->given_up ? CPL_LEFT_NOT : find_fault(p, state->size, words);
    if (!p->given_up && fault == CPL_LEFT_NOT)
        return may_turn && !searches_on(state)
                   ? cpl_pt2pt_turn_by_plans(state, cpl_pt2pt_ns_a_collective(state, words),
                                             words[NS_TO_SPEND])
                   : CPL_SETTLED;
    if (!p->given_up && state->rank == 0)
        cpl_log(CPL_LOG_INFO, "pt2pt", "%d ranks: %s", state->size, cpl_left_alone_text(fault));
    cpl_pt2pt_give_up(p, fault);
    give_back(state);
    return CPL_SETTLED;
}

/* The communicator has been MPI's, for a turn or because the plans were given up. */
enum cpl_settled cpl_pt2pt_end_pause(struct cpl_comm_state *state, const int64_t *words)
{
    if (state->line->kept)
        return cpl_pt2pt_turn_by_mpi(state, cpl_pt2pt_ns_a_collective(state, words),
                                     words[NS_TO_SPEND]);
    learn_again(state);
    return CPL_SETTLED;
}
