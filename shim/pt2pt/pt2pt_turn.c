/* MPI's turns (doc/point-to-point.md, Review). The pace before a communicator is managed is that of
 * a program that has just begun: of cold memory, and of connections being made. So after a while
 * MPI has the communicator for some collectives, and the faster one of the two keeps it. */
#include "shim/base/log.h"
#include "shim/base/names.h"
#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/report/report.h"
#include "shim/state/comm_state.h"
#include "shim/state/context.h"

#define FIRST       64 /* collectives before the first turn */
#define TIMES_AGAIN 16 /* as many before the next one */
#define WORTH       10 /* so many times what planning took, which is done again after a turn */

#define STRETCHES (1 + CPL_LAPS) /* each as long as a lap; the first is cold */

#define GAIN        0.95 /* of MPI's time, at most */
#define MUCH_SLOWER 1.5  /* than the program's beginning, which is slow */

double cpl_pt2pt_planning_ms(const struct cpl_pt2pt *p)
{
    double ms = 0;
    for (int k = 0; k < p->plans.n; k++)
        ms += p->plans.summary[k].cost.ms;
    return ms;
}

bool cpl_pt2pt_turn_is_due(const struct cpl_comm_state *state, int64_t ns)
{
    const struct cpl_pt2pt *p = state->pt2pt;
    double n = (double)state->meeting.n, ms = (double)ns / state->size / NS_PER_MS * n;
    return cpl_context.settings.mode == CPL_MODE_AUTO && ns > 0 && n >= FIRST &&
           state->meeting.n >= p->plans.turn.next && ms >= WORTH * cpl_pt2pt_planning_ms(p);
}

static void begin_stretch(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    p->date.next = p->date.regular = state->meeting.n + p->plans.turn.length;
    p->plans.turn.began = state->meeting.n;
    p->plans.turn.at = PMPI_Wtime();
}

void cpl_pt2pt_turn_postpone(struct cpl_comm_state *state)
{
    state->pt2pt->plans.turn.next = 2 * state->meeting.n;
}

void cpl_pt2pt_turn_begin(struct cpl_comm_state *state, int64_t ns)
{
    struct cpl_pt2pt_turn *turn = &state->pt2pt->plans.turn;
    turn->on = true;
    turn->ns_rerouted = ns;
    double seconds = 1e-9 * (double)turn->ns_rerouted / state->size;
    turn->length = CPL_SHORTEST_LAP;
    while (turn->length < CPL_LONGEST_LAP && turn->length * seconds < CPL_LAP_SECONDS)
        turn->length *= 2;
    turn->n_stretches = 0;
    turn->ns_mpi = 0;
    turn->next = TIMES_AGAIN * state->meeting.n;
    cpl_pt2pt_rest(state);
    begin_stretch(state);
}

/* The ranks may have met later than a stretch is long. */
double cpl_pt2pt_turn_seconds(const struct cpl_comm_state *state)
{
    const struct cpl_pt2pt_turn *turn = &state->pt2pt->plans.turn;
    int64_t n = state->meeting.n - turn->began;
    return turn->on && n > 0 ? (PMPI_Wtime() - turn->at) / (double)n : 0;
}

/* The first stretch is that of connections and memory that have not been used for a while. Of the
 * others the shortest counts. */
bool cpl_pt2pt_turn_goes_on(struct cpl_comm_state *state, int64_t ns)
{
    struct cpl_pt2pt_turn *turn = &state->pt2pt->plans.turn;
    if (turn->n_stretches > 0 && ns > 0 && (turn->ns_mpi == 0 || ns < turn->ns_mpi))
        turn->ns_mpi = ns;
    if (++turn->n_stretches >= STRETCHES)
        return false;
    begin_stretch(state);
    return true;
}

bool cpl_pt2pt_turn_is_mpis(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    struct cpl_pt2pt_turn *turn = &p->plans.turn;
    bool mpis = turn->ns_mpi > 0 && (double)turn->ns_rerouted > GAIN * (double)turn->ns_mpi;
    if (state->rank == 0)
        cpl_log(CPL_LOG_INFO, "pt2pt",
                "%d ranks: from one collective to the next %.1f us by MPI, %.1f rerouted",
                state->size, 1e-3 * (double)turn->ns_mpi / state->size,
                1e-3 * (double)turn->ns_rerouted / state->size);
    turn->on = false;
    if (!mpis)
        return false;
    p->reason = CPL_LEFT_SLOWED;
    for (int k = 0; k < p->plans.n; k++)
        cpl_report_revise(&p->plans.summary[k], CPL_LEFT_SLOWED);
    return true;
}

bool cpl_pt2pt_turn_is_needless(int64_t since, int64_t before)
{
    return before > 0 && (double)since > MUCH_SLOWER * (double)before;
}

bool cpl_pt2pt_turn_was_faster(const struct cpl_pt2pt *p, int64_t ns)
{
    return cpl_pace_is_slower((double)ns, (double)p->plans.turn.ns_mpi);
}
