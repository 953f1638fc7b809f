/* A meeting: a blocking collective of a communicator at which its ranks also settle what the parts
 * of the library have to settle among them.
 *
 * All ranks count the communicator's blocking collectives alike. A part registers an item of the
 * agenda (state/hooks.h), which says when it is due (date.h), what this rank votes, and what
 * follows from the votes of all. At a meeting the votes of all items that are due go into one
 * reduction. With them goes a hash of what each rank takes to be alike on all of them (alike.h):
 * where it differs, the first rank logs an error.
 *
 * In a program with several threads a meeting needs the exclusive section (exclusive.h); without it
 * the items are due again at the next collectives. There an item must not change another
 * communicator's dates, and may hang its own on nothing that another communicator's meeting
 * changes: the ranks may be at different collectives of it. */
#ifndef CARPOOL_MEETING_H
#define CARPOOL_MEETING_H

#include "shim/meet/date.h"
#include "shim/state/comm_state.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct cpl_comm_state;

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
