/* The exchanges that recur on a communicator (doc/point-to-point.md). */
#include "shim/base/log.h"
#include "shim/meet/agree.h"
#include "shim/plan/recognise.h"
#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/report/report.h"
#include "shim/state/comm_state.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_NOTES 256
#define MOST_NOTES  8192 /* the most notes that a rank keeps, the latest ones */

/* Where notes may begin: after the end of a window. */
static bool is_boundary(const struct cpl_note *note)
{
    return note->kind == CPL_NOTE_WINDOW_END || note->kind == CPL_NOTE_COLLECTIVE;
}

/* The first note, from a given one on, before which a window ended. */
static int next_beginning(const struct cpl_notes *notes, int from)
{
    while (from > 0 && from < notes->n && !is_boundary(&notes->note[from - 1]))
        from++;
    return from;
}

/* Room for one more note: older ones are dropped when there are too many. */
static bool make_room(struct cpl_notes *notes)
{
    if (notes->n < notes->room)
        return true;
    if (notes->room < MOST_NOTES) {
        int room = notes->room ? 2 * notes->room : FIRST_NOTES;
        struct cpl_note *note = realloc(notes->note, (size_t)room * sizeof *note);
        if (!note)
            return false;
        notes->note = note;
        notes->room = room;
        return true;
    }
    int from = next_beginning(notes, notes->n / 2);
    notes->n -= from;
    memmove(notes->note, notes->note + from, (size_t)notes->n * sizeof *notes->note);
    return true;
}

void cpl_notes_add(struct cpl_notes *notes, enum cpl_note_kind kind, int peer, int tag)
{
    if (kind == CPL_NOTE_COLLECTIVE && notes->n > 0 &&
        notes->note[notes->n - 1].kind == CPL_NOTE_COLLECTIVE)
        return;
    if (make_room(notes))
        notes->note[notes->n++] = (struct cpl_note){kind, peer, tag};
    else
        notes->n = 0; /* noting begins anew when there is memory */
}

void cpl_notes_free(struct cpl_notes *notes)
{
    free(notes->note);
    *notes = (struct cpl_notes){.n = 0};
}

/* --- recognising --------------------------------------------------------------------------- */

/* This rank's signature in each exchange, and which part of its batches belongs to it. */
static void find_signatures(struct cpl_exchanges *exchanges, const struct cpl_notes *mine)
{
    int n_of[CPL_MAX_SIGNATURES] = {0}, n_in[CPL_MOST_RECURRING] = {0};
    for (int k = 0; k < exchanges->n; k++)
        exchanges->signature[k] = -1;
    for (int k = 0; k < mine->n; k++) {
        int e = exchanges->of_note[k];
        if (mine->note[k].kind != CPL_NOTE_WINDOW_END || mine->note[k].peer < 0)
            continue;
        n_of[mine->note[k].peer]++;
        if (e < 0)
            continue;
        exchanges->signature[e] = mine->note[k].peer;
        n_in[e]++;
    }
    for (int k = 0; k < exchanges->n; k++)
        exchanges->fraction[k] = n_in[k] ? (double)n_in[k] / n_of[exchanges->signature[k]] : 0;
}

/* Gives the same exchange the same name at all agreements and on all ranks. */
static void name_exchange(struct cpl_exchange_names *names, const struct cpl_recurring *found,
                          int32_t *tag, int32_t *ordinal)
{
    int k = 0;
    *ordinal = 0;
    for (k = 0; k < names->n && names->hash[k] != found->hash; k++)
        *ordinal += names->tag[k] == found->tag;
    *tag = found->tag;
    if (k < names->n || names->n == CPL_MOST_NAMES)
        return;
    names->hash[k] = found->hash;
    names->tag[k] = found->tag;
    names->n++;
}

