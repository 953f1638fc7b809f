/* Reductions that carry messages (paper 003, section 3): messages that have been sent and have not
 * left when a small MPI_Allreduce follows on their managed communicator ride in its messages.
 *
 * The reduction is by bidirectional exchange (recursive doubling): in step k a rank exchanges the
 * vector with the one whose virtual rank differs in bit k, and hands on to it the messages whose
 * destination differs in that bit. After log2(P) steps every message has come. With P no power of
 * two, the first ranks fold: of two neighbours the even one hands all it has to the odd one, and
 * gets the result and its messages back at the end.
 *
 * Which reductions are carried out so depends only on what is alike on all ranks: the arguments,
 * and what was agreed when the communicator became managed. Which messages ride is each rank's own
 * affair. A message may be waited for by a rank that has not come to the reduction yet, and that
 * others wait for in it: so every poll takes in what comes (rides.h), and no rank keeps a message
 * for longer than the hold time; what is left then goes on alone. */
#ifndef CARPOOL_EMBED_H
#define CARPOOL_EMBED_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpl_comm_state;

#define CPL_EMBED_KEYS   16
#define CPL_EMBED_VECTOR 1024 /* bytes of a small reduction */

/* What is known of reductions by one operation on vectors of one type and length. */
struct cpl_embed_key {
    MPI_Op op;
    MPI_Datatype type;
    int64_t count;
    int64_t extent; /* of the type, in bytes */
    int verdict;
    int n_compared; /* with MPI's own result */
    int n_equal;    /* of these, on this rank, with the same bits */
};

/* A message of a reduction that has come. */
struct cpl_embed_slot {
    bool came;
    unsigned char vector[CPL_EMBED_VECTOR];
};

struct cpl_embed {
    bool on;      /* alike on all ranks */
    bool waiting; /* a reduction is being entered, which will take the batch */
    int n_keys;
    struct cpl_embed_key key[CPL_EMBED_KEYS];
    int n_slots;                 /* of one reduction */
    struct cpl_embed_slot *slot; /* of this reduction and the next one, which others may be in */
    uint32_t number;             /* of the reduction: how many there were before */
    unsigned char *cargo;        /* segments for others on this rank, as they lie in a batch */
    size_t used, room;
    double since;         /* when the first of them came; seconds */
    int64_t n_reductions; /* that were carried out so */
    int64_t n_sends;      /* messages in them */
    int64_t n_segments;   /* that began to ride on this rank */
    int64_t n_late;       /* that this rank sent on alone */
};

/* Whether a reduction of this kind may carry messages: small, of one of MPI's own datatypes.
 * Local. */
bool cpl_embed_is_small(int64_t count, MPI_Datatype type);

/* Makes room on a communicator that is becoming managed; whether it is to be used is agreed on by
 * the caller. Returns false when memory ran out. */
bool cpl_embed_init(struct cpl_comm_state *state);
void cpl_embed_free(struct cpl_embed *embed);

/* A reduction's message has come, whether this rank is in it or not (rides.h). */
void cpl_embed_arrived(struct cpl_comm_state *state, uint32_t number, int32_t step,
                       const unsigned char *bytes, size_t n);

/* Sends the cargo on alone: what has been held too long, or all. */
void cpl_embed_release(struct cpl_comm_state *state, bool all);

/* Whether a reduction on a managed communicator is to be carried out here: the same answer on all
 * ranks, unless one of them has arguments that MPI refuses. Local. */
bool cpl_embed_takes(struct cpl_comm_state *state, const void *send, const void *recv,
                     int64_t count, MPI_Datatype type, MPI_Op op);

/* Carries it out, with what the batch holds. Returns MPI's result. Collective. */
int cpl_embed_allreduce(struct cpl_comm_state *state, const void *send, void *recv, int64_t count,
                        MPI_Datatype type, MPI_Op op);

#endif
