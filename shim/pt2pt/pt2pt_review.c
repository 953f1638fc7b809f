/* The review: whether what is managed still pays (doc/point-to-point.md, Review); in mode auto MPI
 * and the plans have turns, in windows of some collectives, and which of them the program is faster
 * with is measured. `ns`: a collective of the window that has ended, 0: not known; `ns_to_spend`:
 * what the ranks may spend. */
#include "shim/base/log.h"
#include "shim/meet/agree.h"
#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/pt2pt/pt2pt_parts.h"
#include "shim/report/report.h"
#include "shim/state/comm_state.h"
#include "shim/state/context.h"

/* --- turns */

/* Collectives in a window: at least, at most, and otherwise so many that it takes so long. */
#define SHORTEST 8
#define LONGEST  16384
#define SECONDS  0.01

/* When both are compared again: after so many times the collectives so far, where the plans are
 * faster; else after a pause, which is longer each time. */
#define TIMES_AGAIN 16
#define SLOWER      1.125 /* times what MPI took: both are compared at once */

void cpl_pt2pt_turn_window(struct cpl_comm_state *state)
{
    struct cpl_pt2pt_turn *turn = &state->pt2pt->plans.turn;
    turn->began = state->meeting.n;
    turn->at = PMPI_Wtime();
}

static void set_date(struct cpl_comm_state *state, int64_t n)
{
    cpl_date_put_off(&state->pt2pt->date, state->meeting.n, n);
}

static void begin_window(struct cpl_comm_state *state)
{
    set_date(state, state->pt2pt->plans.turn.length);
    cpl_pt2pt_turn_window(state);
}

void cpl_pt2pt_turn_begin(struct cpl_comm_state *state)
{
    struct cpl_pt2pt_turn *turn = &state->pt2pt->plans.turn;
    turn->compares = true;
    turn->warm = false;
    turn->pairs = (struct cpl_pairs){.n = 0};
    turn->length = SHORTEST;
    turn->ns_rerouted = 0;
    begin_window(state);
}

/* Whether another window like the last one would cost more than may be spent, where the plans take
 * so much more in a collective: all in nanoseconds of all ranks. */
static bool is_dear(const struct cpl_comm_state *state, double more, int64_t ns_to_spend)
{
    int64_t n = state->meeting.n - state->pt2pt->plans.turn.began;
    return more > 0 && more * (double)n > (double)ns_to_spend;
}

/* Notes for the account what the plans have gained (or lost: negative) in so many collectives. */
static void settle_account(const struct cpl_comm_state *state, int64_t n)
{
    const struct cpl_pt2pt_turn *turn = &state->pt2pt->plans.turn;
    double seconds = 1e-9 * (double)(turn->ns_mpi - turn->ns_rerouted) / state->size * (double)n;
    if (seconds > 0)
        cpl_context.account.gained += seconds;
    else
        cpl_context.account.spent[CPL_COST_TRIALS] -= seconds;
}

/* The plans have carried a window. Returns whether MPI is to have the next one. */
static bool ends_window(struct cpl_comm_state *state, int64_t ns, int64_t ns_to_spend)
{
    struct cpl_pt2pt_turn *turn = &state->pt2pt->plans.turn;
    if (ns == 0) {
        begin_window(state);
        return false;
    }
    turn->ns_rerouted = ns;
    if (turn->ns_mpi > 0 && is_dear(state, (double)(ns - turn->ns_mpi), ns_to_spend))
        return true;
    double seconds = 1e-9 * (double)ns / state->size * (double)(state->meeting.n - turn->began);
    bool was_long = seconds >= SECONDS || turn->length >= LONGEST;
    if (was_long && turn->warm)
        return true;
    turn->warm |= was_long;
    turn->length *= was_long ? 1 : 2;
    begin_window(state);
    return false;
}

static enum cpl_settled turn_by_plans(struct cpl_comm_state *state, int64_t ns, int64_t ns_to_spend)
{
    struct cpl_pt2pt_turn *turn = &state->pt2pt->plans.turn;
    if (!turn->compares) {
        settle_account(state, state->meeting.n - turn->began);
        cpl_pt2pt_turn_window(state);
        if (state->meeting.n >= turn->next || SLOWER * (double)turn->ns_mpi < (double)ns)
            cpl_pt2pt_turn_begin(state);
        return CPL_SETTLED;
    }
    if (!ends_window(state, ns, ns_to_spend))
        return CPL_SETTLED;
    set_date(state, turn->length);
    turn->n_rerouted = state->meeting.n - turn->began;
    if (!turn->warm) { /* dear, but of the plans it tells nothing */
        settle_account(state, turn->n_rerouted);
        turn->n_rerouted = turn->ns_rerouted = 0;
        turn->warm = true;
    }
    if (!cpl_pt2pt_drain(state))
        return CPL_NOT_SETTLED;
    cpl_line_keep(state);
    cpl_pt2pt_rest(state);
    cpl_pt2pt_turn_window(state);
    return CPL_SETTLED;
}

