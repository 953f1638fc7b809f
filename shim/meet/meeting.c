/* Meetings (meeting.h). */
#include "shim/meet/meeting.h"

#include "shim/base/aside.h"
#include "shim/base/log.h"
#include "shim/meet/agree.h"
#include "shim/state/comm_state.h"
#include "shim/state/hooks.h"
#include "shim/wait/collective.h"

#include <string.h>

#define MADE_EARLY  8 /* of one communicator, whose first dates are not later */
#define MOST_LATE   5
#define EARLY       4
#define NOT_INLINED __attribute__((noinline))

/* A word of a vote, as it travels. */
struct vote {
    int64_t value;
    int64_t is_summed; /* else the least one counts */
};

/* An item that is due. */
struct due {
    const struct cpl_item *item;
    struct cpl_date *date;
    bool regular;
};

/* Words before those of the items: the hash, and its complement, which are what they were if all
 * ranks have the same; how long the program has run, summed up. */
enum { HASH, HASH_NEGATED, NS_ELAPSED, N_COMMON };
enum { MOST_VOTES = N_COMMON + CPL_MOST_WORDS };

/* MPI's callback. */
static void put_together(void *in, void *inout, int *n, MPI_Datatype *type)
{
    const struct vote *one = in;
    struct vote *all = inout;
    (void)type;
    for (int k = 0; k < *n; k++) {
        if (one[k].is_summed)
            all[k].value += one[k].value;
        else if (one[k].value < all[k].value)
            all[k].value = one[k].value;
    }
}

static int n_words(const struct cpl_item *item)
{
    return item->n_least + item->n_sums;
}

bool cpl_meeting_start(void)
{
    struct cpl_comms *comms = &cpl_context.comms;
    int n = 0, words = 0;
    comms->vote = MPI_DATATYPE_NULL;
    comms->votes = MPI_OP_NULL;
    CPL_EACH_HOOKS(hooks)
    {
        n += hooks->item != NULL;
        words += hooks->item ? n_words(hooks->item) : 0;
    }
    return n <= CPL_MOST_ITEMS && words <= CPL_MOST_WORDS &&
           PMPI_Type_contiguous(2, MPI_INT64_T, &comms->vote) == MPI_SUCCESS &&
           PMPI_Type_commit(&comms->vote) == MPI_SUCCESS &&
           PMPI_Op_create(put_together, 1, &comms->votes) == MPI_SUCCESS;
}

void cpl_meeting_stop(void)
{
    struct cpl_comms *comms = &cpl_context.comms;
    if (comms->votes != MPI_OP_NULL)
        PMPI_Op_free(&comms->votes);
    if (comms->vote != MPI_DATATYPE_NULL)
        PMPI_Type_free(&comms->vote);
}

/* What this rank takes to be alike on all of them. */
static int64_t hash_of(struct cpl_comm_state *state)
{
    const struct cpl_busy *busy = &cpl_context.busy;
    struct cpl_alike alike = {CPL_HASH_START};
    if (!cpl_context.service.shared) { /* else a thread may have freed one */
        cpl_alike_add(&alike, busy->n_managed);
        cpl_alike_add(&alike, busy->n_served);
    }
    cpl_alike_add(&alike, state->meeting.n);
    CPL_EACH_HOOKS(hooks)
    {
        const struct cpl_date *date = hooks->item ? hooks->item->date(state) : NULL;
        if (hooks->alike)
            hooks->alike(state, &alike);
        if (!date)
            continue;
        cpl_alike_add(&alike, date->next);
        cpl_alike_add(&alike, date->regular);
        cpl_alike_add(&alike, date->n_retries);
    }
    return (int64_t)alike.hash;
}

/* The items that are due at the collective at hand; their next dates are set. */
static int find_due(struct cpl_comm_state *state, struct due *due)
{
    int n = 0;
    CPL_EACH_HOOKS(hooks)
    {
        const struct cpl_item *item = hooks->item;
        if (!item || state->meeting.n < item->first || !item->date(state))
            continue;
        cpl_comm_state_own(state);
        struct cpl_date *date = item->date(state);
        if (!cpl_date_has_come(date, cpl_meeting_first(state, item->first), state->meeting.n))
            continue;
        int64_t longest = item->longest ? item->longest(state) : CPL_NEVER;
        due[n++] = (struct due){item, date, cpl_date_keep(date, state->meeting.n, longest)};
    }
    return n;
}

