/* A managed communicator's batches, forwarding and end (doc/point-to-point.md). */
#include "shim/carry/requests.h"
#include "shim/meet/agree.h"
#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/state/comm_state.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

/* The position of a destination among those of a signature, not counting the rank itself. */
static int32_t payload_of(const struct cpl_signature *s, int rank, int dest)
{
    bool self_before = dest > rank && cpl_pt2pt_place_of(s, rank) >= 0;
    return cpl_pt2pt_place_of(s, dest) - self_before;
}

static void flush_planned(struct cpl_comm_state *state, const struct cpl_signature *s, int plan)
{
    struct cpl_pt2pt *p = state->pt2pt;
    cpl_combined_begin(&p->line->combined, plan);
    for (size_t at = 0; at < p->batch.used;) {
        struct cpl_segment segment;
        memcpy(&segment, p->batch.segments + at, sizeof segment);
        cpl_combined_put(&p->line->combined, plan, payload_of(s, state->rank, segment.dest),
                         &segment, p->batch.segments + at + sizeof segment, NULL, false);
        at += cpl_segment_bytes(&segment);
    }
    cpl_combined_end(&p->line->combined, plan);
}

/* One in this many times that a signature was followed may have been in vain. */
#define FOLLOWED_PER_ABANDONED 64

void cpl_pt2pt_learn_order(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    for (int k = 0; k < p->learned.n_signatures; k++) {
        struct cpl_signature *s = &p->learned.signature[k];
        int step = s->planned ? cpl_cycle_find(&p->cycle, k) : -1;
        int plan = step >= 0 ? p->cycle.step[step].plan : CPL_NO_PLAN;
        s->waits = plan != CPL_NO_PLAN && p->plans.embeds[plan] && 2 * s->n_reduced > s->times;
        s->follows = s->planned && !s->waits;
        s->plan = plan;
        for (int j = 0; j < s->n; j++)
            s->message[j].payload = payload_of(s, state->rank, s->message[j].dest);
    }
}

static bool comes(const struct cpl_signature *s, int k, int dest, int tag)
{
    return s->message[k].dest == dest && s->message[k].tag == tag;
}

/* Unless a batch is being followed, whether the one that the cycle expects is followed, and begins
 * with this message. */
bool cpl_pt2pt_follows(struct cpl_pt2pt *p, int dest, int tag)
{
    if (p->following.signature && comes(p->following.signature, p->following.n, dest, tag))
        return true;
    cpl_pt2pt_abandon(p);
    if (p->batch.n > 0 || p->cycle.n == 0)
        return false;
    const struct cpl_step *step = &p->cycle.step[p->cycle.at];
    struct cpl_signature *s =
        step->plan != CPL_NO_PLAN ? &p->learned.signature[step->signature] : NULL;
    if (!s || !s->follows || !comes(s, 0, dest, tag))
        return false;
    p->following = (struct cpl_pt2pt_following){.signature = s, .plan = step->plan};
    cpl_context.busy.n_open_batches++;
    cpl_combined_begin(&p->line->combined, p->following.plan);
    return true;
}

/* A batch of this rank has gone by a plan. */
static void count_planned(struct cpl_pt2pt *p, int plan)
{
    p->plans.count[plan].all++;
    p->plans.count[plan].planned++;
}

int cpl_pt2pt_follow(struct cpl_pt2pt *p, const struct cpl_segment *segment,
                     const struct cpl_span *span)
{
    struct cpl_signature *s = p->following.signature;
    int result = MPI_SUCCESS;
    if (segment->dest != p->line->combined.rank)
        result = cpl_combined_put(&p->line->combined, p->following.plan,
                                  s->message[p->following.n].payload, segment, NULL, span,
                                  s->n == s->n_dests);
    if (result != MPI_SUCCESS)
        cpl_pt2pt_abandon(p);
    if (result != MPI_SUCCESS || ++p->following.n < s->n)
        return result;
    cpl_combined_end(&p->line->combined, p->following.plan);
    cpl_cycle_take(&p->cycle, p->cycle.at);
    p->following.signature = NULL;
    s->n_followed++;
    count_planned(p, p->following.plan);
    cpl_context.busy.n_open_batches--;
    return result;
}