bool cpl_exchanges_find(struct cpl_comm_state *state, struct cpl_exchanges *exchanges)
{
    struct cpl_pt2pt *p = state->pt2pt;
    const struct cpl_notes *notes = &p->learned.notes;
    exchanges->of_note = calloc((size_t)notes->n + 1, sizeof *exchanges->of_note);
    exchanges->n = cpl_recognise(state->private_comm, notes->note, notes->n, CPL_RECURS_TIMES,
                                 exchanges->found, exchanges->of_note);
    if (exchanges->n < 0) {
        if (state->rank == 0)
            cpl_log(CPL_LOG_WARN, "pt2pt",
                    "%d ranks: nothing is recognised, since a rank had no memory for it; messages "
                    "are left to MPI",
                    state->size);
        cpl_exchanges_free(exchanges);
        return false;
    }
    find_signatures(exchanges, notes);
    for (int k = 0; k < exchanges->n; k++)
        name_exchange(&p->learned.names, &exchanges->found[k], &exchanges->tag[k],
                      &exchanges->ordinal[k]);
    return true;
}

void cpl_exchanges_free(struct cpl_exchanges *exchanges)
{
    free(exchanges->of_note);
    exchanges->of_note = NULL;
}

/* --- the order in which a rank's batches recur -------------------------------------------- */

/* Lists the steps from the first batch of a known exchange on, without batches that no plan
 * carries. */
static int list_steps(const struct cpl_pt2pt *p, const struct cpl_exchanges *exchanges,
                      const int *plan, struct cpl_step *step)
{
    int n = 0;
    for (int k = 0; k < p->learned.notes.n; k++) {
        const struct cpl_note *note = &p->learned.notes.note[k];
        int e = exchanges->of_note[k];
        bool after_collective = n > 0 && step[n - 1].signature == CPL_STEP_COLLECTIVE;
        if (note->kind == CPL_NOTE_COLLECTIVE && n > 0 && !after_collective)
            step[n++] = (struct cpl_step){CPL_STEP_COLLECTIVE, CPL_NO_PLAN};
        if (note->kind == CPL_NOTE_WINDOW_END && note->peer >= 0 &&
            p->learned.signature[note->peer].planned && (n > 0 || e >= 0))
            step[n++] = (struct cpl_step){note->peer, e >= 0 ? plan[e] : CPL_NO_PLAN};
    }
    return n;
}

bool cpl_exchanges_keep_cycle(struct cpl_pt2pt *p, const struct cpl_exchanges *exchanges,
                              const int *plan)
{
    struct cpl_step *step = calloc((size_t)p->learned.notes.n + 1, sizeof *step);
    if (!step)
        return false;
    cpl_cycle_set(&p->cycle, step, list_steps(p, exchanges, plan, step));
    return true;
}

/* --- exchanges that were planned and left to MPI ------------------------------------------- */

static int find(const struct cpl_left_exchanges *left, const struct cpl_left_exchange *exchange)
{
    for (int k = 0; k < left->n; k++)
        if (left->exchange[k].hash == exchange->hash)
            return k;
    return -1;
}

bool cpl_profile_has(struct cpl_comm_state *state, const struct cpl_left_exchange *exchange,
                     enum cpl_embed_verdict reduced)
{
    struct cpl_left_exchanges *left = &state->pt2pt->left;
    int k = find(left, exchange);
    if (k >= 0 && left->exchange[k].signature < 0) { /* its messages were learned anew */
        left->exchange[k].signature = exchange->signature;
        left->exchange[k].fraction = exchange->fraction;
    }
    if (k < 0 || cpl_context.settings.mode == CPL_MODE_PROFILE)
        return k >= 0;
    if (left->exchange[k].search == CPL_SEARCH_SHORT && exchange->search == CPL_SEARCH_FULL)
        return false;
    enum cpl_embed_verdict mine = exchange->signature >= 0 ? reduced : CPL_EMBED_ANY_ORDER;
    return !cpl_agree_all(state->private_comm, mine > left->exchange[k].reduced);
}

double cpl_profile_calls(const struct cpl_left_exchange *exchange,
                         const struct cpl_signature *signatures)
{
    int k = exchange->signature;
    return exchange->earlier + (k >= 0 ? exchange->fraction * (double)signatures[k].times : 0);
}

/* Adds the time that earlier planning of the exchange took. */
static void add_earlier(const struct cpl_left_exchanges *left, int k,
                        struct cpl_plan_summary *summary)
{
    if (!left->summary)
        return;
    summary->cost.times_planned += left->summary[k].cost.times_planned;
    summary->cost.ms += left->summary[k].cost.ms;
}

