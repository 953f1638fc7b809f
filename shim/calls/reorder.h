/* Placing the ranks of communicators that the program lets MPI reorder (MPI 4.0, 8.5): the call
 * names a graph or a Cartesian grid, and each process gets a rank that suits its place in the
 * machine (planner/place.h).
 *
 * All ranks hand in their edges, one maps, and all learn which process gets which rank; then the
 * call is made, without reordering, on a communicator of the same processes in that order. The
 * program's weights of edges count as units of CPL_REORDER_UNIT_BYTES bytes. */
#ifndef CARPOOL_REORDER_H
#define CARPOOL_REORDER_H

#include <mpi.h>
#include <stdbool.h>

#define CPL_REORDER_UNIT_BYTES 1024

/* cpl_reorder_NAME, for every call with an argument `reorder`, when that is true: makes the
 * communicator with its ranks placed and returns true, with MPI's return value in *result. Returns
 * false on all ranks when placing gains nothing or is impossible (an intercommunicator, fewer
 * points than ranks, arguments that MPI would refuse, no memory): the call is then MPI's.
 * Collective as the call. */
#define WITH_RESULT(...)                            (__VA_ARGS__, int *result)
#define REORDERS(name, comm, parameters, arguments) bool cpl_reorder_##name WITH_RESULT parameters;
#include "shim/tables/collectives.def"
#undef WITH_RESULT

#endif
