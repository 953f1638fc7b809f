/* Placing the ranks of communicators that the program lets MPI reorder (MPI 4.0, 8.5): the call
 * names a graph or a Cartesian grid, and each process gets a rank that suits its place in the
 * machine (planner/place.h).
 *
 * MPI has made the communicator, and tells each rank its neighbours. All ranks hand in their edges,
 * one maps, and all learn which process gets which rank; then the call is made again, without
 * reordering, on a communicator of the same processes in that order. */
#ifndef CARPOOL_REORDER_H
#define CARPOOL_REORDER_H

#include <mpi.h>

/* cpl_reorder_NAME, after every call with an argument `reorder`, when that is true and MPI has made
 * *newcomm: puts one with its ranks placed in its place; unless placing gains nothing or is
 * impossible on some rank. Collective as the call. */
#define REORDERS(name, comm, parameters, arguments) void cpl_reorder_##name parameters;
#include "shim/tables/collectives.def"

#endif
