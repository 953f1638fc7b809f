/* MPI_Allreduce and MPI_Iallreduce, which may carry other messages (carry/embed.h). */
#ifndef CARPOOL_REDUCTIONS_H
#define CARPOOL_REDUCTIONS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Carry the call out if it may carry messages. Return true then, with MPI's result in *result;
 * false when the call is to be made like any collective. Collective. The nonblocking form starts
 * the call and does not wait.
 */
bool cpl_reduction_carry(MPI_Comm comm, const void *send, void *recv, int64_t count,
                         MPI_Datatype type, MPI_Op op, int *result);
bool cpl_reduction_start(MPI_Comm comm, const void *send, void *recv, int64_t count,
                         MPI_Datatype type, MPI_Op op, MPI_Request *request, int *result);

#endif
