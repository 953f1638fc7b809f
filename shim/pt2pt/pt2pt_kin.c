/* Communicators of all ranks (pt2pt_kin.h).
 *
 * At dates of their own the ranks vote which communicator joins next. With it goes a hash of those
 * that have: a rank may have freed one already, and then nobody meets for any. */
#include "shim/pt2pt/pt2pt_kin.h"

#include "shim/meet/alike.h"
#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/state/comm_state.h"
#include "shim/state/hooks.h"

#define FEW 4 /* collectives of its own: with as many a communicator is learned of by itself */

#define NONE INT64_MAX

void cpl_kin_made(MPI_Comm comm)
{
    int size = 0;
    if (comm == MPI_COMM_NULL || cpl_context.met_others || cpl_context.service.shared)
        return;
    PMPI_Comm_size(comm, &size);
    struct cpl_comm_state *state = size == cpl_context.size ? cpl_comm_state_get(comm) : NULL;
    if (!state || state->inter)
        return;
    if (cpl_context.comms.n_kin == 0) {
        cpl_meeting_end_grants(); /* the ranks meet from now on where none of them looked */
        cpl_context.comms.n_kin = 1;
    }
    state->meeting.kin.number = ++cpl_context.comms.n_kin;
}

/* The one with the next higher number; NULL: there is none. */
static struct cpl_comm_state *next_after(int64_t number)
{
    struct cpl_comm_state *next = NULL;
    for (struct cpl_comm_state *s = cpl_context.comms.first; s; s = s->next)
        if (s->meeting.kin.number > number &&
            (!next || s->meeting.kin.number < next->meeting.kin.number))
            next = s;
    return next;
}

/* Whether messages on it are learned of, without collectives. Local. */
static bool wants_to_join(const struct cpl_comm_state *state)
{
    return state->meeting.kin.number > 0 && !state->meeting.kin.joined && state->meeting.n < FEW &&
           state->pt2pt->started && state->pt2pt->phase == CPL_PT2PT_LEARNING;
}

void cpl_kin_note_collective(const struct cpl_comm_state *state)
{
    int64_t left = state->meeting.kin.number > 0 ? cpl_context.comms.n_joined : 0;
    for (struct cpl_comm_state *s = cpl_context.comms.first; s && left > 0; s = s->next) {
        left -= s->meeting.kin.joined;
        if (s->meeting.kin.joined && s != state)
            cpl_pt2pt_note_elsewhere(s);
    }
}

/* The words of a vote, of which the least counts. */
enum { CANDIDATE, JOINED, JOINED_NEGATED, N_WORDS };

/* One that has joined has nothing to lend. */
static struct cpl_date *date(struct cpl_comm_state *state)
{
    bool lends =
        state->meeting.kin.number > 0 && !state->meeting.kin.joined && cpl_context.comms.n_kin > 0;
    return lends ? &state->pt2pt->part.kin : NULL;
}

/* While another one learns it must see what comes between its messages. */
static bool sees_all(const struct cpl_comm_state *state)
{
    int64_t left = state->meeting.kin.number > 0 ? cpl_context.comms.n_joined : 0;
    bool any = false;
    for (const struct cpl_comm_state *s = cpl_context.comms.first; s && left > 0 && !any;
         s = s->next) {
        left -= s->meeting.kin.joined;
        any = s->meeting.kin.joined && s != state && s->pt2pt->phase != CPL_PT2PT_ALONE;
    }
    return any;
}

static void vote(struct cpl_comm_state *state, int64_t *words)
{
    struct cpl_alike joined = {CPL_HASH_START};
    words[CANDIDATE] = NONE;
    for (const struct cpl_comm_state *s = next_after(0); s; s = next_after(s->meeting.kin.number)) {
        if (s->meeting.kin.joined)
            cpl_alike_add(&joined, s->meeting.kin.number);
        else if (s != state && wants_to_join(s) && words[CANDIDATE] == NONE)
            words[CANDIDATE] = s->meeting.kin.number;
    }
    words[JOINED] = (int64_t)joined.hash;
    words[JOINED_NEGATED] = ~words[JOINED];
}

/* The others learn of n collectives that are not their own. */
static void lend(const struct cpl_comm_state *state, int64_t n)
{
    for (struct cpl_comm_state *s = next_after(0); s; s = next_after(s->meeting.kin.number))
        if (s->meeting.kin.joined && s != state)
            cpl_meeting_borrow(s, n);
}

/* How many collectives may pass before another one meets. */
static int64_t distance_to_others(const struct cpl_comm_state *state)
{
    int64_t least = CPL_NEVER;
    for (struct cpl_comm_state *s = next_after(0); s; s = next_after(s->meeting.kin.number)) {
        bool waits = s->meeting.kin.joined && s != state;
        int64_t distance = waits ? cpl_meeting_distance(s) : CPL_NEVER;
        least = distance < least ? distance : least;
    }
    return least;
}

static void join(int64_t number)
{
    struct cpl_comm_state *state = next_after(number - 1);
    if (!state || state->meeting.kin.number != number)
        return; /* this rank has freed it */
    cpl_comm_state_own(state);
    state->meeting.kin.joined = true;
    cpl_context.comms.n_joined++;
}

/* What joins counts from now on. */
static enum cpl_settled settle(struct cpl_comm_state *state, bool regular, const int64_t *words)
{
    (void)regular;
    if (words[JOINED] != ~words[JOINED_NEGATED])
        return CPL_NOT_SETTLED;
    if (state->meeting.n > state->meeting.kin.seen)
        lend(state, state->meeting.n - state->meeting.kin.seen);
    state->meeting.kin.seen = state->meeting.n;
    if (words[CANDIDATE] < NONE) {
        join(words[CANDIDATE]);
        return CPL_SETTLED_MORE;
    }
    int64_t distance = distance_to_others(state);
    if (distance < CPL_NEVER)
        cpl_date_hasten(&state->pt2pt->part.kin, state->meeting.n, distance + 1);
    return CPL_SETTLED;
}

static const struct cpl_item item = {.name = "communicators of all ranks",
                                     .first = FEW,
                                     .n_least = N_WORDS,
                                     .date = date,
                                     .sees_all = sees_all,
                                     .vote = vote,
                                     .settle = settle};

const struct cpl_hooks cpl_kin_hooks = {.name = "communicators of all ranks", .item = &item};
