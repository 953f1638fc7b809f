/* Completion calls on arrays of requests, of which some are the shim's (requests.h) and the
 * others MPI's: they poll (doc/point-to-point.md).
 *
 * Cost: requests that are all the shim's are completed without MPI; arrays of both kinds cost MPI's
 * call for its part, and memory when that has more than a few. Thread rule: one thread. */
#ifndef CARPOOL_PT2PT_COMPLETE_H
#define CARPOOL_PT2PT_COMPLETE_H

#include <mpi.h>
#include <stdbool.h>

/* As MPI_Wait, MPI_Waitall, MPI_Waitany; with a flag, which is set, as MPI_Test, MPI_Testall,
 * MPI_Testany. Return MPI's error codes, after the error handler. */
int cpl_complete_one(MPI_Request *request, int *flag, MPI_Status *status);
int cpl_complete_all(int n, MPI_Request *requests, int *flag, MPI_Status *statuses);
int cpl_complete_any(int n, MPI_Request *requests, int *index, int *flag, MPI_Status *status);

/* As MPI_Waitsome, or when it does not wait as MPI_Testsome. */
int cpl_complete_some(int n, MPI_Request *requests, int *n_done, int *indices, MPI_Status *statuses,
                      bool waits);

#endif