/* MPI, or the plans if these are faster, keep the communicator until both are compared again. */
static void leave_to(struct cpl_comm_state *state, bool plans)
{
    struct cpl_pt2pt *p = state->pt2pt;
    struct cpl_record_windows told = cpl_profile_windows(state);
    p->plans.turn.compares = false;
    p->plans.turn.next = TIMES_AGAIN * state->meeting.n;
    p->plans.pause = plans ? 0 : p->plans.pause ? 4 * p->plans.pause : 256;
    p->reason = plans ? CPL_LEFT_NOT : told.plan_us > told.mpi_us ? CPL_LEFT_SLOWED : CPL_LEFT_EVEN;
    set_date(state, plans ? state->meeting.n : p->plans.pause);
}

/* MPI has carried a window, or its pause is over: it goes on, or the plans carry messages again as
 * soon as none is under way by MPI. */
static enum cpl_settled turn_by_mpi(struct cpl_comm_state *state, int64_t ns, int64_t ns_to_spend)
{
    struct cpl_pt2pt *p = state->pt2pt;
    struct cpl_pt2pt_turn *turn = &p->plans.turn;
    /* not when it has been MPI's for longer only because messages were under way */
    if (turn->compares && turn->n_rerouted > 0 && ns > 0) {
        turn->ns_mpi = ns;
        cpl_pairs_add(&turn->pairs, (double)ns, (double)turn->ns_rerouted);
        settle_account(state, turn->n_rerouted);
        turn->n_rerouted = 0;
    }
    if (!turn->compares && ns_to_spend > 0)
        cpl_pt2pt_turn_begin(state);
    const struct cpl_pairs *pairs = &turn->pairs;
    enum cpl_verdict verdict = cpl_pairs_judge(pairs);
    double more = pairs->n > 0 ? (pairs->other - pairs->usual) / pairs->n : 0;
    if (!turn->compares || verdict == CPL_NOT_FASTER ||
        (verdict == CPL_UNDECIDED && is_dear(state, more, ns_to_spend))) {
        leave_to(state, false);
        return CPL_SETTLED;
    }
    p->ripe = !cpl_parts_are_served(state);
    set_date(state, turn->length);
    if (p->ripe || !cpl_pt2pt_fits(state))
        return CPL_NOT_SETTLED;
    p->phase = CPL_PT2PT_MANAGED;
    cpl_line_manage(state);
    cpl_pt2pt_turn_window(state);
    if (verdict == CPL_FASTER)
        leave_to(state, true);
    return CPL_SETTLED;
}

/* --- reviews */

/* The words of a vote that are summed up. NS: a collective since the window began. */
enum { NS, KNOWS, NS_TO_SPEND, N_WORDS };

_Static_assert(N_WORDS == CPL_PT2PT_N_SUMS, "words that are summed up");

void cpl_pt2pt_review_vote(const struct cpl_comm_state *state, int64_t *words)
{
    const struct cpl_pt2pt_turn *turn = &state->pt2pt->plans.turn;
    int64_t n = state->meeting.n - turn->began; /* the ranks may have met sooner or later */
    if (turn->at > 0 && n > 0)
        words[NS] = cpl_agree_ns((PMPI_Wtime() - turn->at) / (double)n);
    words[KNOWS] = words[NS] > 0;
    words[NS_TO_SPEND] = cpl_agree_ns(cpl_context_balance() + (turn->compares ? turn->setup : 0));
}

int64_t cpl_pt2pt_ns_a_collective(const struct cpl_comm_state *state, const int64_t *words)
{
    return words[KNOWS] == state->size ? words[NS] : 0;
}

/* Forgets what was learned, but for the counts, after a rest; on all its ranks. */
static void forget(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    struct cpl_plan_summary *told = p->known.summary;
    for (int k = 0; k < p->known.n; k++) {
        struct cpl_known_exchange *x = &p->known.exchange[k];
        x->earlier = x->left ? cpl_profile_calls(x, p->learned.signature) : 0;
        x->signature = -1;
    }
    p->known.summary = NULL; /* kept */
    cpl_pt2pt_free(state);
    p->known.summary = told;
    p->line->next_number = NULL;
    p->learned = (struct cpl_pt2pt_learned){.recurred_at = p->learned.recurred_at,
                                            .n_watched = p->learned.n_watched,
                                            .n_wild = p->learned.n_wild};
    p->batch = (struct cpl_batch){.n = 0};
    p->plans = (struct cpl_pt2pt_plans){.turn = p->plans.turn};
    p->phase = CPL_PT2PT_LEARNING;
    p->started = p->open = p->ripe = false;
    cpl_comm_state_forget_recent();
}

/* Times the collectives of the first lesson, until the ranks agree again. */
#define SOON_LEARNED 4

static void learn_again(struct cpl_comm_state *state)
{
    forget(state);
    set_date(state, SOON_LEARNED * (state->pt2pt->lesson > 1 ? state->pt2pt->lesson : 1));
    if (state->rank == 0)
        cpl_log(CPL_LOG_INFO, "pt2pt", "%d ranks: learned about again", state->size);
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

enum cpl_settled cpl_pt2pt_review(struct cpl_comm_state *state, const int64_t *words)
{
    const int64_t ns = cpl_pt2pt_ns_a_collective(state, words);
    if (state->line->kept)
        return turn_by_mpi(state, ns, words[NS_TO_SPEND]);
    if (state->pt2pt->phase == CPL_PT2PT_RESTING)
        learn_again(state);
    else if (cpl_context.settings.mode == CPL_MODE_AUTO && !searches_on(state))
        return turn_by_plans(state, ns, words[NS_TO_SPEND]);
    return CPL_SETTLED;
}
