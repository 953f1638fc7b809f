/* The exchanges that recur on a communicator (pt2pt_exchanges.h). */
#include "shim/pt2pt/pt2pt_exchanges.h"

#include "shim/base/log.h"
#include "shim/meet/agree.h"
#include "shim/meet/desk.h"
#include "shim/plan/recognise_together.h"
#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/state/comm_state.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_NOTES 256
#define MOST_NOTES  8192      /* the most notes that a rank keeps, the latest ones */
#define LEAST_NOTES 256       /* a rank may always hand in this many */
#define ALL_NOTES   (1 << 21) /* else this many for all ranks together */

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

/* --- recognising, by the first rank or by all --------------------------------------------- */

/* The first of this rank's last notes that are handed in. */
static int first_handed_in(const struct cpl_comm_state *state)
{
    const struct cpl_notes *notes = &state->pt2pt->learned.notes;
    int most = ALL_NOTES / state->size;
    most = most > LEAST_NOTES ? most : LEAST_NOTES;
    return notes->n > most ? next_beginning(notes, notes->n - most) : 0;
}

/* Hands in notes and gets the exchange of each. Collective. Returns the number of exchanges or -1,
 * alike on all ranks. */
static int recognise(struct cpl_desk *desk, const struct cpl_notes *mine,
                     struct cpl_exchanges *exchanges)
{
    int n = -1, n_mine;
    void *of_note;
    const struct cpl_handed_in handed = {
        .able = true, .records = mine->note, .n = mine->n, .record_bytes = sizeof *mine->note};
    if (!cpl_desk_hand_in(desk, &handed))
        return -1;
    int32_t *exchange = NULL;
    if (cpl_desk_is_root(desk))
        exchange = calloc((size_t)desk->first[desk->n_ranks] + 1, sizeof *exchange);
    if (exchange)
        n = cpl_recognise(desk->n_ranks, desk->first, desk->records, CPL_MOST_EXCHANGES,
                          CPL_RECURS_TIMES, exchanges->found, exchange);
    cpl_desk_answer(desk, &n, sizeof n);
    if (n > 0) {
        cpl_desk_answer(desk, exchanges->found, (size_t)n * sizeof *exchanges->found);
        if (!cpl_desk_spread(desk, exchange, exchange, sizeof *exchange, &of_note, &n_mine))
            n = -1;
        exchanges->of_note = of_note;
    }
    free(exchange);
    return n;
}

/* The same by all ranks, each of which looks at all notes that it has. Collective. */
static int recognise_together(struct cpl_comm_state *state, struct cpl_exchanges *exchanges)
{
    const struct cpl_notes *notes = &state->pt2pt->learned.notes;
    exchanges->first_note = 0;
    exchanges->of_note = calloc((size_t)notes->n + 1, sizeof *exchanges->of_note);
    return cpl_recognise_together(state->private_comm, notes->note, notes->n, CPL_MOST_EXCHANGES,
                                  CPL_RECURS_TIMES, exchanges->found, exchanges->of_note);
}

/* The notes of all ranks that one rank would get; alike on all of them. Collective. */
static int64_t count_notes(struct cpl_comm_state *state, int64_t n_mine)
{
    int64_t n = 0;
    cpl_collective_Allreduce(&n_mine, &n, 1, MPI_INT64_T, MPI_SUM, state->private_comm);
    return n;
}

/* This rank's signature in each exchange, and which part of its batches belongs to it. */
static void find_signatures(struct cpl_exchanges *exchanges, const struct cpl_notes *mine)
{
    int n_of[CPL_MAX_SIGNATURES] = {0}, n_in[CPL_MOST_EXCHANGES] = {0};
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
    struct cpl_desk desk;
    *exchanges = (struct cpl_exchanges){.first_note = first_handed_in(state)};
    struct cpl_notes mine = {.n = p->learned.notes.n - exchanges->first_note};
    if (mine.n > 0)
        mine.note = p->learned.notes.note + exchanges->first_note;
    if (cpl_recognise_is_together(count_notes(state, mine.n))) {
        exchanges->n = recognise_together(state, exchanges);
        mine = p->learned.notes;
    } else {
        cpl_desk_open(&desk, state->private_comm, 0);
        exchanges->n = recognise(&desk, &mine, exchanges);
        cpl_desk_close(&desk);
    }
    if (exchanges->n < 0) {
        if (state->rank == 0)
            cpl_log(CPL_LOG_WARN, "pt2pt",
                    "%d ranks: nothing is recognised, since a rank had no memory for it; messages "
                    "are left to MPI",
                    state->size);
        cpl_exchanges_free(exchanges);
        return false;
    }
    if (exchanges->n > 0)
        find_signatures(exchanges, &mine);
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
    for (int k = exchanges->first_note; k < p->learned.notes.n; k++) {
        const struct cpl_note *note = &p->learned.notes.note[k];
        int e = exchanges->n > 0 ? exchanges->of_note[k - exchanges->first_note] : -1;
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
    size_t n_notes = (size_t)(p->learned.notes.n - exchanges->first_note);
    struct cpl_step *step = calloc(n_notes + 1, sizeof *step);
    if (!step)
        return false;
    cpl_cycle_set(&p->cycle, step, list_steps(p, exchanges, plan, step));
    return true;
}
