/* A meeting: a blocking collective of a communicator at which its ranks also settle what the parts
 * of the library have to settle among them.
 *
 * All ranks count the communicator's blocking collectives alike. A part registers an item of the
 * agenda (state/hooks.h), which says when it is due, what this rank votes, and what
 * follows from the votes of all. At a meeting the votes of all items that are due go into one
 * reduction. With them goes a hash of what each rank takes to be alike on all of them:
 * where it differs, the first rank logs an error.
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

/* What must be alike on all ranks, compared. Much of the shim decides on each rank by itself and
 * relies on all having come to the same: counters of collectives, phases, plans, what is managed.
 * Each part adds its words by its hook; every meeting compares a hash of them (meeting.c). */
struct cpl_alike {
    uint64_t hash;
};

static inline void cpl_alike_add(struct cpl_alike *alike, int64_t word)
{
    alike->hash = cpl_hash_word(alike->hash, (uint64_t)word);
}

#define CPL_MOST_ITEMS 5  /* registered by all parts together */
#define CPL_MOST_WORDS 60 /* of the votes of all items together */

/* What became of an item at a meeting. */
enum cpl_settled {
    CPL_SETTLED,
    CPL_SETTLED_MORE, /* there may be more to settle: the ranks vote about it again, at once */
    CPL_NOT_SETTLED /* something is not there yet: they try again at one of the next collectives */
};

struct cpl_item {
    const char *name;
    int64_t first; /* the first regular date: number of a blocking collective */
    int n_least;   /* words of a vote of which the least one of all ranks counts */
    int n_sums;    /* words after these that are summed up over the ranks */

    /* The item's date on a communicator of two ranks or more. NULL: the part has nothing to settle
     * there, or not any more. Alike on all ranks. */
    struct cpl_date *(*date)(struct cpl_comm_state *state);

    /* The longest pause between two regular dates; NULL: there is none. Alike on all ranks. */
    int64_t (*longest)(const struct cpl_comm_state *state);

    /* Whether the part must see every blocking collective, so that none passes without a look
     * (pass.h); NULL: it need not. Local. */
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

/* A blocking collective of the communicator is entered and is not granted: counts it, and meets if
 * it is time. Collective. */
void cpl_meeting_count(struct cpl_comm_state *state);

/* All ranks come together at a collective of another communicator: counts it as n of this one's
 * own, and meets if it is time. Collective. */
void cpl_meeting_borrow(struct cpl_comm_state *state, int64_t n);

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

/* Ends a communicator's grant of collectives that pass without a look (pass.h): those that have
 * passed are counted. Local. */
void cpl_meeting_end_grant(struct cpl_comm_state *state);

/* The same for all communicators: their collectives matter from now on. Local. */
void cpl_meeting_end_grants(void);

/* Grants as many collectives as come before the next meeting, if no part must see them. comm may be
 * any handle. Local. */
void cpl_meeting_grant(MPI_Comm comm);

#endif
