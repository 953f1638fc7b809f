/* Learning who sends to whom (doc/point-to-point.md): counts by peer and batches by signature; and
 * what became of the exchanges, for later agreements and the report. */
#include "planner/base/hash.h"
#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/report/report.h"
#include "shim/state/comm_state.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

#define MOST_NOTES     8192 /* the most notes that a rank keeps, the latest ones */
#define ENOUGH_TIMES   8    /* a batch so often, to recognise it and what it comes after */
#define FIRST_MESSAGES 16
#define MOST_MESSAGES  4096 /* in one batch; further messages are another batch */

/* Batches after which none is expected to recur any more: with all signatures used up; with fewer
 * signatures, but none with several destinations. */
#define VARIED_BATCHES 128
#define PLAIN_BATCHES  4096

/* Drops the first notes. A window that lacks its beginning is not complete (recognise.h). */
static void drop(struct cpl_notes *notes, int from)
{
    notes->n -= from;
    memmove(notes->note, notes->note + from, (size_t)notes->n * sizeof *notes->note);
}

void cpl_notes_add(struct cpl_notes *notes, enum cpl_note_kind kind, int peer, int tag)
{
    const int last = notes->n - 1;
    if (kind == CPL_NOTE_COLLECTIVE && last >= 0 && notes->note[last].kind == CPL_NOTE_COLLECTIVE)
        notes->n = last;
    if (!notes->note)
        notes->note = malloc(MOST_NOTES * sizeof *notes->note);
    if (notes->n == MOST_NOTES)
        drop(notes, notes->n / 2);
    if (notes->note) /* else noting begins when there is memory */
        notes->note[notes->n++] = (struct cpl_note){kind, peer, tag};
}

/* A collective as a number: which communicator's, and which of these. */
static int64_t number_of(const struct cpl_note *note)
{
    return (int64_t)note->tag << 32 | note->peer;
}

/* since: the collective from which on this rank has sent each batch that recurs often enough; 0:
 * there is none. The first of all ranks' is looked for where all name the same communicator. */
void cpl_notes_shorten(struct cpl_pt2pt_learned *learned, MPI_Comm comm)
{
    struct cpl_notes *notes = &learned->notes;
    int n[CPL_MAX_SIGNATURES] = {0}, from = 0;
    int64_t since = 0, all[2];
    for (int k = notes->n - 1; k >= 0; k--) {
        const struct cpl_note *note = &notes->note[k];
        if (note->kind == CPL_NOTE_COLLECTIVE && since == 0)
            since = number_of(note);
        else if (note->kind == CPL_NOTE_WINDOW_END && note->peer >= 0 &&
                 cpl_pt2pt_recurs(&learned->signature[note->peer]) &&
                 n[note->peer]++ < ENOUGH_TIMES)
            since = 0;
    }
    if (cpl_collective_Allreduce((int64_t[]){since, -(since >> 32)}, all, 2, MPI_INT64_T, MPI_MIN,
                                 comm) != MPI_SUCCESS ||
        all[0] == 0 || all[0] >> 32 != -all[1])
        return;
    while (from < notes->n &&
           (notes->note[from].kind != CPL_NOTE_COLLECTIVE ||
            notes->note[from].tag != all[0] >> 32 || number_of(&notes->note[from]) < all[0]))
        from++;
    if (from > 0)
        drop(notes, from);
}

void cpl_notes_free(struct cpl_notes *notes)
{
    free(notes->note);
    *notes = (struct cpl_notes){.n = 0};
}

bool cpl_pt2pt_start(struct cpl_comm_state *state)
{
    if (state->pt2pt->started)
        return true;
    cpl_comm_state_own(state);
    struct cpl_pt2pt *p = state->pt2pt;
    p->learned.signature = calloc(CPL_MAX_SIGNATURES, sizeof *p->learned.signature);
    p->started = p->learned.signature;
    cpl_meeting_end_grant(state); /* they matter from now on */
    if (!p->started)
        p->blind = CPL_LEFT_UNABLE;
    return p->started;
}

bool cpl_pt2pt_batch_reserve(struct cpl_batch *batch)
{
    if (batch->n < batch->capacity)
        return true;
    int capacity = batch->capacity ? 2 * batch->capacity : FIRST_MESSAGES;
    void *message = realloc(batch->message, (size_t)capacity * sizeof *batch->message);
    if (!message)
        return false;
    batch->message = message;
    batch->capacity = capacity;
    return true;
}

