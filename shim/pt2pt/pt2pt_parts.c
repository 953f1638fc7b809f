/* Communicators of fewer ranks (pt2pt_parts.h). */
#include "shim/pt2pt/pt2pt_parts.h"

#include "shim/base/log.h"
#include "shim/meet/agree.h"
#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/state/comm_state.h"
#include "shim/state/hooks.h"
#include "shim/wait/collective.h"
#include "shim/wait/progress.h"

#define LONGEST_PAUSE 64 /* between two meetings while all ranks poll */

static bool is_part(const struct cpl_comm_state *state)
{
    return state->size < cpl_context.size;
}

bool cpl_parts_are_served(const struct cpl_comm_state *state)
{
    return !is_part(state) || cpl_context.busy.parts;
}

/* The words of a vote, of which the least counts. */
enum { ABLE, RIPE, MANAGED, N_WORDS };

static struct cpl_date *date(struct cpl_comm_state *state)
{
    return is_part(state) ? NULL : &state->pt2pt->part.date;
}

static int64_t longest(const struct cpl_comm_state *state)
{
    (void)state;
    return cpl_context.busy.parts && !cpl_context.service.shared ? LONGEST_PAUSE : CPL_NEVER;
}

static void vote(struct cpl_comm_state *state, int64_t *words)
{
    (void)state;
    words[ABLE] = cpl_context.n_epochs == 0 && !cpl_context.met_others;
    for (const struct cpl_comm_state *s = cpl_context.comms.first; s; s = s->next)
        CPL_EACH_HOOKS(hooks)
        {
            enum cpl_part_need need =
                is_part(s) && hooks->part_need ? hooks->part_need(s) : CPL_PART_NOTHING;
            if (need == CPL_PART_WAITS)
                words[RIPE] = -1;
            if (need == CPL_PART_SERVED)
                words[MANAGED] = -1;
        }
}

static void set(bool parts)
{
    cpl_context.busy.parts = parts;
    cpl_context.busy.n_managed += parts ? 1 : -1;
    cpl_comm_state_forget_recent();
    cpl_progress_update();
}

/* Their ranks agree at their next collective. Where several threads call, their ranks may be at
 * different ones, and agree at their own next date. */
static void hasten(void)
{
    if (cpl_context.service.shared)
        return;
    cpl_meeting_end_grants();
    for (struct cpl_comm_state *s = cpl_context.comms.first; s; s = s->next)
        CPL_EACH_HOOKS(hooks)
        {
            if (is_part(s) && hooks->part_need && hooks->part_need(s) == CPL_PART_WAITS)
                hooks->part_hasten(s);
        }
}

enum cpl_part_need cpl_pt2pt_part_need(const struct cpl_comm_state *state)
{
    if (state->line->managed)
        return CPL_PART_SERVED;
    bool learns = state->pt2pt->started && state->pt2pt->phase == CPL_PT2PT_LEARNING;
    bool waits =
        state->pt2pt->part.ripe && (state->pt2pt->phase == CPL_PT2PT_LEARNING || state->line->kept);
    return waits ? CPL_PART_WAITS : learns ? CPL_PART_LEARNS : CPL_PART_NOTHING;
}

void cpl_pt2pt_part_hasten(struct cpl_comm_state *state)
{
    cpl_date_hasten(&state->pt2pt->date, state->meeting.n, 1);
}

static enum cpl_settled settle(struct cpl_comm_state *state, bool regular, const int64_t *words)
{
    (void)regular;
    if (cpl_context.busy.parts && words[RIPE] == 0 && words[MANAGED] == 0)
        set(false);
    if (cpl_context.busy.parts || words[RIPE] == 0)
        return CPL_SETTLED;
    if (!words[ABLE] || !cpl_collective_of_this_world(state->comm))
        return CPL_NOT_SETTLED;
    if (!cpl_agree_service(state->private_comm))
        return CPL_SETTLED;
    set(true);
    hasten();
    cpl_date_hasten(&state->pt2pt->part.kin, state->meeting.n, 1); /* if they meet where it does */
    if (state->rank == 0)
        cpl_log(CPL_LOG_INFO, "pt2pt", "communicators of fewer ranks may be carried");
    return CPL_SETTLED;
}

static const struct cpl_item item = {.name = "communicators of fewer ranks",
                                     .first = 4,
                                     .n_least = N_WORDS,
                                     .date = date,
                                     .longest = longest,
                                     .vote = vote,
                                     .settle = settle};

const struct cpl_hooks cpl_parts_hooks = {.name = "communicators of fewer ranks", .item = &item};

void cpl_parts_end(void)
{
    if (cpl_context.busy.parts)
        set(false);
}
