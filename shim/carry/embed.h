/* Reductions that carry messages ([Selvitopi-embed], section 3; doc/point-to-point.md): messages
 * that the program has sent and the shim still holds travel in the messages of a small
 * MPI_Allreduce or MPI_Iallreduce that follows.
 *
 * The reduction is by bidirectional exchange (recursive doubling): in step k a rank exchanges the
 * vector with the rank whose point differs in bit k, and sends on to it the messages whose
 * destination differs in that bit. After log2(P) steps every message has arrived. When P is no
 * power of two, the first points fold: of two neighbours the even one sends all it has to the odd
 * one, and gets the result and its messages back at the end. Points are the ranks or, where the
 * order of combining does not matter, points of a map (planner/grid/hypercube.h).
 *
 * Which reductions the shim carries out is alike on all ranks; which messages it puts in each rank
 * decides alone. A rank that has not come to the reduction yet may wait for such a message, so
 * every poll receives what comes, and no rank keeps a message for longer than the hold time. Every
 * poll advances the reductions of a communicator in the order in which they were started. So ranks
 * are at most one reduction apart. */
#ifndef CARPOOL_EMBED_H
#define CARPOOL_EMBED_H

#include "shim/carry/combined.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- embed_kind.c: kinds of small reductions: their operation, type and length of vectors, and
 * whether the shim's results are known to be MPI's, so that it may carry them out ---- */

struct cpl_comm_state;

#define CPL_EMBED_KINDS  16   /* the most kinds of a communicator */
#define CPL_EMBED_VECTOR 1024 /* the most bytes of a small reduction's vector */

enum cpl_embed_verdict {
    CPL_EMBED_REFUSED,   /* MPI carries them out */
    CPL_EMBED_COMPARING, /* to be compared with MPI's on vectors of our own (embed_probe.c) */
    CPL_EMBED_UNDECIDED, /* to be compared, but nonblocking: MPI's until the ranks meet */
    CPL_EMBED_IN_ORDER,  /* the shim's results have MPI's bits when combined in the ranks' order */
    CPL_EMBED_ANY_ORDER  /* the result is the same in any order, or the user accepts any order */
};

/* What is known of one kind of reduction on a communicator: alike on all ranks. */
struct cpl_embed_kind {
    MPI_Op op;
    MPI_Datatype type;
    int64_t count;
    bool blocking;
    int64_t extent; /* extent of the type, in bytes */
    enum cpl_embed_verdict verdict;
};

struct cpl_embed_kinds {
    int n;
    struct cpl_embed_kind kind[CPL_EMBED_KINDS];
};

/* The verdict on a reduction that MPI accepts: REFUSED, COMPARING or ANY_ORDER. Alike on all ranks;
 * local. */
enum cpl_embed_verdict cpl_embed_judge(int64_t count, MPI_Datatype type, MPI_Op op);

/* The kind of a reduction that MPI accepts, if it is to be carried out here; NULL: it is MPI's. The
 * communicator's state is its own. The same answer on all ranks. Local. */
struct cpl_embed_kind *cpl_embed_takes(struct cpl_comm_state *state, int64_t count,
                                       MPI_Datatype type, MPI_Op op, bool blocking);

/* embed_probe.c: test vectors that show whether the shim's reductions have MPI's bits. The
 * program's data would prove nothing: flags, zeros and small whole numbers give the same result in
 * any order. These have values of widely different magnitude, pairs that cancel each other, and for
 * minima and maxima zeros of both signs and NaNs.
 *
 * cpl_embed_can_probe: whether there are some of a datatype. cpl_embed_probe_fill: fills the k-th
 * one of a rank: count elements, including padding bytes. Local. */
#define CPL_EMBED_PROBES 36 /* number of test vectors */
bool cpl_embed_can_probe(MPI_Datatype type);
void cpl_embed_probe_fill(void *vector, int64_t count, MPI_Datatype type, MPI_Op op, int k,
                          int rank, int n_ranks);

/* ---- embed.c ---- */

struct cpl_line;
struct cpl_reduction;

/* A vector that has come for one step of a reduction. */
struct cpl_embed_slot {
    bool came;
    unsigned char vector[CPL_EMBED_VECTOR];
};

struct cpl_embed {
    bool on;      /* reductions are carried out here; alike on all ranks */
    bool waiting; /* a reduction is being entered that will take the batch */
    bool tried;   /* the last reduction was compared, so it took longer */
    struct cpl_embed_kinds kinds;
    int32_t *points; /* of the ranks, then the ranks at the points; NULL: rank i is point i */
    struct cpl_reduction *pending;    /* started and not over, in order; the first one runs */
    int n_slots;                      /* slots of one reduction */
    struct cpl_embed_slot *slot;      /* of this one and the next, in which others may be already */
    uint32_t number;                  /* number of the reduction: how many there were before */
    struct cpl_send_buffer piggyback; /* segments for other ranks */
    double since;                     /* when the first of these segments came, in seconds */
    int64_t n_reductions;             /* reductions that were carried out here */
    int64_t n_sends;                  /* messages that this rank sent for them */
    int64_t forwarded;                /* bytes of payload that this rank passed on for others */
    int64_t n_segments;               /* segments of this rank's batches that reductions took */
    int64_t n_late;                   /* segments that this rank sent on alone */
};

/* Allocates memory on a communicator that is becoming managed. False: memory ran out. */
bool cpl_embed_init(struct cpl_comm_state *state);
void cpl_embed_free(struct cpl_embed *embed);

/* Takes a segment, followed by its payload, that has come or starts here: delivers it when it is
 * for this rank, else keeps it for the next message of a reduction. Returns the bytes of both. */
size_t cpl_embed_take(struct cpl_line *line, const unsigned char *segment);

/* Advances pending reductions as far as messages have come. Returns whether anything happened. */
bool cpl_embed_progress(struct cpl_comm_state *state);

/* Polls until no reduction is pending. All ranks must have started the same ones. */
void cpl_embed_finish(struct cpl_comm_state *state);

/* Takes a reduction's message, even if this rank is not in that reduction yet (combined.h); state:
 * a struct cpl_comm_state. */
void cpl_embed_arrived(void *state, uint32_t number, int32_t step, const unsigned char *bytes,
                       size_t n);

/* Sends segments on alone: those that were held too long, or all. */
void cpl_embed_release(struct cpl_comm_state *state, bool all);

/* Carries a reduction out, with the batch in it; in memory, without any, where reductions carry no
 * messages (`on` is false). Returns MPI's result. Collective. */
int cpl_embed_allreduce(struct cpl_comm_state *state, struct cpl_embed_kind *kind, const void *send,
                        void *recv);

/* Starts a reduction, with the batch in it if that waits for a reduction. Returns MPI's result.
 * Collective, does not wait. */
int cpl_embed_iallreduce(struct cpl_comm_state *state, struct cpl_embed_kind *kind,
                         const void *send, void *recv, MPI_Request *request);

/* Called in a blocking collective on the communicator: decides about the kinds that are UNDECIDED.
 * Collective. */
void cpl_embed_decide(struct cpl_comm_state *state);

#endif