bool cpl_pt2pt_batch_add(struct cpl_batch *batch, int dest, int tag, int64_t bytes)
{
    if (!cpl_pt2pt_batch_reserve(batch))
        return false;
    if (batch->n == 0)
        batch->hash = 0;
    batch->reduced = CPL_EMBED_REFUSED;
    batch->message[batch->n++] = (struct cpl_batch_message){dest, tag, bytes, 0};
    batch->hash += cpl_hash_mix((uint64_t)(uint32_t)dest << 32 | (uint32_t)tag);
    return true;
}

/* Notes a message of an open window. */
static void note(struct cpl_pt2pt *p, enum cpl_note_kind kind, int peer, int tag)
{
    cpl_context.busy.n_open_batches += !p->open;
    p->open = true;
    cpl_notes_add(&p->learned.notes, kind, peer, tag);
}

void cpl_pt2pt_learn_send(struct cpl_comm_state *state, int dest, int tag, int64_t bytes)
{
    if (dest < 0 || dest >= state->size || !cpl_pt2pt_start(state))
        return;
    struct cpl_pt2pt *p = state->pt2pt;
    cpl_balance_count(&state->balance, 1, state->rank, dest, tag);
    if (cpl_pt2pt_counts_only(p))
        return;
    note(p, CPL_NOTE_SENT, dest, tag);
    if (!cpl_pt2pt_batch_add(&p->batch, dest, tag, bytes) || p->batch.n == MOST_MESSAGES)
        cpl_pt2pt_close_batch(p);
}

void cpl_pt2pt_learn_receive(struct cpl_comm_state *state, int source, int tag, bool blocking)
{
    if (source == MPI_PROC_NULL || !cpl_pt2pt_start(state))
        return;
    if (source < 0 || source >= state->size || tag < 0)
        return; /* MPI refuses it */
    struct cpl_pt2pt *p = state->pt2pt;
    cpl_balance_count(&state->balance, -1, source, state->rank, tag);
    if (cpl_pt2pt_counts_only(p))
        return;
    if (!blocking)
        note(p, CPL_NOTE_POSTED, source, tag);
    else
        cpl_notes_add(&p->learned.notes, CPL_NOTE_RECEIVED, source, tag);
}

struct cpl_signature *cpl_pt2pt_find_signature(struct cpl_pt2pt *p, uint64_t hash, int n)
{
    for (int k = 0; k < p->learned.n_signatures; k++)
        if (p->learned.signature[k].hash == hash && p->learned.signature[k].n == n)
            return &p->learned.signature[k];
    return NULL;
}

/* Whether a rank has seen enough to say that no batch of several destinations will recur. */
bool cpl_pt2pt_exhausted(const struct cpl_pt2pt *p)
{
    if (p->learned.n_batches <
        (p->learned.n_signatures == CPL_MAX_SIGNATURES ? VARIED_BATCHES : PLAIN_BATCHES))
        return false;
    for (int k = 0; k < p->learned.n_signatures; k++)
        if (cpl_pt2pt_recurs(&p->learned.signature[k]) && p->learned.signature[k].n_dests > 1)
            return false;
    return true;
}

static int by_dest(const void *a, const void *b)
{
    return ((const struct cpl_batch_message *)a)->dest -
           ((const struct cpl_batch_message *)b)->dest;
}

int cpl_pt2pt_place_of(const struct cpl_signature *s, int dest)
{
    const struct cpl_batch_message wanted = {.dest = dest}, *found;
    found = bsearch(&wanted, s->to, (size_t)s->n_dests, sizeof wanted, by_dest);
    return found ? (int)(found - s->to) : -1;
}

static void free_signature(struct cpl_signature *s)
{
    free(s->to);
    free(s->message);
}

static struct cpl_signature *add_signature(struct cpl_pt2pt *p)
{
    const struct cpl_batch *batch = &p->batch;
    if (p->learned.n_signatures == CPL_MAX_SIGNATURES)
        return NULL;
    struct cpl_signature *s = &p->learned.signature[p->learned.n_signatures];
    *s = (struct cpl_signature){.hash = batch->hash,
                                .n = batch->n,
                                .to = calloc((size_t)batch->n, sizeof *s->to),
                                .message = calloc((size_t)batch->n, sizeof *s->message)};
    if (!s->to || !s->message) {
        free_signature(s);
        return NULL;
    }
    memcpy(s->message, batch->message, (size_t)batch->n * sizeof *s->message);
    memcpy(s->to, batch->message, (size_t)batch->n * sizeof *s->to);
    qsort(s->to, (size_t)s->n, sizeof *s->to, by_dest);
    for (int k = 0; k < s->n; k++)
        if (s->n_dests > 0 && s->to[k].dest == s->to[s->n_dests - 1].dest)
            s->to[s->n_dests - 1].bytes += s->to[k].bytes;
        else
            s->to[s->n_dests++] = s->to[k];
    p->learned.n_signatures++;
    return s;
}