/* The votes of all ranks about n items, one item's words after another's, after the common ones.
 * Not inlined, so that what is settled has the stack for itself. Collective. */
static NOT_INLINED bool put_to_vote(struct cpl_comm_state *state, const struct due *due, int n,
                                    int64_t *words)
{
    struct vote mine[MOST_VOTES], all[MOST_VOTES];
    int n_votes = N_COMMON;
    memset(words, 0, MOST_VOTES * sizeof *words);
    words[HASH] = hash_of(state);
    words[HASH_NEGATED] = ~words[HASH];
    words[NS_ELAPSED] = cpl_agree_ns(PMPI_Wtime() - cpl_context.account.start);
    for (int w = 0; w < N_COMMON; w++)
        mine[w].is_summed = w == NS_ELAPSED;
    for (int k = 0; k < n; k++) {
        const struct cpl_item *item = due[k].item;
        item->vote(state, words + n_votes);
        for (int w = 0; w < n_words(item); w++)
            mine[n_votes + w].is_summed = w >= item->n_least;
        n_votes += n_words(item);
    }
    for (int w = 0; w < n_votes; w++)
        mine[w].value = words[w];
    bool done = cpl_collective_settle(mine, all, n_votes, cpl_context.comms.vote,
                                      cpl_context.comms.votes, state->private_comm) == MPI_SUCCESS;
    for (int w = 0; w < n_votes && done; w++)
        words[w] = all[w].value;
    return done;
}

/* Acts on the votes about n items. Returns how many of them the ranks are to vote about again; they
 * come first then. Collective. */
static int settle(struct cpl_comm_state *state, struct due *due, int n, const int64_t *words)
{
    int n_more = 0;
    for (int k = 0; k < n; k++) {
        const struct cpl_item *item = due[k].item;
        enum cpl_settled settled = item->settle(state, due[k].regular, words);
        words += n_words(item);
        if (settled == CPL_SETTLED_MORE)
            due[n_more++] = (struct due){item, due[k].date, false};
        else if (settled == CPL_NOT_SETTLED)
            cpl_date_retry(due[k].date, state->meeting.n);
    }
    return n_more;
}

/* Nobody knows yet whether the program runs long, and meeting has its price: the ranks meet about
 * everything at once, after EARLY times as many collectives. The same on all ranks. */
static void meet_rarely(struct cpl_comm_state *state)
{
    const int64_t n = state->meeting.n;
    int64_t next = EARLY * n;
    CPL_EACH_HOOKS(hooks)
    {
        const struct cpl_date *date = hooks->item ? hooks->item->date(state) : NULL;
        if (date && date->next > next && date->next <= next + n)
            next = date->next;
    }
    CPL_EACH_HOOKS(hooks)
    {
        struct cpl_date *date = hooks->item ? hooks->item->date(state) : NULL;
        if (date && date->next > 0 && date->n_retries == 0 && date->next < next)
            cpl_date_put_off(date, next, 0);
    }
}

/* Votes and settles, over and over while there is more. Collective. */
static void meet(struct cpl_comm_state *state, struct due *due, int n)
{
    CPL_ASIDE;
    const struct cpl_busy *busy = &cpl_context.busy;
    int64_t words[MOST_VOTES], ns_elapsed = INT64_MAX;
    struct cpl_expense expense = {.at = 0};
    while (n > 0 && put_to_vote(state, due, n, words)) {
        if (expense.at <= 0) /* all have come */
            expense = cpl_account_begin(&cpl_context.account, PMPI_Wtime());
        if (words[HASH] != ~words[HASH_NEGATED] && state->rank == 0)
            cpl_log(CPL_LOG_ERROR, "meeting",
                    "what ranks know of a communicator differs: a fault of the library");
        ns_elapsed = words[NS_ELAPSED];
        n = settle(state, due, n, words + N_COMMON);
    }
    if (cpl_context.settings.mode == CPL_MODE_AUTO && cpl_context.settings.learn == 0 &&
        ns_elapsed < state->size * cpl_agree_ns(CPL_ACCOUNT_LEAST))
        meet_rarely(state);
    /* In a program with several threads what is managed may change while another thread enters one
     * of the communicator's collectives, so its ranks settle whether these poll from now on. */
    if (cpl_context.service.shared)
        state->meeting.polls =
            cpl_agree_all(state->private_comm, busy->n_managed + busy->n_served > 0 &&
                                                   cpl_collective_of_this_world(state->comm));
    if (expense.at > 0)
        cpl_account_end(&cpl_context.account, expense, CPL_COST_MEETINGS, PMPI_Wtime());
}

