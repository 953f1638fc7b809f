/* Communicators that meet where others do (pt2pt_kin.h).
 *
 * At dates of their own the ranks of one with all ranks, the host, vote which communicator joins
 * next. A rank may have freed one already that others still have: so each rank also says for each
 * that has joined whether it is there, and where one is not, all ranks let it go before anybody
 * meets for it. */
#include "shim/pt2pt/pt2pt_kin.h"

#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/state/comm_state.h"
#include "shim/state/hooks.h"

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
#define FIRST_MADE  (CPL_MOST_KIN + 1)
#define LAST_PARENT (INT64_MAX / 1024)

/* The number of what is made as n-th (from 0) of the communicator `parent`; and that again. */
static int64_t number_of(int64_t parent, int n)
{
    return FIRST_MADE + parent * MOST_MADE + n;
}

static int64_t parent_of(int64_t number)
{
    return (number - FIRST_MADE) / MOST_MADE;
}

/* Whether this rank was never in a communicator of the number. */
static bool has_none(int64_t number)
{
    const struct cpl_kinship *kin = &cpl_context.comms.kin;
    for (; number > CPL_MOST_KIN; number = parent_of(number))
        for (int k = 0; k < kin->n_none; k++)
            if (kin->none[k] == number)
                return true;
    return kin->has_none[number];
}

static void note_none(int64_t number)
{
    struct cpl_kinship *kin = &cpl_context.comms.kin;
    if (number <= CPL_MOST_KIN)
        kin->has_none[number] = true;
    else if (kin->n_none < CPL_MOST_NONE)
        kin->none[kin->n_none++] = number;
}

/* Gives this rank's one the number. */
static void give(MPI_Comm comm, int64_t number)
{
    struct cpl_comm_state *state = comm != MPI_COMM_NULL ? cpl_comm_state_get(comm) : NULL;
    if (state && !state->inter && state->size > 1)
        state->meeting.kin.number = number;
    else
        note_none(number);
}

/* One was made of a communicator of fewer ranks. */
static void made_of_part(MPI_Comm over, MPI_Comm comm)
{
    struct cpl_comm_state *parent = cpl_comm_state_get(over);
    if (!parent)
        return;
    struct cpl_kin *kin = &parent->meeting.kin;
    if (kin->number > 0 && kin->number <= LAST_PARENT && kin->n_made < MOST_MADE)
        give(comm, number_of(kin->number, kin->n_made++));
}

void cpl_kin_made(MPI_Comm over, MPI_Comm comm)
{
    struct cpl_kinship *kin = &cpl_context.comms.kin;
    if (cpl_context.met_others || cpl_context.service.shared)
        return;
    if (!has_all_ranks(over) && !has_all_ranks(comm)) {
        if (kin->n > 0)
            made_of_part(over, comm);
        return;
    }
    if (kin->n == CPL_MOST_KIN)
        return;
    if (kin->n == 0) {
        cpl_meeting_end_grants(); /* the ranks meet from now on where none of them looked */
        kin->n = 1;
    }
    give(comm, ++kin->n);
}

/* Those of fewer ranks have nothing to lend, and neither has one that has joined. */
static bool lends(const struct cpl_comm_state *state)
{
    return state->meeting.kin.number > 0 && !state->meeting.kin.joined &&
           state->size == cpl_context.size && cpl_context.comms.kin.n > 0;
}

/* Whether something is learned of it, without collectives. Local. */
static bool wants_to_join(const struct cpl_comm_state *state)
{
    const struct cpl_kin *kin = &state->meeting.kin;
    bool learns = false;
    CPL_EACH_HOOKS(hooks)
    {
        learns |= hooks->part_need && hooks->part_need(state) == CPL_PART_LEARNS;
    }
    return learns && kin->number > 0 && !kin->joined && !kin->barred && state->meeting.n < FEW;
}

