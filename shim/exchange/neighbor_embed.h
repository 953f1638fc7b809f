/* Nonblocking neighborhood collectives that ride in reductions (embed.h): where a small reduction
 * mostly comes next after a call, the call's messages become segments that wait for it and ride in
 * its messages.
 *
 * Which calls become segments the ranks agree on, in a blocking collective of the communicator
 * whose reductions these are: the call's own one or MPI_COMM_WORLD. What rides is each rank's own
 * affair, as with point-to-point messages: when anything else comes that may wait, the segments
 * leave alone. Receivers match them as messages (match.h), by source and a tag of the exchange, so
 * it does not matter how they come.
 *
 * Cost: while it is not known whether a reduction comes next, each call and the next call that may
 * wait take some more branches. Thread rule: one thread. */
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

/* Whose reductions come next. */
enum cpl_embed_host { CPL_HOST_SELF, CPL_HOST_WORLD, CPL_N_HOSTS };

/* What an exchange has to do with reductions. */
struct cpl_embedding {
    struct cpl_comm_state *state; /* its communicator's */
    bool open;                    /* a call was started, and nothing that may wait entered since */
    struct cpl_exchange *next_open; /* in cpl_context.busy.first_open */
    /* Until it is settled: */
    int64_t n_seen;                      /* calls, or several that were open together, */
    int64_t n_reduced[CPL_N_HOSTS];      /* and of these, that a small reduction came next, */
    int64_t n_in_any_order[CPL_N_HOSTS]; /* whose result did not hang on the order */
    bool same_ranks;                     /* as MPI_COMM_WORLD, in the same order; once n_seen > 0 */
    bool settled;                        /* alike on all ranks, as are these: */
    enum cpl_embed_left left;
    struct cpl_comm_state *on; /* they ride in its reductions; NULL: they are not segments */
    int tag;                   /* of the segments */
    struct cpl_exchange *next; /* of those on the same communicator */
    /* Since then, on this rank: */
    int64_t n_rode, n_missed;        /* calls */
    int64_t n_segments;              /* of calls that rode */
    int64_t reductions, sends, late; /* of the communicator meanwhile, when it was left */
    bool mapped;
};

/* Exchanges whose messages ride in a communicator's reductions. */
struct cpl_riders {
    int n, next_tag;            /* alike on all ranks */
    struct cpl_date review;     /* when the ranks look whether they still ride; alike, too */
    struct cpl_exchange *first; /* in the order in which they came */
};

/* What the ranks compare at a meeting (neighbor_serve.c), by the minimum; numbers negated, too. */
struct cpl_embed_ballot {
    int64_t id, id_negated; /* of the exchange, INT64_MAX: none */
    int64_t started, started_negated;
    int64_t verdict; /* of the reductions; REFUSED: not able */
};

/* A call of an exchange was started. Local. */
void cpl_neighbor_embed_started(struct cpl_comm_state *state, struct cpl_exchange *x);

/* A call that may wait is entered: what is open leaves, but for what waits for the reduction that
 * is being entered. Local. */
void cpl_neighbor_embed_leave(void);

/* The program is not in MPI: the segments of open calls leave, what is only watched stays open.
 * Local.
 */
bool cpl_neighbor_embed_leave_late(void);

/* A small reduction is started on a communicator, of which only this verdict is known. Local. */
void cpl_neighbor_embed_note(struct cpl_comm_state *state, enum cpl_embed_verdict verdict);

/* The open calls whose segments wait for the communicator's reductions go aboard. Local. */
void cpl_neighbor_embed_board(struct cpl_comm_state *state, bool blocking);

/* A meeting in a blocking collective of a communicator: what this rank has to say; and when the
 * minimum over all ranks is there, settles what they agree on: returns whether there was something.
 * Collective. */
struct cpl_embed_ballot cpl_neighbor_embed_ballot(const struct cpl_comm_state *host);
bool cpl_neighbor_embed_settle(struct cpl_comm_state *host, const struct cpl_embed_ballot *all);

/* The calls of an exchange are no longer segments: those that will be started. On all ranks alike.
 * Local. */
void cpl_neighbor_embed_end(struct cpl_exchange *x, enum cpl_embed_left reason);

/* The exchange's call is no longer open. Forget: the exchange ends. */
void cpl_neighbor_embed_unopen(struct cpl_exchange *x);
void cpl_neighbor_embed_forget(struct cpl_exchange *x);

extern const struct cpl_hooks cpl_riders_hooks;

#endif