static bool counts(const struct cpl_comm_state *state)
{
    return !state->inter && state->size > 1;
}

void cpl_meeting_count(struct cpl_comm_state *state, int64_t n_collectives)
{
    struct due due[CPL_MOST_ITEMS];
    if (!counts(state))
        return;
    cpl_meeting_end_grant(state);
    state->meeting.n += n_collectives;
    int n = find_due(state, due);
    if (n == 0 || cpl_agree_own(state) == MPI_COMM_NULL)
        return;
    state->meeting.denied = !cpl_exclusive_take(state->private_comm);
    for (int k = 0; k < n && state->meeting.denied; k++) /* other threads are in calls: try again */
        cpl_date_retry(due[k].date, state->meeting.n);
    if (state->meeting.denied)
        return;
    meet(state, due, n);
    cpl_exclusive_leave();
    CPL_EACH_HOOKS(hooks)
    {
        if (hooks->item && hooks->item->resume)
            hooks->item->resume(state);
    }
}

void cpl_meeting_uncount(struct cpl_comm_state *state)
{
    if (counts(state))
        state->meeting.n--;
}

void cpl_meeting_end_grant(struct cpl_comm_state *state)
{
    state->meeting.n += cpl_pass_take(&state->meeting.pass);
}

void cpl_meeting_end_grants(void)
{
    for (struct cpl_comm_state *s = cpl_context.comms.first; s; s = s->next)
        cpl_meeting_end_grant(s);
}

void cpl_meeting_made(MPI_Comm over, MPI_Comm comm)
{
    struct cpl_comm_state *parent = cpl_comm_state_get(over), *state = cpl_comm_state_get(comm);
    int late = 0;
    if (!parent)
        return;
    for (int n = parent->meeting.n_made++ / MADE_EARLY; n > 0 && late < MOST_LATE; n /= 2)
        late++;
    if (state && cpl_context.settings.mode != CPL_MODE_FORCE)
        state->meeting.late = late > parent->meeting.late ? late : parent->meeting.late;
}

int64_t cpl_meeting_distance(struct cpl_comm_state *state)
{
    int64_t least = CPL_NEVER;
    CPL_EACH_HOOKS(hooks)
    {
        const struct cpl_item *item = hooks->item;
        const struct cpl_date *date = item ? item->date(state) : NULL;
        int64_t first = date ? cpl_meeting_first(state, item->first) : 0;
        int64_t n = date ? cpl_date_passing(date, first, state->meeting.n) : CPL_NEVER;
        least = n < least ? n : least;
    }
    return least;
}

/* Collectives that may pass before the next meeting. */
static int64_t count_passing(struct cpl_comm_state *state)
{
    CPL_EACH_HOOKS(hooks)
    {
        const struct cpl_item *item = hooks->item;
        if (item && item->sees_all && item->sees_all(state))
            return 0;
    }
    int64_t n = cpl_meeting_distance(state);
    return n < CPL_PASS_MOST ? n : CPL_PASS_MOST;
}

void cpl_meeting_grant(MPI_Comm comm)
{
    const struct cpl_recent *recent = cpl_context_recent(comm);
    struct cpl_comm_state *state = comm == recent->comm ? recent->state : NULL;
    if (!state || state->inter)
        return;
    if (cpl_context.settings.mode == CPL_MODE_PROFILE || cpl_context.exchanges.n_started > 0 ||
        cpl_context.busy.n_managed + cpl_context.busy.n_served > 0)
        return; /* they mean something to a part */
    cpl_meeting_end_grant(state);
    cpl_pass_give(&state->meeting.pass, count_passing(state));
}