void cpl_pt2pt_abandon(struct cpl_pt2pt *p)
{
    struct cpl_signature *s = p->following.signature;
    if (!s)
        return;
    cpl_combined_abandon(&p->line->combined, p->following.plan);
    if (++s->n_abandoned * FOLLOWED_PER_ABANDONED > s->n_followed)
        s->follows = false;
    p->following.signature = NULL;
    cpl_context.busy.n_open_batches--;
}

/* The plan for a batch of a signature; moves on past its step. */
static int take_plan(struct cpl_pt2pt *p, const struct cpl_signature *s)
{
    int step = s && s->planned ? cpl_cycle_find(&p->cycle, (int)(s - p->learned.signature)) : -1;
    if (step < 0)
        return CPL_NO_PLAN;
    cpl_cycle_take(&p->cycle, step);
    return p->cycle.step[step].plan;
}

static void batch_has_left(struct cpl_pt2pt *p)
{
    p->batch.n = 0;
    p->batch.used = 0;
    cpl_context.busy.n_open_batches--;
}

void cpl_pt2pt_flush(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    if (p->phase != CPL_PT2PT_MANAGED)
        return;
    cpl_pt2pt_abandon(p);
    if (p->batch.n == 0)
        return;
    struct cpl_signature *s = cpl_pt2pt_find_signature(p, p->batch.hash, p->batch.n);
    int plan = take_plan(p, s);
    if (plan != CPL_NO_PLAN) {
        flush_planned(state, s, plan);
        count_planned(p, plan);
    } else {
        cpl_combined_send(&p->line->combined, p->batch.segments, p->batch.used);
        if (s && s->plan != CPL_NO_PLAN)
            p->plans.count[s->plan].all++;
    }
    batch_has_left(p);
}

/* Piggybacks the batch on a reduction; on a nonblocking one only if it waits for
 * a reduction. While the communicator is learning, MPI has sent the batch already. */
void cpl_pt2pt_piggyback(struct cpl_comm_state *state, bool blocking)
{
    struct cpl_pt2pt *p = state->pt2pt;
    if (p->phase != CPL_PT2PT_MANAGED || p->batch.n == 0)
        return;
    const struct cpl_signature *s = cpl_pt2pt_find_signature(p, p->batch.hash, p->batch.n);
    if (!blocking && !(s && s->waits))
        return;
    for (size_t at = 0; at < p->batch.used;) {
        struct cpl_segment head;
        memcpy(&head, p->batch.segments + at, sizeof head);
        cpl_embed_take(p->line, p->batch.segments + at);
        at += cpl_segment_bytes(&head);
        p->line->embed.n_segments++;
    }
    int plan = take_plan(p, s);
    if (plan != CPL_NO_PLAN)
        count_planned(p, plan);
    batch_has_left(p);
}

void cpl_pt2pt_unmanage(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    cpl_profile_report_plans(state);
    p->phase = CPL_PT2PT_ALONE;
    cpl_match_free(&p->line->match);
    cpl_line_close(state);
}

bool cpl_pt2pt_fits(struct cpl_comm_state *state)
{
    if (!cpl_agree_all(state->private_comm, cpl_pt2pt_start(state)))
        return false;
    enum { N_SUMS = 4 };
    const struct cpl_balance *balance = &state->balance;
    uint64_t mine[N_SUMS] = {balance->n, balance->hash, balance->hash_again,
                             (uint64_t)state->pt2pt->learned.n_wild};
    uint64_t all[N_SUMS] = {1};
    cpl_collective_Allreduce(mine, all, N_SUMS, MPI_UINT64_T, MPI_SUM, state->private_comm);
    return (all[0] | all[1] | all[2] | all[3]) == 0;
}

bool cpl_pt2pt_drain(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = state->pt2pt;
    cpl_pt2pt_abandon(p);
    cpl_line_drain(state);
    bool busy = !cpl_match_is_idle(&p->line->match) || p->batch.n > 0 || p->following.signature ||
                cpl_buffered_any(state->private_comm);
    state->balance = (struct cpl_balance){.n = 0};
    return cpl_agree_all(state->private_comm, !busy);
}
