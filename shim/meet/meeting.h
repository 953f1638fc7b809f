/* A meeting: a blocking collective of a communicator at which its ranks also settle what the parts
 * of the library have to settle among them.
 *
 * All ranks count the communicator's blocking collectives alike. A part registers an item of the
 * agenda (state/hooks.h). At a meeting the votes of all items that are due go into one reduction,
 * with a hash of what each rank takes to be alike on all of them: where it differs, the first rank
 * logs an error.
 *
 * In a program with several threads a meeting needs the exclusive section (agree.h); without it
 * the items are due again at the next collectives. There an item must not change another
 * communicator's dates, and may hang its own on nothing that another communicator's meeting
 * changes: the ranks may be at different collectives of it. */
#ifndef CARPOOL_MEETING_H
#define CARPOOL_MEETING_H

#include "planner/base/hash.h"
#include "shim/state/comm_state.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* When the ranks meet about something, counted in calls that all of them make alike: at the first
 * date, and each time when the calls are twice as many, or after the longest pause. Between two of
 * these regular dates they may meet early. Alike on all ranks. */
#define CPL_NEVER        INT64_MAX
#define CPL_MOST_RETRIES 3

struct cpl_date {
    int64_t next;      /* number of the call at which they meet next; 0: nothing has been counted */
    int64_t regular;   /* number of the next call that is regular */
    int32_t n_retries; /* early dates since the last regular one, made because it came to nothing */
};

/* Whether the n-th call is one at which they meet; `first` is the first regular date. */
static inline bool cpl_date_has_come(struct cpl_date *date, int64_t first, int64_t n)
{
    if (date->next == 0)
        date->next = date->regular = first;
    return n >= date->next;
}

/* They meet at the n-th call, whose date has come: sets the next one. Returns whether this one is
 * regular. */
static inline bool cpl_date_keep(struct cpl_date *date, int64_t n, int64_t longest)
{
    bool regular = n >= date->regular;
    while (date->regular <= n)
        date->regular += date->regular < longest ? date->regular : longest;
    if (regular)
        date->n_retries = 0;
    date->next = date->regular;
    return regular;
}

/* They meet after so many calls from the n-th one on, if not before. */
static inline void cpl_date_hasten(struct cpl_date *date, int64_t n, int64_t calls)
{
    if (date->next - n > calls)
        date->next = n + calls;
}

/* They meet after so many calls from the n-th one on, and not before. */
static inline void cpl_date_put_off(struct cpl_date *date, int64_t n, int64_t calls)
{
    date->next = date->regular = n + calls;
}

/* The meeting at the n-th call came to nothing, perhaps because something was under way: they try
 * again at the next one, unless they have so often since the last regular date. */
static inline void cpl_date_retry(struct cpl_date *date, int64_t n)
{
    if (date->n_retries >= CPL_MOST_RETRIES)
        return;
    date->n_retries++;
    date->next = n + 1;
}

/* Calls after the n-th one that pass before they meet, at `first` when there is no date yet. */
static inline int64_t cpl_date_passing(const struct cpl_date *date, int64_t first, int64_t n)
{
    int64_t next = date->next > 0 ? date->next : first;
    return next > n ? next - n - 1 : 0;
}

/* What must be alike on all ranks, as a hash: each part adds its words by its hook. */
struct cpl_alike {
    uint64_t hash;
};

static inline void cpl_alike_add(struct cpl_alike *alike, int64_t word)
{
    alike->hash = cpl_hash_word(alike->hash, (uint64_t)word);
}

#define CPL_MOST_ITEMS 4  /* registered by all parts together */
#define CPL_MOST_WORDS 60 /* of the votes of all items together */

/* What became of an item at a meeting. */
enum cpl_settled {
    CPL_SETTLED,
    CPL_SETTLED_MORE, /* there may be more to settle: the ranks vote about it again, at once */
    CPL_NOT_SETTLED /* something is not there yet: they try again at one of the next collectives */
};

struct cpl_item {
    int64_t first; /* the first regular date: number of a blocking collective */
    int n_least;   /* words of a vote of which the least one of all ranks counts */
    int n_sums;    /* words after these that are summed up over the ranks */

    /* The item's date on a communicator of two ranks or more. NULL: the part has nothing to settle
     * there, or not any more. Alike on all ranks. */
    struct cpl_date *(*date)(struct cpl_comm_state *state);

    /* The longest pause between two regular dates; NULL: there is none. Alike on all ranks. */
    int64_t (*longest)(const struct cpl_comm_state *state);

    /* Whether the part must see every blocking collective, so that none passes without a look
     * (below); NULL: it need not. Local. */
    bool (*sees_all)(const struct cpl_comm_state *state);

    /* Fills in this rank's vote, zeros before. Local. */
    void (*vote)(struct cpl_comm_state *state, int64_t *words);

