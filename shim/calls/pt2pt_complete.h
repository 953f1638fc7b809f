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

/* As MPI_Wait, MPI_Test and MPI_Request_get_status, which leaves the requests as they are. */
enum cpl_completion { CPL_WAITS, CPL_TESTS, CPL_PEEKS };

/* The four forms for one request and for arrays; flag: NULL if the call waits. Return MPI's error
 * codes, after the error handler. */
int cpl_complete_one(MPI_Request *request, int *flag, MPI_Status *status, enum cpl_completion how);
int cpl_complete_all(int n, MPI_Request *requests, int *flag, MPI_Status *statuses,
                     enum cpl_completion how);
int cpl_complete_any(int n, MPI_Request *requests, int *index, int *flag, MPI_Status *status,
                     enum cpl_completion how);
int cpl_complete_some(int n, MPI_Request *requests, int *n_done, int *indices, MPI_Status *statuses,
                      enum cpl_completion how);

#endif