/* Ends the batch. Returns its signature, NULL when it has none. */
static struct cpl_signature *end_batch(struct cpl_pt2pt *p)
{
    struct cpl_signature *s = cpl_pt2pt_find_signature(p, p->batch.hash, p->batch.n);
    if (!s)
        s = add_signature(p);
    if (s) {
        s->times++;
        s->n_reduced += p->batch.reduced != CPL_EMBED_REFUSED;
        s->n_in_any_order += p->batch.reduced == CPL_EMBED_ANY_ORDER;
    }
    p->learned.n_batches++;
    p->batch.n = 0;
    if (p->learned.n_batches % VARIED_BATCHES == 0)
        p->learned.counts_only = cpl_pt2pt_exhausted(p);
    return s;
}

void cpl_pt2pt_close_batch(struct cpl_pt2pt *p)
{
    if (!p->open)
        return;
    p->open = false;
    cpl_context.busy.n_open_batches--;
    struct cpl_signature *s = p->batch.n > 0 ? end_batch(p) : NULL;
    cpl_notes_add(&p->learned.notes, CPL_NOTE_WINDOW_END, s ? (int)(s - p->learned.signature) : -1,
                  0);
}

void cpl_pt2pt_free(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    if (p->open)
        cpl_context.busy.n_open_batches--;
    for (int k = 0; k < p->learned.n_signatures; k++)
        free_signature(&p->learned.signature[k]);
    free(p->learned.signature);
    cpl_notes_free(&p->learned.notes);
    cpl_cycle_end(&p->cycle);
    free(p->known.summary);
    free(p->batch.message);
    free(p->batch.segments);
    free(p->line->next_number);
    free(p->plans.summary);
}

void cpl_pt2pt_rest(struct cpl_comm_state *state)
{
    state->pt2pt->phase = CPL_PT2PT_RESTING;
    cpl_comm_state_forget_recent();
}

void cpl_pt2pt_look_away(struct cpl_comm_state *state)
{
    cpl_pt2pt_close_batch(state->pt2pt);
    state->pt2pt->lesson = state->pt2pt->learned.recurred_at;
    cpl_pt2pt_rest(state);
}

/* --- what became of exchanges */

struct cpl_known_exchange *cpl_profile_name(struct cpl_pt2pt *p, const struct cpl_recurring *found)
{
    struct cpl_known_exchanges *known = &p->known;
    int32_t ordinal = 0;
    for (int k = 0; k < known->n; k++) {
        if (known->exchange[k].hash == found->hash)
            return &known->exchange[k];
        ordinal += known->exchange[k].tag == found->tag;
    }
    if (known->n == CPL_MOST_NAMES)
        return NULL;
    known->exchange[known->n] = (struct cpl_known_exchange){
        .hash = found->hash, .tag = found->tag, .ordinal = ordinal, .signature = -1};
    return &known->exchange[known->n++];
}

double cpl_profile_calls(const struct cpl_known_exchange *x, const struct cpl_signature *signatures)
{
    int k = x->signature;
    return x->earlier + (k >= 0 ? x->fraction * (double)signatures[k].times : 0);
}

