/* Agreeing to manage a communicator (doc/point-to-point.md). Collective; every step that may fail
 * on one rank is followed by one in which all learn of it. */
#include "shim/base/log.h"
#include "shim/meet/agree.h"
#include "shim/meet/appointment.h"
#include "shim/plan/cycle.h"
#include "shim/plan/plan_root.h"
#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/pt2pt/pt2pt_parts.h"
#include "shim/state/comm_state.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

#define SOON         16   /* collectives until an agreement that nobody else hastens */
#define UNUSED       10   /* the part of the balance that what is perhaps never used may cost */
#define LONGEST_HOLD 0.02 /* seconds */

/* From here on the communicator is MPI's alone. On all ranks. */
static void stop_learning(struct cpl_comm_state *state)
{
    cpl_pt2pt_close_batch(state->pt2pt);
    cpl_notes_free(&state->pt2pt->learned.notes);
    state->pt2pt->phase = CPL_PT2PT_ALONE;
    state->pt2pt->plans.pause = 0;
}

/* In a profile run exchanges that were planned are counted to the end. */
static bool is_profiled(const struct cpl_pt2pt *p)
{
    return cpl_context.settings.mode == CPL_MODE_PROFILE && p->known.n_left > 0;
}

/* An agreement came to nothing: no more is expected of learning, or not before the next regular
 * date. But exchanges that wait for other ranks are remembered. On all ranks. */
static void learn_later(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    if (p->n_vain >= CPL_MOST_VAIN && !is_profiled(p))
        stop_learning(state);
    else if (cpl_context.settings.mode == CPL_MODE_AUTO && !p->ripe)
        cpl_pt2pt_look_away(state);
}

/* The words of a vote while learning. ABLE: less why this rank's messages must stay MPI's. */
enum { ABLE, ROOM, GAINS, IDLE, EXHAUSTED, AFFORDS, N_LEAST };

_Static_assert(N_LEAST == CPL_PT2PT_N_LEAST, "words of which the least counts");

void cpl_pt2pt_vote(struct cpl_comm_state *state, int64_t *words)
{
    struct cpl_pt2pt *p = state->pt2pt;
    cpl_pt2pt_review_vote(state, words + N_LEAST);
    const int part = state->meeting.awaited.number > 0 ? 1 : UNUSED;
    words[AFFORDS] = cpl_context.settings.mode == CPL_MODE_FORCE ||
                     cpl_context_balance() >= part * cpl_context.account.communicator;
    if (p->phase != CPL_PT2PT_LEARNING)
        return;
    int most = 0;
    for (int k = 0; k < p->learned.n_signatures; k++)
        if (cpl_pt2pt_recurs(&p->learned.signature[k]) && p->learned.signature[k].n_dests > most)
            most = p->learned.signature[k].n_dests;
    bool exhausted = cpl_pt2pt_exhausted(p);
    words[ABLE] = -(p->blind                     ? p->blind
                    : cpl_context.service.barred ? CPL_LEFT_ALLOCATOR
                    : cpl_context.met_others     ? CPL_LEFT_UNABLE
                                                 : CPL_LEFT_NOT);
    words[ROOM] = cpl_context.n_epochs == 0;
    words[GAINS] = -most;
    p->learned.n_before = p->learned.n_batches;
    words[IDLE] = exhausted || p->learned.n_batches == 0;
    words[EXHAUSTED] = -(int)exhausted;
}

/* Whether all ranks are able, and any has something to combine. Where that is out of the question
 * for good, learning stops. */
static bool all_able(struct cpl_comm_state *state, const int64_t *words)
{
    struct cpl_pt2pt *p = state->pt2pt;
    bool gains = words[GAINS] <= -2;
    bool nothing_will_recur = !gains && words[IDLE] && words[EXHAUSTED] && !is_profiled(p);
    bool able = words[ABLE] == -CPL_LEFT_NOT;
    if (!able || nothing_will_recur)
        stop_learning(state);
    /* As many ranks as MPI_COMM_WORLD, but are they those? The same answer on all of them. */
    bool all_are = able && words[ROOM] && cpl_collective_of_this_world(state->comm);
    bool may = all_are && gains;
    p->reason = all_are ? CPL_LEFT_NOTHING_RECURS : able ? CPL_LEFT_UNABLE : (int)-words[ABLE];
    bool awaits = p->ripe && !cpl_parts_are_served(state);
    if (may && awaits)
        p->reason = CPL_LEFT_NO_MEETING;
    return may && !awaits;
}

