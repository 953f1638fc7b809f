/* The review: whether what is managed still pays (doc/point-to-point.md, Review). */
#include "shim/base/log.h"
#include "shim/base/names.h"
#include "shim/carry/buffered.h"
#include "shim/carry/line.h"
#include "shim/carry/messages.h"
#include "shim/meet/agree.h"
#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/state/comm_state.h"
#include "shim/state/context.h"

/* The words of a vote that are summed up. */
enum { LATE, TARDY, IN_TIME, RODE, WALKED, NS_BEFORE, NS_SINCE, NS_LAP, KNOWS, N_WORDS };

_Static_assert(N_WORDS == CPL_PT2PT_N_SUMS, "words that are summed up");

void cpl_pt2pt_review_vote(const struct cpl_comm_state *state, int64_t *words)
{
    const struct cpl_pt2pt *p = state->pt2pt;
    bool is_managed = p->phase == CPL_PT2PT_MANAGED;
    words[NS_LAP] =
        cpl_agree_ns(is_managed ? cpl_pace_laps(&p->pace) : cpl_pt2pt_turn_seconds(state));
    words[KNOWS] = words[NS_LAP] > 0;
    if (!is_managed)
        return;
    words[LATE] = p->line->rides.late;
    words[TARDY] = p->line->rides.tardy;
    words[IN_TIME] = p->line->rides.in_time;
    words[RODE] = p->plans.n_carried;
    words[WALKED] = p->plans.n_walked;
    words[NS_BEFORE] = cpl_agree_ns(cpl_pace_before(&p->pace));
    words[NS_SINCE] = cpl_agree_ns(cpl_pace_since(&p->pace));
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

static bool is_busy(const struct cpl_comm_state *state)
{
    const struct cpl_pt2pt *p = state->pt2pt;
    return !cpl_match_is_idle(&p->line->match) || p->line->synchronous || p->batch.n > 0 ||
           p->following.signature || cpl_pt2pt_has_taken(state) ||
           cpl_buffered_any(state->private_comm);
}

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

#define LONGEST_HOLD 0.02 /* seconds */
#define LONGER       4.0

/* Whether rides are late because ranks are: mostly, what they did not wait for came after all. Then
 * they wait longer from now on. The same answer on all ranks. */
static bool holds_longer(struct cpl_comm_state *state, const int64_t *words)
{
    struct cpl_rides *rides = &state->pt2pt->line->rides;
    if (words[LATE] * IN_TIME_PER_LATE <= words[IN_TIME] || 2 * words[TARDY] < words[LATE] ||
        rides->hold_seconds * LONGER > LONGEST_HOLD)
        return false;
    cpl_rides_hold_longer(rides, LONGER);
    if (state->rank == 0)
        cpl_log(CPL_LOG_INFO, "pt2pt", "%d ranks: rides are late, held for %.0f us from now on",
                state->size, rides->hold_seconds * 1e6);
    return true;
}

/* What a collective takes, summed up over the ranks; 0: not all know. The same on all ranks. */
static int64_t ns_a_collective(int n_ranks, const int64_t *words)
{
    return words[KNOWS] == n_ranks ? words[NS_LAP] : 0;
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
    bool slower =
        cpl_context.settings.mode == CPL_MODE_AUTO &&
        (p->plans.turn.ns_mpi > 0 ? cpl_pt2pt_turn_was_faster(p, ns_a_collective(n_ranks, words))
                                  : cpl_pt2pt_turn_is_needless(words[NS_SINCE], words[NS_BEFORE]));
    if (pays_by_reductions_only(p) && (tells_whether_batches_ride(n_ranks, words) || slower)) {
        p->plans.n_carried = p->plans.n_walked = 0;
        if (words[WALKED] > words[RODE])
            return CPL_LEFT_UNREDUCED;
    }
    return slower ? CPL_LEFT_SLOWED : CPL_LEFT_NOT;
}

/* Collectives from giving up plans to learning anew: the first time, at least, and how often more
 * each time after it. And they take so many times what planning took. */
#define FIRST_PAUSE  256
#define PAUSE_FACTOR 4
#define PAUSE_WORTH  64
#define SOON_LEARNED 4  /* collectives until the ranks agree again */
#define MOST_WATCHED 16 /* reviews after it that are early */

/* Plans that were given up before are looked at more often at first. */
void cpl_pt2pt_watch_closely(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    if (p->phase != CPL_PT2PT_MANAGED || p->plans.pause == 0 || p->plans.n_passed > MOST_WATCHED)
        return;
    cpl_date_hasten(&p->date, state->meeting.n, (int64_t)CPL_PT2PT_SOON << p->plans.n_passed);
    p->plans.n_passed++;
}

/* The communicator is MPI's again. What made it slower may pass: in mode auto it is tried again.
 * `ns`: a collective, summed up over the ranks; alike on all of them. */
static void begin_pause(struct cpl_comm_state *state, int64_t ns)
{
    struct cpl_pt2pt *p = state->pt2pt;
    p->plans.turn = (struct cpl_pt2pt_turn){.next = 0};
    if (cpl_context.settings.mode != CPL_MODE_AUTO)
        return;
    p->plans.pause = p->plans.pause ? PAUSE_FACTOR * p->plans.pause : FIRST_PAUSE;
    double ms = (double)ns / state->size / NS_PER_MS;
    double enough = ms > 0 ? PAUSE_WORTH * cpl_pt2pt_planning_ms(p) / ms : 0;
    if ((double)p->plans.pause < enough)
        p->plans.pause = (int64_t)enough;
    p->date.next = p->date.regular = state->meeting.n + p->plans.pause;
    if (p->phase != CPL_PT2PT_RESTING)
        cpl_pt2pt_rest(state);
}

/* The pause is over. */
static void learn_again(struct cpl_comm_state *state)
{
    cpl_pt2pt_relearn(state);
    struct cpl_date *date = &state->pt2pt->date;
    date->next = date->regular = state->meeting.n + SOON_LEARNED;
    if (state->rank == 0)
        cpl_log(CPL_LOG_INFO, "pt2pt", "%d ranks: learned about again", state->size);
}

/* MPI takes the communicator back, if nothing is left in the shim's hands. Collective; returns
 * whether it has, the same on all ranks. */
static bool give_back(struct cpl_comm_state *state)
{
    cpl_line_drain(state);
    bool done = cpl_agree_all(state->private_comm, !is_busy(state));
    if (done)
        cpl_pt2pt_unmanage(state);
    return done;
}

/* MPI has a turn, or later, if a rank has something in hand. Collective. */
static void take_turn(struct cpl_comm_state *state, int64_t ns)
{
    cpl_pt2pt_abandon(state->pt2pt);
    if (!give_back(state)) {
        cpl_pt2pt_turn_postpone(state);
        return;
    }
    cpl_pt2pt_give_up(state->pt2pt, CPL_LEFT_NOT);
    cpl_pt2pt_turn_begin(state, ns);
}

/* Looks whether what is managed still pays. */
void cpl_pt2pt_review(struct cpl_comm_state *state, const int64_t *words)
{
    struct cpl_pt2pt *p = state->pt2pt;
    if (!p->given_up && state->rank == 0 && words[NS_SINCE] > 0)
        cpl_log(CPL_LOG_DEBUG, "pt2pt", "%d ranks: %.1f us an exchange, %.1f before", state->size,
                1e-3 * (double)words[NS_SINCE] / state->size,
                1e-3 * (double)words[NS_BEFORE] / state->size);
    if (!p->given_up && holds_longer(state, words)) {
        cpl_date_hasten(&p->date, state->meeting.n, CPL_PT2PT_SOON);
        return;
    }
    enum cpl_left_alone fault = p->given_up ? CPL_LEFT_NOT : find_fault(p, state->size, words);
    int64_t ns = ns_a_collective(state->size, words);
    if (!p->given_up && fault == CPL_LEFT_NOT) {
        bool is_known =
            !pays_by_reductions_only(p) || tells_whether_batches_ride(state->size, words);
        if (is_known && cpl_pt2pt_turn_is_due(state, ns))
            take_turn(state, ns);
        cpl_pt2pt_watch_closely(state);
        return;
    }
    if (!p->given_up && state->rank == 0)
        cpl_log(CPL_LOG_INFO, "pt2pt", "%d ranks: %s", state->size, cpl_left_alone_text(fault));
    cpl_pt2pt_give_up(p, fault);
    if (give_back(state))
        begin_pause(state, ns > 0 ? ns : words[NS_SINCE]);
    else
        cpl_date_hasten(&p->date, state->meeting.n, CPL_PT2PT_SOON);
}

/* The communicator has been MPI's, because the plans were given up or for a turn. */
void cpl_pt2pt_end_pause(struct cpl_comm_state *state, const int64_t *words)
{
    const struct cpl_pt2pt *p = state->pt2pt;
    if (p->plans.turn.on) {
        if (cpl_pt2pt_turn_goes_on(state, ns_a_collective(state->size, words)))
            return;
        if (cpl_pt2pt_turn_is_mpis(state)) {
            begin_pause(state, p->plans.turn.ns_mpi);
            return;
        }
    }
    learn_again(state);
}
