/* Polling, waiting, and where managing begins and ends (pt2pt.h). */
#include "shim/pt2pt/pt2pt.h"

#include "shim/carry/requests.h"
#include "shim/meet/meeting.h"
#include "shim/state/hooks.h"
#include "shim/state/memory.h"
#include "shim/wait/progress.h"

#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/pt2pt/pt2pt_parts.h"
#include "shim/state/comm_state.h"

#include <stdlib.h>

/* What the program takes for sent leaves. */
static bool serve(void)
{
    bool any = false;
    for (struct cpl_comm_state *s = cpl_context.comms.first_managed; s; s = s->line->next_managed) {
        if (s->pt2pt->phase != CPL_PT2PT_MANAGED ||
            (s->pt2pt->batch.n == 0 && !s->pt2pt->following.signature))
            continue;
        cpl_pt2pt_flush(s);
        any = true;
    }
    return any;
}

/* What is not piggybacked on the reduction that is being entered. */
static void leave(void)
{
    for (struct cpl_comm_state *s = cpl_context.comms.first;
         s && cpl_context.busy.n_open_batches > 0; s = s->next) {
        const struct cpl_pt2pt *p = s->pt2pt;
        if ((p->batch.n == 0 && !p->following.signature && !p->open) ||
            (p->line->embed.waiting && p->phase == CPL_PT2PT_MANAGED))
            continue;
        cpl_pt2pt_flush(s);
        cpl_pt2pt_close_batch(s->pt2pt);
    }
}

/* What this rank takes to be alike on all of them. */
static void alike(const struct cpl_comm_state *state, struct cpl_alike *a)
{
    const struct cpl_pt2pt *p = state->pt2pt;
    const struct cpl_line *line = state->line;
    const int64_t words[] = {p->n_vain,  p->phase,      p->known.n_left,
                             p->plans.n, line->managed, line->embed.on};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        cpl_alike_add(a, words[k]);
    for (int k = 0; k < p->plans.n; k++) {
        cpl_alike_add(a, (int64_t)p->plans.summary[k].plan_fingerprint);
        cpl_alike_add(a, p->plans.embeds[k]);
    }
}

/* All ranks come to a collective of `of`: their next batches belong together, whatever some did
 * before. */
static void at_collective(const struct cpl_comm_state *state, const struct cpl_comm_state *of)
{
    struct cpl_pt2pt *p = state->pt2pt;
    if (p->phase == CPL_PT2PT_MANAGED) {
        cpl_pt2pt_abandon(p);
        cpl_cycle_collective(&p->cycle);
        cpl_combined_align(&p->line->combined);
    } else if (p->started && !p->learned.counts_only && p->phase == CPL_PT2PT_LEARNING) {
        cpl_notes_add(&p->learned.notes, CPL_NOTE_COLLECTIVE, (int)of->meeting.n,
                      (int)of->meeting.family.number);
    }
}

/* Whether there is nothing to be learned or done about a communicator's reductions. */
static bool is_idle(const struct cpl_comm_state *state)
{
    return !state || state->blank || state->inter || state->pt2pt->phase == CPL_PT2PT_ALONE ||
           state->pt2pt->phase == CPL_PT2PT_RESTING;
}

void cpl_pt2pt_note_collective(struct cpl_comm_state *state)
{
    if (state->line->embed.on && !is_idle(state))
        cpl_embed_decide(state);
    at_collective(state, state);
}

void cpl_family_note_collective(const struct cpl_comm_state *state)
{
    if (state->size < cpl_context.size || state->meeting.family.number == 0)
        return;
    for (int k = 0; k < CPL_MOST_JOINED; k++) {
        const struct cpl_comm_state *s = cpl_context.comms.family.state[k];
        if (!s || s == state)
            continue;
        cpl_progress_leave();
        at_collective(s, state);
    }
}