/* Exchanges that recur. of_note is this rank's own, the rest is alike on all ranks. */
struct exchanges {
    int n;
    struct cpl_known_exchange *of[CPL_MOST_RECURRING]; /* NULL: one too many */
    int plan[CPL_MOST_RECURRING];                      /* CPL_NO_PLAN: none */
    int32_t *of_note; /* per note of kind CPL_NOTE_WINDOW_END: its exchange, or -1 */
};

/* This rank's signature in each exchange, and which part of its batches belongs to it. */
static void find_signatures(struct exchanges *exchanges, const struct cpl_notes *mine)
{
    int n_of[CPL_MAX_SIGNATURES] = {0}, n_in[CPL_MOST_RECURRING] = {0};
    for (int k = 0; k < mine->n; k++) {
        int e = exchanges->of_note[k];
        if (mine->note[k].kind != CPL_NOTE_WINDOW_END || mine->note[k].peer < 0)
            continue;
        n_of[mine->note[k].peer]++;
        if (e < 0 || !exchanges->of[e])
            continue;
        exchanges->of[e]->signature = mine->note[k].peer;
        n_in[e]++;
    }
    for (int e = 0; e < exchanges->n; e++)
        if (n_in[e] > 0)
            exchanges->of[e]->fraction = (double)n_in[e] / n_of[exchanges->of[e]->signature];
}

/* Collective; false on all ranks when memory ran out on one. All messages sent must have been
 * received, or their receives posted. */
static bool find_exchanges(struct cpl_comm_state *state, struct exchanges *exchanges)
{
    struct cpl_recurring found[CPL_MOST_RECURRING];
    struct cpl_notes *notes = &state->pt2pt->learned.notes;
    cpl_notes_shorten(&state->pt2pt->learned, state->private_comm);
    exchanges->of_note = calloc((size_t)notes->n + 1, sizeof *exchanges->of_note);
    exchanges->n = cpl_recognise(state->private_comm, notes->note, notes->n, CPL_RECURS_TIMES,
                                 found, exchanges->of_note);
    for (int e = 0; e < exchanges->n; e++)
        exchanges->of[e] = cpl_profile_name(state->pt2pt, &found[e]);
    if (exchanges->n > 0)
        find_signatures(exchanges, notes);
    return exchanges->n >= 0;
}

/* Keeps the cycle in which this rank's batches recur, from its notes, the last of which is a
 * collective: of the steps from the first batch of a known exchange on, without batches that no
 * plan carries. Local. */
static bool keep_cycle(struct cpl_pt2pt *p, const struct exchanges *exchanges)
{
    struct cpl_step *step = calloc((size_t)p->learned.notes.n + 1, sizeof *step);
    int n = 0;
    for (int k = 0; step && k < p->learned.notes.n; k++) {
        const struct cpl_note *note = &p->learned.notes.note[k];
        int e = exchanges->of_note[k];
        bool after_collective = n > 0 && step[n - 1].signature == CPL_STEP_COLLECTIVE;
        if (note->kind == CPL_NOTE_COLLECTIVE && n > 0 && !after_collective)
            step[n++] = (struct cpl_step){CPL_STEP_COLLECTIVE, CPL_NO_PLAN};
        if (note->kind == CPL_NOTE_WINDOW_END && note->peer >= 0 &&
            p->learned.signature[note->peer].planned && (n > 0 || e >= 0))
            step[n++] = (struct cpl_step){note->peer, e >= 0 ? exchanges->plan[e] : CPL_NO_PLAN};
    }
    if (step)
        cpl_cycle_set(&p->cycle, step, n);
    return step;
}

/* Slices of the plans that pay; what else is known of these is in struct cpl_pt2pt_plans. */
struct slices {
    int n;
    int32_t *words[CPL_MAX_COMBINED_PLANS];
    int32_t n_words[CPL_MAX_COMBINED_PLANS];
};

/* Whether all messages of a plan go by lanes: then nothing is gained where they ride in reductions,
 * which go in memory, too (carry/embed.h). */
static bool is_in_memory(const struct cpl_plan_summary *summary)
{
    return summary->planned.mpi_max == 0;
}

#define FEWEST_BY_LANES 3 /* two gain nothing (bench/results/lanes.md) */

/* Whether it pays to manage the messages of a plan, by itself or where they ride in reductions. The
 * same answer on all ranks.
 *
 * Of waiting the model knows nothing. With lanes ranks look at memory, not at MPI, and take fewer
 * turns where they share cores. So that is tried, where some rank sends enough; but not with fewer
 * ranks, whose reductions are MPI's and wait longer while ranks poll. */
