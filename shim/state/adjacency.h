/* The neighbours of a rank on a communicator with a topology (MPI 4.0, 8.5-8.6), in the order that
 * neighborhood collectives use, and grouped by rank: parallel edges to the same rank travel as
 * parts of one message. */
#ifndef CARPOOL_ADJACENCY_H
#define CARPOOL_ADJACENCY_H

#include <mpi.h>
#include <stdbool.h>

/* Neighbours of one direction. peer[k] is the rank of neighbour k, possibly MPI_PROC_NULL or the
 * rank itself. */
struct cpl_neighbors {
    int n;
    int *peer;
    int n_messages;  /* number of different peers, except the rank itself and MPI_PROC_NULL */
    int *rank;       /* n_messages ranks, ascending; the arrays below are in the same memory */
    int *first_part; /* n_messages + 1 entries: the parts of message m are part[first_part[m]] .. */
    int *part;       /* neighbour numbers, ascending inside a message */
    int n_self;      /* neighbours that are the rank itself */
    int *self;       /* numbers of those neighbours, ascending */
    int *ordinal;    /* n entries: number among the parallel edges to the peer, from 0 */
    int *message;    /* n entries: its message, -1 for the rank itself and MPI_PROC_NULL */
};

struct cpl_adjacency {
    struct cpl_neighbors in, out;
};

/* Asks MPI for the neighbours of the calling rank. Returns false when the communicator has no
 * topology or memory ran out. Local. */
bool cpl_adjacency_query(MPI_Comm comm, struct cpl_adjacency *adjacency);

/* Makes the adjacency from lists of ranks, in any order. Returns false when memory ran out.
 * Local. */
bool cpl_adjacency_make(int rank, int n_in, const int *in, int n_out, const int *out,
                        struct cpl_adjacency *adjacency);

void cpl_adjacency_free(struct cpl_adjacency *adjacency);

#endif
