/* Completion calls on arrays of requests, of which some are the shim's (requests.h) and the others
 * MPI's. They poll (doc/point-to-point.md).
 *
 * Cost: arrays of the shim's requests only are completed without MPI; mixed arrays cost MPI's call
 * for a copy with its part, and memory when there are more than a few requests. Thread rule: one
 * thread. */
#ifndef CARPOOL_PT2PT_COMPLETE_H
#define CARPOOL_PT2PT_COMPLETE_H

#include <mpi.h>
#include <stdbool.h>

/* As MPI_Wait, MPI_Waitall, MPI_Waitany; with a flag, as MPI_Test, MPI_Testall, MPI_Testany. Return
 * MPI's error codes, after the error handler. */
int cpl_complete_one(MPI_Request *request, int *flag, MPI_Status *status);
int cpl_complete_all(int n, MPI_Request *requests, int *flag, MPI_Status *statuses);
int cpl_complete_any(int n, MPI_Request *requests, int *index, int *flag, MPI_Status *status);

/* As MPI_Waitsome if `waits`, else as MPI_Testsome. */
int cpl_complete_some(int n, MPI_Request *requests, int *n_done, int *indices, MPI_Status *statuses,
                      bool waits);

/* As MPI_Request_get_status and its relatives for arrays (MPI 4.1): as the tests, but the requests
 * stay as they are. */
int cpl_status_one(MPI_Request request, int *flag, MPI_Status *status);
int cpl_status_all(int n, const MPI_Request *requests, int *flag, MPI_Status *statuses);
int cpl_status_any(int n, const MPI_Request *requests, int *index, int *flag, MPI_Status *status);
int cpl_status_some(int n, const MPI_Request *requests, int *n_done, int *indices,
                    MPI_Status *statuses);

#endif