static bool pays(const struct cpl_comm_state *state, const struct cpl_plan_summary *summary)
{
    if (cpl_context.settings.mode == CPL_MODE_FORCE || cpl_plan_carried_promises(summary))
        return true;
    return is_in_memory(summary)
               ? state->size == cpl_context.size && summary->direct.sends_max >= FEWEST_BY_LANES
               : cpl_plan_embedded_promises(summary);
}

/* Of the reductions that mostly come after a batch. */
static enum cpl_embed_verdict mostly_reduced(const struct cpl_signature *s)
{
    if (2 * s->n_in_any_order > s->times)
        return CPL_EMBED_ANY_ORDER;
    return 2 * s->n_reduced > s->times ? CPL_EMBED_COMPARING : CPL_EMBED_REFUSED;
}

static const struct cpl_signature *signature_of(const struct cpl_pt2pt *p,
                                                const struct cpl_known_exchange *x)
{
    return x && x->signature >= 0 ? &p->learned.signature[x->signature] : NULL;
}

/* What a rank sends by a signature (NULL: nothing). Messages to itself need no plan. */
static int list_messages(const struct cpl_signature *s, int rank, struct cpl_pattern_entry *to)
{
    int n = 0;
    for (int k = 0; s && k < s->n_dests; k++)
        if (s->to[k].dest != rank)
            to[n++] = (struct cpl_pattern_entry){rank, s->to[k].dest, s->to[k].bytes, -1};
    return n;
}

/* Whether the messages of a plan ride in reductions where these come next: when that is modelled
 * faster than the plan, which needs messages of its own. The same answer on all ranks. */
static bool embeds(const struct cpl_plan_summary *summary)
{
    return cpl_context.settings.embed != CPL_EMBED_OFF && !is_in_memory(summary) &&
           (cpl_context.settings.mode == CPL_MODE_FORCE ||
            summary->embedded_us < summary->planned.modelled_us);
}

/* Whether an exchange that was left to MPI is planned again: by a full search after a short one, or
 * when all sending ranks have a better verdict on the reductions that come next, which improves
 * twice at most. Collective, the same on all ranks. */
static bool is_worth_another(const struct cpl_comm_state *state, const struct cpl_known_exchange *x,
                             enum cpl_embed_verdict reduced)
{
    if (cpl_context.settings.mode == CPL_MODE_PROFILE)
        return false;
    return (x->search == CPL_SEARCH_SHORT &&
            state->pt2pt->plans.planning.search == CPL_SEARCH_FULL) ||
           cpl_agree_all(state->private_comm, reduced > x->reduced);
}

/* Returns the exchange's plan, or CPL_NO_PLAN. */
static int plan_exchange(struct cpl_comm_state *state, struct cpl_known_exchange *x,
                         struct slices *slices)
{
    struct cpl_pt2pt *p = state->pt2pt;
    const struct cpl_signature *s = signature_of(p, x);
    enum cpl_embed_verdict reduced = s ? mostly_reduced(s) : CPL_EMBED_REFUSED;
    if (!x || slices->n == CPL_MAX_COMBINED_PLANS ||
        (x->left && !is_worth_another(state, x, s ? reduced : CPL_EMBED_ANY_ORDER)))
        return CPL_NO_PLAN;
    struct cpl_agree_input input = {.able = true,
                                    .pt2pt = true,
                                    .most_plans = 1,
                                    .reduced = reduced,
                                    .turn = &p->plans.planning};
    struct cpl_agree_output output;
    struct cpl_pattern_entry *messages = calloc(s ? (size_t)s->n_dests : 1, sizeof *messages);
    input.able = messages;
    input.n_messages = messages ? list_messages(s, state->rank, messages) : 0;
    input.messages = messages;
    bool agreed = cpl_plan_agree(state->private_comm, &input, &output);
    free(messages);
    if (!agreed)
        return CPL_NO_PLAN;
    struct cpl_plan_summary *summary = &output.summary[0];
    bool wanted = summary->decided || summary->reason == CPL_LEFT_PROFILED;
    summary->tag = x->tag;
    summary->ordinal = x->ordinal;
    summary->cost.times_planned = 1;
    if (wanted && !pays(state, summary))
        summary->reason = CPL_LEFT_DEAR;
    bool left = summary->reason != CPL_LEFT_NOT;
    summary->decided = !left;
    cpl_profile_planned(state, x, summary);
    if (left) {
        cpl_agree_output_free(&output);
        return CPL_NO_PLAN;
    }
    p->plans.summary[slices->n] = *summary;
    p->plans.embeds[slices->n] = embeds(summary);
    p->plans.count[slices->n] =
        (struct cpl_exchange_count){.all = s ? (int64_t)(x->fraction * (double)s->times + 0.5) : 0};
    slices->words[slices->n] = output.words[0];
    slices->n_words[slices->n] = output.n_words[0];
    return slices->n++;
}