    /* Acts on the votes of all ranks. `regular`: this is the first round at a regular date.
     * Collective over state->comm; the same result on all ranks. */
    enum cpl_settled (*settle)(struct cpl_comm_state *state, bool regular, const int64_t *words);

    /* The meeting is over: who measures the program's time begins anew. NULL: nothing. Local. */
    void (*resume)(struct cpl_comm_state *state);
};

/* The datatype and the operation of votes, for the process. Returns false when MPI has none to
 * give, or the items of all parts do not fit into one vote. Local. */
bool cpl_meeting_start(void);
void cpl_meeting_stop(void);

/* A blocking collective of the communicator is entered and is not granted; or all ranks come
 * together at a collective of another one, which counts as n of this one's own. Counts, and meets
 * if it is time. Collective. */
void cpl_meeting_count(struct cpl_comm_state *state, int64_t n);

/* A communicator was made in a call of all ranks of `over`. The more were made of it before, the
 * later are its first dates, but in mode force: most of many are used for a few calls each. */
void cpl_meeting_made(MPI_Comm over, MPI_Comm comm);

/* The call at which the ranks first settle something, where that is usually the one of `first`. */
static inline int64_t cpl_meeting_first(const struct cpl_comm_state *state, int64_t first)
{
    return first << state->meeting.late;
}

/* Collectives of the communicator that come before its next meeting; CPL_NEVER: there is none.
 * Alike on all ranks. */
int64_t cpl_meeting_distance(struct cpl_comm_state *state);

/* The collective counted last is none: MPI has refused it on this rank. Local. */
void cpl_meeting_uncount(struct cpl_comm_state *state);

/* Ends a communicator's grant of collectives that pass without a look (below): those that have
 * passed are counted. Local. */
void cpl_meeting_end_grant(struct cpl_comm_state *state);

/* The same for all communicators: their collectives matter from now on. Local. */
void cpl_meeting_end_grants(void);

/* Grants as many collectives as come before the next meeting, if no part must see them. comm may be
 * any handle. Local. */
void cpl_meeting_grant(MPI_Comm comm);

/* Calls that pass without a look: those of an exchange that MPI carries, and collectives until the
 * next meeting, are granted in advance, and a granted call only counts down. Where many ranks share
 * a core, the cost of a call is the memory that it looks at: here two cache lines of the
 * communicator's state and one of cpl_context.
 *
 * Other counters are brought up to date when the grant ends, and only then looked at: before the
 * next call at which all ranks do something together. So each rank grants by itself, and may lose
 * its grant at any time. Thread rule: one thread. */

/* The state of a communicator when calls on it may pass; else NULL. Local. */
static inline struct cpl_comm_state *cpl_pass_state(MPI_Comm comm)
{
    const struct cpl_recent *recent = cpl_context_recent(comm);
    const struct cpl_context *c = &cpl_context;
    if (c->service.on || /* the helper thread may be in MPI: what passes is not bracketed */
        c->busy.n_open_batches > 0 || comm != recent->comm)
        return NULL;
    /* one that passes has MPI's form, on all ranks or on none */
    return recent->state && recent->state->meeting.polls ? NULL : recent->state;
}

/* Grants: take ends one and returns how many calls have passed; give grants anew. */
static inline int64_t cpl_pass_take(struct cpl_pass *pass)
{
    int64_t n = pass->granted - pass->remaining;
    pass->granted = pass->remaining = 0;
    return n;
}

static inline void cpl_pass_give(struct cpl_pass *pass, int64_t n)
{
    pass->granted = pass->remaining = n > 0 ? n : 0;
}

#define CPL_PASS_MOST (1 << 20)

/* The grant under which a collective on comm may pass; NULL: it may not. The caller counts it down
 * when the call has come to something. Local. */
static inline struct cpl_pass *cpl_pass_of(MPI_Comm comm)
{
    struct cpl_comm_state *state = cpl_pass_state(comm);
    return state && state->meeting.pass.remaining > 0 ? &state->meeting.pass : NULL;
}

/* Whether a collective on comm passes; counts it. Local. */
static inline bool cpl_pass_collective(MPI_Comm comm)
{
    struct cpl_pass *pass = cpl_pass_of(comm);
    if (pass)
        pass->remaining--;
    return pass;
}

/* The same of one that is a neighborhood collective. Where some ranks have no neighbours they may
 * skip the call: it does not count, or is made elsewhere (state/comm_state.h). Local. */
static inline bool cpl_pass_neighborhood(MPI_Comm comm)
{
    struct cpl_comm_state *state = cpl_pass_state(comm);
    if (!state || !state->watched)
        return state && state->has_topology && !cpl_context.comms.first_graph;
    if (state->meeting.pass.remaining == 0)
        return false;
    state->meeting.pass.remaining--;
    return true;
}

#endif
