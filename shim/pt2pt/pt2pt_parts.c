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
    for (const struct cpl_comm_state *s = cpl_context.comms.first; s; s = s->next) {
        if (s->pt2pt->phase == CPL_PT2PT_LEARNING && s->pt2pt->part.ripe)
            words[RIPE] = -1;
        if (is_part(s) && s->line->linked)
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
        if (s->pt2pt->part.ripe)
            cpl_date_hasten(&s->pt2pt->date, s->meeting.n, 1);
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
    if (!cpl_agree_service(state->comm))
        return CPL_SETTLED;
    set(true);
    hasten();
    if (state->rank == 0)
        cpl_log(CPL_LOG_INFO, "pt2pt", "communicators of fewer ranks may be managed");
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