/* Takes over the plans. Local. */
static bool add_plans(struct cpl_comm_state *state, bool ready, struct slices *slices)
{
    struct cpl_pt2pt *p = state->pt2pt;
    p->plans.n = slices->n;
    ready = ready && cpl_embed_init(state);
    for (int k = 0; k < slices->n; k++) {
        int plan = CPL_NO_PLAN;
        if (ready)
            plan = cpl_combined_add_plan(&p->line->combined, slices->words[k], slices->n_words[k]);
        else
            free(slices->words[k]);
        ready = ready && plan == k;
        p->line->embed.on |= p->plans.embeds[k];
    }
    return ready;
}

/* Places the ranks for what rides in reductions in any order. Collective. */
static void map_ranks(struct cpl_comm_state *state, const struct exchanges *exchanges)
{
    const struct cpl_pt2pt *p = state->pt2pt;
    bool any = false;
    int n = 0;
    size_t most = 1;
    for (int e = 0; e < exchanges->n; e++) {
        const struct cpl_signature *sent = signature_of(p, exchanges->of[e]);
        most += sent ? (size_t)sent->n_dests : 0;
    }
    struct cpl_pattern_entry *messages = calloc(most, sizeof *messages);
    for (int e = 0; e < exchanges->n; e++) {
        int plan = exchanges->plan[e];
        if (plan == CPL_NO_PLAN || !p->plans.embeds[plan] ||
            p->plans.summary[plan].reduced != CPL_EMBED_ANY_ORDER)
            continue;
        any = true;
        if (messages)
            n += list_messages(signature_of(p, exchanges->of[e]), state->rank, messages + n);
    }
    if (any && !p->line->embed.points)
        cpl_embed_map(state, n, messages);
    free(messages);
}

/* Combined messages are held for as long as MPI takes from one collective to the next, if that is
 * longer than the setting: an exchange takes no longer, and what leaves earlier makes more
 * messages. */
static void set_hold(struct cpl_comm_state *state)
{
    double *hold = &state->line->combined.hold_seconds;
    double usual = 1e-9 * (double)state->pt2pt->plans.turn.ns_mpi / state->size;
    usual = usual < LONGEST_HOLD ? usual : LONGEST_HOLD;
    *hold = usual > *hold ? usual : *hold;
}

/* From here on all ranks manage the communicator, or none. */
static void manage(struct cpl_comm_state *state, const struct exchanges *exchanges,
                   struct slices *slices)
{
    struct cpl_pt2pt *p = state->pt2pt;
    bool prepared = cpl_agree_service(state->private_comm);
    bool ready = add_plans(state, cpl_line_open(state) && prepared, slices);
    for (int e = 0; e < exchanges->n; e++)
        if (exchanges->plan[e] != CPL_NO_PLAN && exchanges->of[e]->signature >= 0)
            p->learned.signature[exchanges->of[e]->signature].planned = true;
    ready = ready && keep_cycle(p, exchanges);
    cpl_combined_open_lanes(&p->line->combined, state->private_comm, ready);
    cpl_notes_free(&p->learned.notes);
    map_ranks(state, exchanges);
    if (cpl_agree_all(state->private_comm, ready)) {
        cpl_pt2pt_learn_order(state);
        set_hold(state);
        p->phase = CPL_PT2PT_MANAGED;
        p->reason = CPL_LEFT_NOT;
        cpl_line_manage(state);
        if (cpl_context.settings.mode == CPL_MODE_AUTO)
            cpl_pt2pt_turn_begin(state);
        return;
    }
    for (int k = 0; k < p->learned.n_signatures; k++)
        p->learned.signature[k].planned = false;
    p->plans.n = 0;
    p->phase = CPL_PT2PT_ALONE;
    p->reason = CPL_LEFT_UNABLE;
    cpl_line_close(state);
}

/* Plans what recurs. Where the plans pay, but the ranks cannot manage the communicator before all
 * ranks poll, they plan again then. Collective; returns in how many exchanges that is. */
