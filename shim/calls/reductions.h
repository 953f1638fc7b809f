/* MPI_Allreduce and MPI_Iallreduce, in whose messages others may ride (carry/embed.h). */
#ifndef CARPOOL_REDUCTIONS_H
#define CARPOOL_REDUCTIONS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Carries the call out if messages ride in it: true then, with MPI's result in *result; false when
 * it is to be made as any collective. Collective. The nonblocking form starts it and does not wait.
 */
bool cpl_reduction_carry(MPI_Comm comm, const void *send, void *recv, int64_t count,
                         MPI_Datatype type, MPI_Op op, int *result);
bool cpl_reduction_start(MPI_Comm comm, const void *send, void *recv, int64_t count,
                         MPI_Datatype type, MPI_Op op, MPI_Request *request, int *result);

#endif
