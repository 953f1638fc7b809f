/* Communicators of fewer ranks, and those that meet where others do (pt2pt_parts.h). */
#include "shim/pt2pt/pt2pt_parts.h"

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

/* The words of a vote, of which the least counts. Behind those about parts: the number of who wants
 * to join, how many collectives may pass before another one meets, and for each that has joined
 * whether this rank can meet for it. */
enum { ABLE, RIPE, MANAGED, CANDIDATE, DISTANCE, HERE, N_WORDS = HERE + CPL_MOST_JOINED };

static void vote_for_parts(int64_t *words)
{
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
            bool waits = is_part(s) && hooks->part_need && hooks->part_need(s) == CPL_PART_WAITS;
            struct cpl_date *awaited = waits ? hooks->item->date(s) : NULL;
            if (awaited)
                cpl_date_hasten(awaited, s->meeting.n, 1);
        }
}

enum cpl_part_need cpl_pt2pt_part_need(const struct cpl_comm_state *state)
{
    if (state->line->managed)
        return CPL_PART_SERVED;
    bool learns = state->pt2pt->started && state->pt2pt->phase == CPL_PT2PT_LEARNING;
    bool waits =
        state->pt2pt->ripe && (state->pt2pt->phase == CPL_PT2PT_LEARNING || state->line->kept);
    return waits ? CPL_PART_WAITS : learns ? CPL_PART_LEARNS : CPL_PART_NOTHING;
}

static enum cpl_settled settle_parts(struct cpl_comm_state *state, const int64_t *words)
{
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
    cpl_date_hasten(&state->pt2pt->parts, state->meeting.n, 1); /* if they meet where it does */
    return CPL_SETTLED;
}

void cpl_parts_end(void)
{
    if (cpl_context.busy.parts)
        set(false);
}

/* --- communicators that meet where others do
 *
 * The ranks of one with all ranks, the host, vote which communicator joins next. A rank may have
 * freed one already that others still have: so each rank also says for each that has joined whether
 * it is there, and where one is not, all ranks let it go before anybody meets for it. */

#define FEW 4 /* collectives of its own: with as many a communicator is learned of by itself */

#define NONE INT64_MAX

static bool has_all_ranks(MPI_Comm comm)
{
    int size = 0;
    if (comm != MPI_COMM_NULL)
        PMPI_Comm_size(comm, &size);
    return size == cpl_context.size;
}

#define MOST_MADE   256 /* of one communicator of fewer ranks */
#define FIRST_MADE  (CPL_MOST_FAMILY + 1)
#define LAST_PARENT (INT64_MAX / 1024)

/* What is made as n-th (from 0) of the communicator P has the number FIRST_MADE + P * MOST_MADE +
 * n. Whether this rank was never in a communicator of a number. */
static bool has_none(int64_t number)
{
    const struct cpl_families *family = &cpl_context.comms.family;
    for (int k = 0; k < family->n_none; k++)
        if (family->none[k] == number)
            return true;
    return number > CPL_MOST_FAMILY && has_none((number - FIRST_MADE) / MOST_MADE);
}

/* Gives this rank's one the number. */
static void give(MPI_Comm comm, int64_t number)
{
    struct cpl_families *family = &cpl_context.comms.family;
    struct cpl_comm_state *state = comm != MPI_COMM_NULL ? cpl_comm_state_get(comm) : NULL;
    if (state && !state->inter && state->size > 1)
        state->meeting.family.number = number;
    else if (family->n_none < CPL_MOST_NONE)
        family->none[family->n_none++] = number;
}

/* One was made of a communicator of fewer ranks. */
static void made_of_part(MPI_Comm over, MPI_Comm comm)
{
    struct cpl_comm_state *parent = cpl_comm_state_get(over);
    if (!parent)
        return;
    struct cpl_family *family = &parent->meeting.family;
    if (family->number > 0 && family->number <= LAST_PARENT && family->n_made < MOST_MADE)
        give(comm, FIRST_MADE + family->number * MOST_MADE + family->n_made++);
}

void cpl_family_made(MPI_Comm over, MPI_Comm comm)
{
    struct cpl_families *family = &cpl_context.comms.family;
    if (cpl_context.met_others || cpl_context.service.shared)
        return;
    if (!has_all_ranks(over) && !has_all_ranks(comm)) {
        if (family->n > 0)
            made_of_part(over, comm);
        return;
    }
    if (family->n == CPL_MOST_FAMILY)
        return;
    if (family->n == 0) {
        cpl_meeting_end_grants(); /* the ranks meet from now on where none of them looked */
        family->n = 1;
    }
    give(comm, ++family->n);
}

/* Those of fewer ranks have nothing to lend, and neither has one that has joined. */
static bool lends(const struct cpl_comm_state *state)
{
    return state->meeting.family.number > 0 && !state->meeting.family.joined &&
           state->size == cpl_context.size && cpl_context.comms.family.n > 0;
}

/* Whether something is learned of it, without collectives. Local. */
static bool wants_to_join(const struct cpl_comm_state *state)
{
    const struct cpl_family *family = &state->meeting.family;
    bool learns = false;
    CPL_EACH_HOOKS(hooks)
    {
        learns |= hooks->part_need && hooks->part_need(state) == CPL_PART_LEARNS;
    }
    return learns && family->number > 0 && !family->joined && !family->barred &&
           state->meeting.n < FEW;
}

