/* Placing the ranks of communicators that the program lets be reordered (MPI 4.0, 8.5): the call
 * names a graph, or a Cartesian grid, and the processes get those of its ranks that suit their
 * places in the machine (planner/place.h).
 *
 * All ranks hand in their edges, one maps, all learn which process is which rank; then the call is
 * made on a communicator of the same processes in that order, where nothing is left to reorder.
 * Edges are weighed by the program's weights, a unit taken as so many bytes. */
#ifndef CARPOOL_REORDER_H
#define CARPOOL_REORDER_H

#include <mpi.h>
#include <stdbool.h>

#define CPL_REORDER_UNIT_BYTES 1024

/* cpl_reorder_NAME, for every call with an argument `reorder`, which is true: makes the
 * communicator with its ranks placed and returns true, with MPI's return value in *result. Returns
 * false on all ranks when there is nothing to gain, or it cannot be done (an intercommunicator,
 * fewer points than ranks, arguments that MPI would refuse, no memory): the call is then MPI's.
 * Collective as the call.
 */
#define WITH_RESULT(...) (__VA_ARGS__, int *result)
#define REORDERS(name, via, comm, parameters, arguments)                                           \
    bool cpl_reorder_##name WITH_RESULT parameters;
#include "shim/tables/collectives.def"
#undef WITH_RESULT

#endif
