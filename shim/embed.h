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
 * affair. A message may also be waited for by a rank that has not come to the reduction yet:
 * nothing is kept for longer than the hold time, what is left then goes on alone. */
#ifndef CARPOOL_EMBED_H
#define CARPOOL_EMBED_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpl_comm_state;

#define CPL_EMBED_KEYS 16

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

/* The cargo: segments as they lie in a batch. */
struct cpl_embed {
    bool on;      /* alike on all ranks */
    bool waiting; /* a reduction is being entered, which will take the batch */
    int n_keys;
    struct cpl_embed_key key[CPL_EMBED_KEYS];
    unsigned char *out, *in; /* one message */
    unsigned char *cargo;    /* segments on this rank */
    size_t used, room;
    int64_t n_reductions; /* that were carried out so */
    int64_t n_sends;      /* messages in them */
    int64_t n_segments;   /* that began to ride on this rank */
    int64_t n_late;       /* that went on alone */
};

/* Whether a reduction of this kind may carry messages: small, of one of MPI's own datatypes.
 * Local. */
bool cpl_embed_is_small(int64_t count, MPI_Datatype type);

/* Makes room; whether it is to be used is agreed on by the caller. Returns false when memory ran
 * out. */
bool cpl_embed_init(struct cpl_embed *embed);
void cpl_embed_free(struct cpl_embed *embed);

/* Whether a reduction on a managed communicator is to be carried out here: the same answer on all
 * ranks, unless one of them has arguments that MPI refuses. Local. */
bool cpl_embed_takes(struct cpl_comm_state *state, const void *send, const void *recv,
                     int64_t count, MPI_Datatype type, MPI_Op op);

/* Carries it out, with what the batch holds. Returns MPI's result. Collective. */
int cpl_embed_allreduce(struct cpl_comm_state *state, const void *send, void *recv, int64_t count,
                        MPI_Datatype type, MPI_Op op);

#endif
