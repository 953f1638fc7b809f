/* Graph communicators, and which of their ranks have neighbours. MPI wants every rank in a
 * neighborhood collective, but those without neighbours have nothing to do there: MPICH lets them
 * skip it, and PETSc does. So where there are any, neighborhood collectives are made on an inner
 * communicator, by MPI as well as by the library: one of the ranks that have neighbours, with the
 * same graph; a rank without has one of its own. It is made when the graph is (meet/agree.h), where
 * all ranks are. */
#ifndef CARPOOL_GRAPH_H
#define CARPOOL_GRAPH_H

#include <mpi.h>
#include <stdbool.h>

/* What is known of a graph communicator; an attribute. */
struct cpl_graph {
    MPI_Comm comm, inner; /* inner: MPI_COMM_NULL: all ranks have neighbours */
    int number;           /* of one of all ranks, from 1, alike on them; 0: another one */
    struct cpl_graph *next;
};

/* The attribute's key, for the process. Returns false when MPI has none to give. Local. The second
 * frees all inner communicators, too. */
bool cpl_graph_start(void);
void cpl_graph_stop(void);

/* Whether this rank has neighbours. Local. */
bool cpl_graph_has_neighbors(MPI_Comm comm);

/* Keeps the inner communicator, which is the library's from here on, or that all ranks have
 * neighbours. Waits for memory. Local. */
void cpl_graph_keep(MPI_Comm comm, MPI_Comm inner);

/* NULL: nothing is known of the communicator. A grid's ranks all have neighbours. Local. */
const struct cpl_graph *cpl_graph_of(MPI_Comm comm);

/* The communicator on which a neighborhood collective is made: the inner one, which gets the
 * other's error handler, else the given one; any handle. Local. */
MPI_Comm cpl_graph_inner(MPI_Comm comm);

/* Forgets the inner communicator and returns it, for the caller to free; MPI_COMM_NULL: there is
 * none. Local. */
MPI_Comm cpl_graph_take_inner(MPI_Comm comm);

#endif