static int plan_all(struct cpl_comm_state *state, struct slices *slices)
{
    struct cpl_pt2pt *p = state->pt2pt;
    struct exchanges exchanges;
    if (!find_exchanges(state, &exchanges))
        p->reason = CPL_LEFT_NO_PLAN;
    else if (exchanges.n == 0)
        p->reason = CPL_LEFT_NOTHING_RECURS;
    for (int e = 0; e < exchanges.n; e++)
        exchanges.plan[e] = plan_exchange(state, exchanges.of[e], slices);
    p->ripe = slices->n > 0 && !cpl_parts_are_served(state);
    if (p->ripe)
        p->reason = CPL_LEFT_NO_MEETING;
    else if (slices->n > 0)
        manage(state, &exchanges, slices);
    for (int k = 0; p->ripe && k < slices->n; k++)
        free(slices->words[k]);
    free(exchanges.of_note);
    return exchanges.n > 0 ? exchanges.n : 0;
}

/* To recognise exchanges and to begin to manage takes about as long as to agree on so many. */
#define MANAGING 2

/* Whether it is too early to plan: it would cost too much beside what the program has taken. Else
 * the turn says how long to search for. Collective; the same results on all ranks. */
static bool is_early(const struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    struct cpl_plan_turn *turn = &p->plans.planning;
    struct cpl_agree_input input = {
        .able = true, .pt2pt = true, .turn = turn, .n_exchanges = MANAGING};
    for (int k = 0; k < p->learned.n_signatures; k++) {
        const struct cpl_signature *s = &p->learned.signature[k];
        input.n_messages += cpl_pt2pt_recurs(s) ? s->n_dests : 0;
        input.n_exchanges += cpl_pt2pt_recurs(s) && s->n_dests > 1;
    }
    bool early = cpl_plan_is_early(state->private_comm, &input,
                                   (PMPI_Wtime() - cpl_context.account.start) * 1e3,
                                   state->meeting.n, false);
    if (early) {
        p->reason = CPL_LEFT_SHORT;
        cpl_date_put_off(&p->date, state->meeting.n, turn->pause);
    }
    return early;
}

/* Tries to manage the communicator. Returns false when that failed only because messages were under
 * way. Collective. */
static bool agree(struct cpl_comm_state *state, const int64_t *words)
{
    struct cpl_pt2pt *p = state->pt2pt;
    if (!all_able(state, words))
        return true;
    if (p->learned.recurred_at == 0)
        p->learned.recurred_at = state->meeting.n;
    if (is_early(state)) {
        cpl_pt2pt_look_away(state);
        return true;
    }
    p->reason = CPL_LEFT_UNMATCHED;
    bool fits = cpl_pt2pt_fits(state);
    p->n_vain += p->date.n_retries == 0;
    if (!fits && (p->n_vain >= CPL_MOST_VAIN || p->date.n_retries == CPL_MOST_RETRIES))
        learn_later(state);
    if (!fits)
        return false;
    p->reason = CPL_LEFT_NO_GAIN;
    struct slices slices = {.n = 0};
    if (!p->plans.summary)
        p->plans.summary = calloc(CPL_MAX_COMBINED_PLANS, sizeof *p->plans.summary);
    int n = cpl_agree_all(state->private_comm, p->plans.summary) ? plan_all(state, &slices) : 0;
    if (slices.n == 0)
        learn_later(state);
    if (state->rank == 0)
        cpl_log(CPL_LOG_INFO, "pt2pt", "%d ranks, %d recurring exchanges, %d rerouted from now on",
                state->size, n, p->phase == CPL_PT2PT_MANAGED ? slices.n : 0);
    return true;
}

enum cpl_settled cpl_pt2pt_settle(struct cpl_comm_state *state, bool regular, const int64_t *words)
{
    (void)regular;
    bool rests = state->pt2pt->phase == CPL_PT2PT_RESTING;
    if (rests && !state->line->kept && is_early(state))
        return CPL_SETTLED;
    if (!rests && state->pt2pt->phase != CPL_PT2PT_MANAGED) {
        state->pt2pt->plans.turn.ns_mpi = cpl_pt2pt_ns_a_collective(state, words + N_LEAST);
        cpl_pt2pt_turn_window(state);
        double begin = PMPI_Wtime();
        bool settled = agree(state, words);
        state->pt2pt->plans.turn.setup = PMPI_Wtime() - begin;
        if (words[AFFORDS] && cpl_appointment_are_possible(state)) /* the next may be some */
            cpl_agree_world(state->private_comm);
        if (cpl_context.service.shared && state->pt2pt->ripe) /* nobody else hastens it */
            cpl_date_hasten(&state->pt2pt->date, state->meeting.n, SOON);
        return settled ? CPL_SETTLED : CPL_NOT_SETTLED;
    }
    return cpl_pt2pt_review(state, words + N_LEAST);
}