void cpl_profile_planned(struct cpl_comm_state *state, struct cpl_known_exchange *x,
                         struct cpl_plan_summary *summary)
{
    const bool left = summary->reason != CPL_LEFT_NOT;
    struct cpl_known_exchanges *known = &state->pt2pt->known;
    if (state->rank == 0 && !known->summary && cpl_report_is_wanted())
        known->summary = calloc(CPL_MOST_NAMES, sizeof *known->summary);
    struct cpl_plan_summary *told = known->summary ? &known->summary[x - known->exchange] : NULL;
    if (x->left && told) {
        summary->cost.times_planned += told->cost.times_planned;
        summary->cost.ms += told->cost.ms;
    }
    known->n_left += left - x->left;
    x->left = left;
    x->search = state->pt2pt->plans.planning.search;
    x->reduced = (enum cpl_embed_verdict)summary->reduced;
    if (told)
        *told = *summary;
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

/* Where meetings come throughout, at the 4th, 8th, 16th collective, at most half of the batches
 * come after the last one. */
#define ALL_PER_EARLY 4

static int why_left_alone(const struct cpl_comm_state *state)
{
    const struct cpl_pt2pt *p = state->pt2pt;
    const bool learns = p->phase == CPL_PT2PT_LEARNING;
    bool any = false;
    for (int k = 0; k < p->learned.n_signatures; k++)
        any |= cpl_pt2pt_recurs(&p->learned.signature[k]);
    if (learns && state->meeting.denied)
        return CPL_LEFT_THREADS;
    if (learns && p->reason == CPL_LEFT_NOTHING_RECURS && any &&
        ALL_PER_EARLY * p->learned.n_before < p->learned.n_batches)
        return CPL_LEFT_NO_MEETING; /* batches have come to recur after the last meeting only */
    return p->reason ? p->reason : CPL_LEFT_TOO_FEW_COLLECTIVES;
}

static struct cpl_record record_of(const struct cpl_comm_state *state)
{
    const struct cpl_pt2pt *p = state->pt2pt;
    bool passed = p->lesson > 0 || p->plans.pause > 0 || p->learned.counts_only;
    return (struct cpl_record){
        .kind = CPL_KIND_PT2PT, .n_ranks = state->size, .n_communicators = 1, .passed = passed};
}

/* Reports the messages that the first rank sent by MPI, and why. */
static void report_alone(const struct cpl_comm_state *state)
{
    const struct cpl_pt2pt *p = state->pt2pt;
    if (state->rank != 0 || !p->started || p->plans.n > 0 || p->plans.pause > 0 ||
        p->known.n_left > 0)
        return;
    struct cpl_record r = record_of(state);
    r.calls = p->learned.n_batches;
    r.reason = why_left_alone(state);
    cpl_report_add(&r);
}

void cpl_profile_report(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    const struct cpl_known_exchanges *known = &p->known;
    double calls[CPL_MOST_NAMES] = {0}, most[CPL_MOST_NAMES] = {0};
    if (!cpl_report_is_wanted())
        return;
    report_alone(state);
    if (known->n_left == 0 || state->private_comm == MPI_COMM_NULL)
        return;
    for (int k = 0; k < known->n; k++)
        calls[k] = cpl_profile_calls(&known->exchange[k], p->learned.signature);
    cpl_collective_Reduce(calls, most, known->n, MPI_DOUBLE, MPI_MAX, 0, state->private_comm);
    for (int k = 0; k < known->n && known->summary; k++) {
        struct cpl_record r = record_of(state);
        if (!known->exchange[k].left)
            continue;
        r.calls = (int64_t)(most[k] + 0.5);
        r.windows = cpl_profile_windows(state);
        r.summary = known->summary[k];
        r.reason = known->summary[k].reason;
        cpl_report_add(&r);
    }
}

/* Of each exchange the calls of the rank that sent most of it, as not all ranks send in each, and
 * what its plan did on all ranks; of the communicator what reductions did. */
void cpl_profile_report_plans(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    const struct cpl_embed *embed = &p->line->embed;
    struct cpl_exchange_count count[CPL_MAX_COMBINED_PLANS] = {{0, 0}};
    struct cpl_combined_counts mine[CPL_MAX_COMBINED_PLANS], all[CPL_MAX_COMBINED_PLANS] = {{0}};
    int64_t carried[] = {embed->n_segments, embed->n_late, embed->forwarded};
    int64_t carried_all[] = {0, 0, 0}, sends = 0;
    if (!cpl_report_is_wanted())
        return;
    for (int k = 0; k < p->plans.n; k++)
        mine[k] = cpl_combined_counts(&p->line->combined, k);
    cpl_collective_Reduce(mine, all, p->plans.n * (int)(sizeof *mine / sizeof(int64_t)),
                          MPI_INT64_T, MPI_SUM, 0, state->private_comm);
    cpl_collective_Reduce(carried, carried_all, 3, MPI_INT64_T, MPI_SUM, 0, state->private_comm);
    cpl_collective_Reduce(&embed->n_sends, &sends, 1, MPI_INT64_T, MPI_MAX, 0, state->private_comm);
    cpl_collective_Reduce(p->plans.count, count, 2 * p->plans.n, MPI_INT64_T, MPI_MAX, 0,
                          state->private_comm);
    if (state->rank != 0)
        return;
    for (int k = 0; k < p->plans.n; k++) {
        struct cpl_record r = record_of(state);
        r.calls = count[k].all;
        r.calls_planned = count[k].planned;
        r.forwarded_bytes = all[k].forwarded + (p->plans.embeds[k] ? carried_all[2] : 0);
        r.combined = all[k].sent;
        r.late_combined = all[k].late;
        r.reductions = (struct cpl_record_reductions){embed->n_reductions, sends, carried_all[0],
                                                      carried_all[1], embed->points};
        r.windows = cpl_profile_windows(state);
        r.summary = p->plans.summary[k];
        r.reason = p->reason;
        cpl_report_add(&r);
    }
}