/* For each communicator that has joined and that this rank is in: `s` is its state. */
#define EACH_JOINED(s)                                                                             \
    for (struct cpl_comm_state *const *s##_at = cpl_context.comms.kin.state, *s;                   \
         s##_at < cpl_context.comms.kin.state + CPL_MOST_JOINED && (s = *s##_at, true); s##_at++)  \
        if (s)

void cpl_kin_note_collective(const struct cpl_comm_state *state)
{
    if (state->size < cpl_context.size || state->meeting.kin.number == 0)
        return;
    EACH_JOINED(s)
    {
        if (s != state)
            cpl_pt2pt_note_elsewhere(s);
    }
}

/* The words of a vote, of which the least counts: the number of who wants to join, how many
 * collectives may pass before another one meets, and for each that has joined whether this rank can
 * meet for it. */
enum { CANDIDATE, DISTANCE, HERE, N_WORDS = HERE + CPL_MOST_JOINED };

static struct cpl_date *date(struct cpl_comm_state *state)
{
    return lends(state) ? &state->pt2pt->part.kin : NULL;
}

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

static int64_t find_candidate(const struct cpl_comm_state *host)
{
    int64_t found = NONE;
    for (const struct cpl_comm_state *s = cpl_context.comms.first; s; s = s->next)
        if (s != host && s->meeting.kin.number < found && wants_to_join(s))
            found = s->meeting.kin.number;
    return found;
}

/* The first place that is free; CPL_MOST_JOINED: none is. */
static int find_place(void)
{
    int place = 0;
    while (place < CPL_MOST_JOINED && cpl_context.comms.kin.joined[place] > 0)
        place++;
    return place;
}

static void vote(struct cpl_comm_state *state, int64_t *words)
{
    const struct cpl_kinship *kin = &cpl_context.comms.kin;
    words[CANDIDATE] = find_place() < CPL_MOST_JOINED ? find_candidate(state) : NONE;
    words[DISTANCE] = CPL_NEVER;
    EACH_JOINED(s)
    {
        int64_t distance = cpl_meeting_distance(s);
        words[DISTANCE] = distance < words[DISTANCE] ? distance : words[DISTANCE];
    }
    for (int k = 0; k < CPL_MOST_JOINED; k++)
        words[HERE + k] = kin->state[k] || has_none(kin->joined[k]);
}

static void join(int64_t number)
{
    struct cpl_kinship *kin = &cpl_context.comms.kin;
    int place = find_place();
    kin->joined[place] = number;
    struct cpl_comm_state *s = cpl_context.comms.first;
    while (s && s->meeting.kin.number != number)
        s = s->next;
    kin->state[place] = s;
    if (!s)
        return; /* this rank is in none, or has freed it */
    cpl_comm_state_own(s);
    s->meeting.kin.joined = true;
}

/* Some rank has freed it, so nobody meets for it here any more. */
static void let_go(int place)
{
    struct cpl_kinship *kin = &cpl_context.comms.kin;
    if (kin->state[place]) {
        kin->state[place]->meeting.kin.joined = false;
        kin->state[place]->meeting.kin.barred = true;
    }
    kin->state[place] = NULL;
    kin->joined[place] = 0;
}

/* What has joined counts from now on. */
static enum cpl_settled settle(struct cpl_comm_state *state, bool regular, const int64_t *words)
{
    struct cpl_kinship *kin = &cpl_context.comms.kin;
    int64_t n = state->meeting.n - state->meeting.kin.seen;
    bool any = false;
    (void)regular;
    for (int k = 0; k < CPL_MOST_JOINED; k++) {
        if (kin->joined[k] > 0 && !words[HERE + k])
            let_go(k);
        any |= kin->joined[k] > 0;
    }
    state->meeting.kin.seen = state->meeting.n;
    EACH_JOINED(s)
    {
        if (n > 0)
            cpl_meeting_borrow(s, n);
    }
    if (words[CANDIDATE] < NONE)
        join(words[CANDIDATE]);
    if (words[CANDIDATE] < NONE || (any && n > 0))
        return CPL_SETTLED_MORE; /* now the others' next dates are known */
    if (words[DISTANCE] < CPL_NEVER)
        cpl_date_hasten(&state->pt2pt->part.kin, state->meeting.n, words[DISTANCE] + 1);
    return CPL_SETTLED;
}

static const struct cpl_item item = {.name = "communicators without collectives",
                                     .first = FEW,
                                     .n_least = N_WORDS,
                                     .date = date,
                                     .sees_all = sees_all,
                                     .vote = vote,
                                     .settle = settle};

const struct cpl_hooks cpl_kin_hooks = {.name = "communicators without collectives", .item = &item};