/* For each communicator that has joined and that this rank is in: `s` is its state. */
#define EACH_JOINED(s)                                                                             \
    for (struct cpl_comm_state *const *s##_at = cpl_context.comms.family.state, *s;                \
         s##_at < cpl_context.comms.family.state + CPL_MOST_JOINED && (s = *s##_at, true);         \
         s##_at++)                                                                                 \
        if (s)

/* While another one learns it must see what comes between its messages. */
static bool sees_all(const struct cpl_comm_state *state)
{
    bool any = false;
    if (!lends(state))
        return false;
    EACH_JOINED(s)
    {
        any |= s->pt2pt->phase != CPL_PT2PT_ALONE && s->pt2pt->phase != CPL_PT2PT_RESTING;
    }
    return any;
}

/* The first place that is free; CPL_MOST_JOINED: none is. */
static int find_place(void)
{
    int place = 0;
    while (place < CPL_MOST_JOINED && cpl_context.comms.family.joined[place] > 0)
        place++;
    return place;
}

static void vote_kin(struct cpl_comm_state *state, int64_t *words)
{
    const struct cpl_families *family = &cpl_context.comms.family;
    const bool has_place = find_place() < CPL_MOST_JOINED;
    words[CANDIDATE] = NONE;
    words[DISTANCE] = CPL_NEVER;
    for (const struct cpl_comm_state *s = cpl_context.comms.first; s && has_place; s = s->next)
        if (s != state && s->meeting.family.number < words[CANDIDATE] && wants_to_join(s))
            words[CANDIDATE] = s->meeting.family.number;
    EACH_JOINED(s)
    {
        int64_t distance = cpl_meeting_distance(s);
        words[DISTANCE] = distance < words[DISTANCE] ? distance : words[DISTANCE];
    }
    for (int k = 0; k < CPL_MOST_JOINED; k++)
        words[HERE + k] = family->state[k] || has_none(family->joined[k]);
}

static void join(int64_t number)
{
    struct cpl_families *family = &cpl_context.comms.family;
    int place = find_place();
    family->joined[place] = number;
    struct cpl_comm_state *s = cpl_context.comms.first;
    while (s && s->meeting.family.number != number)
        s = s->next;
    family->state[place] = s;
    if (!s)
        return; /* this rank is in none, or has freed it */
    cpl_comm_state_own(s);
    s->meeting.family.joined = true;
}

/* Some rank has freed it, so nobody meets for it here any more. */
static void let_go(int place)
{
    struct cpl_families *family = &cpl_context.comms.family;
    if (family->state[place]) {
        family->state[place]->meeting.family.joined = false;
        family->state[place]->meeting.family.barred = true;
    }
    family->state[place] = NULL;
    family->joined[place] = 0;
}

/* What has joined counts from now on. Returns whether the ranks are to vote again. */
static bool settle_kin(struct cpl_comm_state *state, const int64_t *words)
{
    struct cpl_families *family = &cpl_context.comms.family;
    int64_t n = state->meeting.n - state->meeting.family.seen;
    bool any = false;
    for (int k = 0; k < CPL_MOST_JOINED; k++) {
        if (family->joined[k] > 0 && !words[HERE + k])
            let_go(k);
        any |= family->joined[k] > 0;
    }
    state->meeting.family.seen = state->meeting.n;
    EACH_JOINED(s)
    {
        if (n > 0)
            cpl_meeting_count(s, n);
    }
    if (words[CANDIDATE] < NONE)
        join(words[CANDIDATE]);
    if (words[CANDIDATE] < NONE || (any && n > 0))
        return true; /* now the others' next dates are known */
    if (words[DISTANCE] < CPL_NEVER)
        cpl_date_hasten(&state->pt2pt->parts, state->meeting.n, words[DISTANCE] + 1);
    return false;
}

/* --- the item of both */

static struct cpl_date *date(struct cpl_comm_state *state)
{
    return is_part(state) ? NULL : &state->pt2pt->parts;
}

static int64_t longest(const struct cpl_comm_state *state)
{
    (void)state;
    return cpl_context.busy.parts && !cpl_context.service.shared ? LONGEST_PAUSE : CPL_NEVER;
}

static void vote(struct cpl_comm_state *state, int64_t *words)
{
    vote_for_parts(words);
    if (lends(state))
        vote_kin(state, words);
}

static enum cpl_settled settle(struct cpl_comm_state *state, bool regular, const int64_t *words)
{
    (void)regular;
    enum cpl_settled parts = settle_parts(state, words);
    bool more = lends(state) && settle_kin(state, words);
    return more ? CPL_SETTLED_MORE : parts;
}

static const struct cpl_item item = {.first = FEW,
                                     .n_least = N_WORDS,
                                     .date = date,
                                     .longest = longest,
                                     .sees_all = sees_all,
                                     .vote = vote,
                                     .settle = settle};

const struct cpl_hooks cpl_parts_hooks = {.item = &item};
