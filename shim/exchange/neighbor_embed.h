/* Nonblocking neighborhood collectives that travel in reductions (embed.h): where a small reduction
 * mostly comes next after a call, the call's messages become segments that wait for the reduction
 * and travel in its messages.
 *
 * The ranks agree on which calls become segments, in a blocking collective of the host: the
 * communicator whose reductions carry them, either the call's own or MPI_COMM_WORLD. Each rank
 * decides alone which segments it puts in, as with point-to-point messages: when any other call
 * comes that may wait, the segments are sent alone. Receivers match them like messages (match.h),
 * by source and a tag of the exchange, so it does not matter how they come.
 *
 * Cost: until it is known whether a reduction comes next, some branches in each call and in the
 * next call that may wait. Thread rule: one thread. */
#ifndef CARPOOL_NEIGHBOR_EMBED_H
#define CARPOOL_NEIGHBOR_EMBED_H

#include "shim/base/names.h"
#include "shim/carry/embed_kind.h"
#include "shim/carry/match.h"
#include "shim/meet/date.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct cpl_comm_state;
struct cpl_exchange;
struct cpl_neighbor_op;

/* The communicator whose reductions come next. */
enum cpl_embed_host { CPL_HOST_SELF, CPL_HOST_WORLD, CPL_N_HOSTS };

/* State of an exchange that concerns reductions. */
struct cpl_embedding {
    struct cpl_comm_state *state; /* state of the exchange's communicator */
    bool open; /* a call was started, and no call that may wait was entered since */
    struct cpl_exchange *next_open; /* list from cpl_context.busy.first_open */
    /* Until settled: */
    int64_t n_seen;                 /* calls; several that were open together count once */
    int64_t n_reduced[CPL_N_HOSTS]; /* how many of them a small reduction of the host followed */
    int64_t
        n_in_any_order[CPL_N_HOSTS]; /* how many of those reductions did not depend on the order */
    bool same_ranks; /* the communicator has MPI_COMM_WORLD's ranks in the same order; valid once
                        n_seen > 0 */
    bool settled; /* it was decided whether reductions carry the calls; alike on all ranks, as are
                     the next four */
    enum cpl_embed_left left;
    struct cpl_comm_state
        *on; /* host whose reductions carry the calls; NULL: calls do not become segments */
    int tag; /* tag of the segments */
    struct cpl_exchange *next; /* next exchange with the same host */
    /* Since then, on this rank: */
    int64_t n_carried, n_missed; /* calls that reductions carried, and that they did not */
    int64_t n_segments;          /* segments of the calls that reductions carried */
    int64_t reductions, sends,
        late; /* figures of the host's reductions in that time, set at the end */
    bool mapped;
};

/* Exchanges whose messages a communicator's reductions carry. */
struct cpl_hosted {
    int n, next_tag;            /* alike on all ranks */
    struct cpl_date review;     /* when the ranks look whether they still ride; alike, too */
    struct cpl_exchange *first; /* in the order in which they came */
};

/* Values of which the ranks take the minimum at a meeting (neighbor_serve.c). Numbers come negated,
 * too, so that ranks see whether all have the same. */
struct cpl_embed_ballot {
    int64_t id, id_negated; /* id of the exchange; INT64_MAX: none */
    int64_t started, started_negated;
    int64_t verdict; /* verdict on the reductions; REFUSED: this rank cannot take part */
};

/* Notes that a call of an exchange was started. Local. */
void cpl_neighbor_embed_started(struct cpl_comm_state *state, struct cpl_exchange *x);

/* Before a call that may wait: sends the segments of open calls, except of those that wait for the
 * reduction that is being entered. Local. */
void cpl_neighbor_embed_leave(void);

/* Called while the program is not in MPI: sends the segments of open calls. Calls that are only
 * watched stay open. Local.
 */
bool cpl_neighbor_embed_leave_late(void);

/* Notes that a small reduction with this verdict is started on a communicator. Local. */
void cpl_neighbor_embed_note(struct cpl_comm_state *state, enum cpl_embed_verdict verdict);

/* Puts the segments that wait for the communicator's reductions into one that begins. Local. */
void cpl_neighbor_embed_board(struct cpl_comm_state *state, bool blocking);

/* A meeting in a blocking collective of a communicator. The ballot is what this rank hands in;
 * settle takes the minimum over all ranks, decides, and returns whether there was anything to
 * decide. Collective. */
struct cpl_embed_ballot cpl_neighbor_embed_ballot(const struct cpl_comm_state *host);
bool cpl_neighbor_embed_settle(struct cpl_comm_state *host, const struct cpl_embed_ballot *all);

/* The calls of an exchange are no longer segments: those that will be started. On all ranks alike.
 * Local. */
void cpl_neighbor_embed_end(struct cpl_exchange *x, enum cpl_embed_left reason);

/* cpl_neighbor_embed_unopen: the exchange's call is no longer open. cpl_neighbor_embed_forget: the
 * exchange ends. */
void cpl_neighbor_embed_unopen(struct cpl_exchange *x);
void cpl_neighbor_embed_forget(struct cpl_exchange *x);

extern const struct cpl_hooks cpl_hosted_hooks;

#endif
