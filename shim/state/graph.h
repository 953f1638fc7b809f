/* Which ranks of a graph communicator have neighbours. MPI wants every rank in a neighborhood
 * collective, but the others have nothing to do there: MPICH lets them skip it, and PETSc does. So
 * what the library settles about such calls is settled among those that have neighbours. Who they
 * are is found out when the graph is made, where all ranks are; copies of the communicator have the
 * same (an attribute). */
#ifndef CARPOOL_GRAPH_H
#define CARPOOL_GRAPH_H

#include <mpi.h>
#include <stdbool.h>

struct cpl_graph {
    int n_known_by; /* communicators */
    int n;          /* ranks with neighbours; 0: all have some */
    int rank[];     /* of these, ascending */
};

/* The attribute's key, for the process. Returns false when MPI has none to give. Local. */
bool cpl_graph_start(void);
void cpl_graph_stop(void);

/* Whether this rank has neighbours. Local. */
bool cpl_graph_has_neighbors(MPI_Comm comm);

/* Keeps which of a communicator's n ranks have some. Waits for memory. Local. */
void cpl_graph_keep(MPI_Comm comm, const unsigned char *has, int n);

/* NULL: nothing is known of the communicator. A grid's ranks all have neighbours. Local. */
const struct cpl_graph *cpl_graph_of(MPI_Comm comm);

/* The number of a rank of the communicator among those with neighbours; -1: it has none. Local. */
int cpl_graph_number(const struct cpl_graph *graph, int rank);

#endif
