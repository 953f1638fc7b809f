/* Reductions that carry messages ([Selvitopi-embed], section 3): messages that have been sent and
 * have not left when a small MPI_Allreduce or MPI_Iallreduce follows on their managed communicator
 * ride in its messages.
 *
 * The reduction is by bidirectional exchange (recursive doubling): in step k a rank exchanges the
 * vector with the one whose point differs in bit k, and hands on to it the messages whose
 * destination differs in that bit. After log2(P) steps every message has come. With P no power of
 * two, the first points fold: of two neighbours the even one hands all it has to the odd one, and
 * gets the result and its messages back at the end. Points are the ranks, or where the order does
 * not matter those of a map (planner/grid/hypercube.h).
 *
 * Which reductions are carried out so depends only on what is alike on all ranks: the arguments,
 * and what was agreed when the communicator became managed. Which messages ride is each rank's own
 * affair. A message may be waited for by a rank that has not come to the reduction yet, and that
 * others wait for in it: so every poll takes in what comes (rides.h), and no rank keeps a message
 * for longer than the hold time; what is left then goes on alone.
 *
 * A communicator's reductions are carried out one after the other, in the order in which they were
 * started, the same on all ranks, by every call that polls. So ranks are one reduction apart at
 * most. */
#ifndef CARPOOL_EMBED_H
#define CARPOOL_EMBED_H

#include "shim/carry/embed_kind.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpl_comm_state;
struct cpl_line;
struct cpl_reduction;
struct cpl_segment;

/* A message of a reduction that has come. */
struct cpl_embed_slot {
    bool came;
    unsigned char vector[CPL_EMBED_VECTOR];
};

struct cpl_embed {
    bool on;         /* alike on all ranks */
    bool waiting;    /* a reduction is being entered, which will take the batch */
    bool not_yet;    /* the last one asked for is MPI's for the time being: nothing rides in it */
    bool tried;      /* the last one was the first of its kind, or compared: it takes longer */
    bool distrusted; /* a kind was found to stay MPI's, which users have not looked at; alike */
    struct cpl_embed_kinds kinds;
    int32_t *points; /* of the ranks, then the ranks at the points; NULL: the ranks themselves */
    struct cpl_reduction *pending; /* started and not over, in order; the first one runs */
    struct cpl_reduction *spare;
    int n_slots;                 /* of one reduction */
    struct cpl_embed_slot *slot; /* of this reduction and the next one, which others may be in */
    uint32_t number;             /* of the reduction: how many there were before */
    unsigned char *cargo;        /* segments for others on this rank, as they lie in a batch */
    size_t used, room;
    double since;         /* when the first of them came; seconds */
    int64_t n_reductions; /* that were carried out so */
    int64_t n_sends;      /* messages in them */
    int64_t n_segments;   /* of batches, that began to ride on this rank */
    int64_t n_late;       /* that this rank sent on alone */
};

/* Makes room on a communicator that is becoming managed or gets riders, unless there is; whether it
 * is to be used is agreed on by the caller. Returns false when memory ran out. */
bool cpl_embed_init(struct cpl_comm_state *state);
void cpl_embed_free(struct cpl_embed *embed);

/* Takes a segment of this rank's aboard, for another one. Returns the place for its payload; NULL:
 * there is no memory. */
unsigned char *cpl_embed_place(struct cpl_line *line, const struct cpl_segment *segment);

/* A segment, with its payload behind it, has come or begins here: it goes aboard, or is delivered
 * when it is this rank's. */
void cpl_embed_take(struct cpl_line *line, const unsigned char *segment);

/* Advances what is pending, as far as messages have come. Returns whether anything happened. */
bool cpl_embed_progress(struct cpl_comm_state *state);

/* Waits, while polling, until nothing is pending. All ranks must have started the same. */
void cpl_embed_finish(struct cpl_comm_state *state);

/* A reduction's message has come, whether this rank is in it or not (rides.h). */
void cpl_embed_arrived(struct cpl_comm_state *state, uint32_t number, int32_t step,
                       const unsigned char *bytes, size_t n);

/* Sends the cargo on alone: what has been held too long, or all. */
void cpl_embed_release(struct cpl_comm_state *state, bool all);

/* The kind of a reduction on a managed communicator that is to be carried out here; NULL: MPI's.
 * The same answer on all ranks, unless one of them has arguments that MPI refuses. Local. */
struct cpl_embed_kind *cpl_embed_takes(struct cpl_comm_state *state, const void *send,
                                       const void *recv, int64_t count, MPI_Datatype type,
                                       MPI_Op op, bool blocking);

/* Carries it out, with what the batch holds. Returns MPI's result. Collective. */
int cpl_embed_allreduce(struct cpl_comm_state *state, struct cpl_embed_kind *kind, const void *send,
                        void *recv);

/* Starts it, with the batch if that waits for a reduction. Returns MPI's result. Collective, and
 * does not wait. */
int cpl_embed_iallreduce(struct cpl_comm_state *state, struct cpl_embed_kind *kind,
                         const void *send, void *recv, MPI_Request *request);

/* A blocking collective on the communicator: decides about the kinds that are UNDECIDED.
 * Collective. */
void cpl_embed_decide(struct cpl_comm_state *state);

#endif