void cpl_profile_left(struct cpl_comm_state *state, const struct cpl_left_exchange *exchange,
                      const struct cpl_plan_summary *summary)
{
    struct cpl_left_exchanges *left = &state->pt2pt->left;
    struct cpl_plan_summary told = *summary;
    int k = find(left, exchange);
    if (k < 0 && left->n == CPL_MOST_LEFT)
        return;
    if (k >= 0)
        add_earlier(left, k, &told);
    double earlier = k >= 0 ? left->exchange[k].earlier : 0;
    if (k < 0)
        k = left->n++;
    left->exchange[k] = *exchange;
    left->exchange[k].earlier = earlier;
    left->exchange[k].reduced = (enum cpl_embed_verdict)summary->reduced;
    if (state->rank == 0 && !left->summary && cpl_report_is_wanted())
        left->summary = calloc(CPL_MOST_LEFT, sizeof *left->summary);
    if (left->summary)
        left->summary[k] = told;
}

void cpl_profile_carried(struct cpl_pt2pt *p, const struct cpl_left_exchange *exchange,
                         struct cpl_plan_summary *summary)
{
    struct cpl_left_exchanges *left = &p->left;
    int k = find(left, exchange);
    if (k < 0)
        return;
    add_earlier(left, k, summary);
    int last = --left->n;
    left->exchange[k] = left->exchange[last];
    if (left->summary)
        left->summary[k] = left->summary[last];
}

struct cpl_record_windows cpl_profile_windows(const struct cpl_comm_state *state)
{
    const struct cpl_pt2pt_turn *turn = &state->pt2pt->plans.turn;
    const struct cpl_pairs *pairs = &turn->pairs;
    double us = 1e-3 / state->size, n = pairs->n;
    if (pairs->n > 0)
        return (struct cpl_record_windows){pairs->n, us * pairs->usual / n, us * pairs->other / n};
    return (struct cpl_record_windows){0, us * (double)turn->ns_mpi,
                                       us * (double)turn->ns_rerouted};
}

void cpl_profile_report(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    const struct cpl_left_exchanges *left = &p->left;
    double mine[2 * CPL_MOST_LEFT] = {0}, most[2 * CPL_MOST_LEFT] = {0}; /* calls, seconds */
    if (left->n == 0 || state->private_comm == MPI_COMM_NULL || !cpl_report_is_wanted())
        return;
    cpl_profile_finish(p);
    for (int k = 0; k < left->n; k++) {
        const struct cpl_left_exchange *exchange = &left->exchange[k];
        const struct cpl_signature *s =
            exchange->signature >= 0 ? &p->learned.signature[exchange->signature] : NULL;
        mine[2 * k] = cpl_profile_calls(exchange, p->learned.signature);
        mine[2 * k + 1] = s && s->durations ? cpl_samples_median(s->durations) : 0;
    }
    cpl_collective_Reduce(mine, most, 2 * left->n, MPI_DOUBLE, MPI_MAX, 0, state->private_comm);
    for (int k = 0; k < left->n && left->summary; k++) {
        struct cpl_record r = {.kind = CPL_KIND_PT2PT,
                               .n_ranks = state->size,
                               .n_communicators = 1,
                               .calls = (int64_t)(most[2 * k] + 0.5),
                               .passed = cpl_pt2pt_has_passed(p),
                               .direct_seconds = most[2 * k] * most[2 * k + 1],
                               .windows = cpl_profile_windows(state),
                               .summary = left->summary[k],
                               .reason = left->summary[k].reason};
        cpl_report_add(&r);
    }
}

void cpl_profile_finish(const struct cpl_pt2pt *p)
{
    struct cpl_timed_batch *timed = &cpl_context.timed;
    if (!timed->of || (p && p != timed->of))
        return;
    struct cpl_signature *s = timed->signature;
    if (s && !s->durations)
        s->durations = calloc(1, sizeof *s->durations);
    if (s && s->durations && timed->end > timed->start)
        cpl_samples_add(s->durations, timed->end - timed->start);
    *timed = (struct cpl_timed_batch){.of = NULL};
}