bool cpl_pt2pt_allreduce(MPI_Comm comm, const void *send, void *recv, int64_t count,
                         MPI_Datatype type, MPI_Op op, MPI_Request *request, int *result)
{
    struct cpl_comm_state *state = cpl_comm_state_get(comm);
    const bool blocking = !request;
    if (is_idle(state))
        return false;
    struct cpl_pt2pt *p = state->pt2pt;
    enum cpl_embed_verdict verdict = cpl_embed_judge(count, type, op);
    struct cpl_embed_kind *kind = NULL;
    if (verdict != CPL_EMBED_REFUSED)
        p->batch.reduced = verdict;
    if (p->line->embed.on && p->phase == CPL_PT2PT_MANAGED)
        kind = cpl_embed_takes(state, count, type, op, blocking);
    if (!kind)
        return false;
    if (!blocking) {
        *result = cpl_embed_iallreduce(state, kind, send, recv, request);
        return true;
    }
    p->line->embed.waiting = true;
    cpl_progress_leave();
    p->line->embed.waiting = false;
    *result = cpl_embed_allreduce(state, kind, send, recv);
    return true;
}

static enum cpl_pt2pt_phase first_phase(const struct cpl_comm_state *state)
{
    return state->inter || state->size < 2 ? CPL_PT2PT_ALONE : CPL_PT2PT_LEARNING;
}

static void meet(struct cpl_comm_state *state)
{
    static const struct cpl_pt2pt blank[] = {
        [CPL_PT2PT_LEARNING] = {.line = (struct cpl_line *)&cpl_line_blank,
                                .phase = CPL_PT2PT_LEARNING},
        [CPL_PT2PT_ALONE] = {.line = (struct cpl_line *)&cpl_line_blank, .phase = CPL_PT2PT_ALONE}};
    state->pt2pt = (struct cpl_pt2pt *)&blank[first_phase(state)];
}

static void begin(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt = cpl_memory_need(sizeof *p, "a communicator");
    p->line = state->line;
    p->phase = first_phase(state);
}

static void end(struct cpl_comm_state *state)
{
    if (state->blank)
        return;
    cpl_profile_report(state);
    if (state->line->managed)
        cpl_line_drain(state);
    while (state->pt2pt->phase == CPL_PT2PT_MANAGED && cpl_buffered_any(state->private_comm))
        cpl_progress_poll(); /* all their receives have been posted */
    if (state->pt2pt->phase == CPL_PT2PT_MANAGED || state->line->kept)
        cpl_pt2pt_unmanage(state);
    cpl_pt2pt_free(state);
}

/* A profile run goes on counting when it has seen enough, and needs no agreement any more. */
static struct cpl_date *date(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    bool only_counts = p->n_vain >= CPL_MOST_VAIN && cpl_context.settings.mode == CPL_MODE_PROFILE;
    return p->phase == CPL_PT2PT_ALONE || only_counts ? NULL : &p->date;
}

static bool sees_all(const struct cpl_comm_state *state)
{
    const struct cpl_pt2pt *p = state->pt2pt;
    return (p->line->embed.on && !p->line->kept) ||
           (p->started && p->phase != CPL_PT2PT_ALONE && p->phase != CPL_PT2PT_RESTING);
}

static const struct cpl_item item = {.first = 4,
                                     .n_least = CPL_PT2PT_N_LEAST,
                                     .n_sums = CPL_PT2PT_N_SUMS,
                                     .date = date,
                                     .sees_all = sees_all,
                                     .vote = cpl_pt2pt_vote,
                                     .settle = cpl_pt2pt_settle};

const struct cpl_hooks cpl_pt2pt_hooks = {.meet = meet,
                                          .begin = begin,
                                          .end = end,
                                          .leave = leave,
                                          .flush = cpl_pt2pt_flush,
                                          .serve = serve,
                                          .piggyback = cpl_pt2pt_piggyback,
                                          .alike = alike,
                                          .part_need = cpl_pt2pt_part_need,
                                          .item = &item};
