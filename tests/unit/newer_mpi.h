/* Functions of MPI 4.1 that the library calls, for unit tests with an mpi.h of before. */
#ifndef CARPOOL_TESTS_NEWER_MPI_H
#define CARPOOL_TESTS_NEWER_MPI_H

#include <mpi.h>

#if MPI_VERSION * 100 + MPI_SUBVERSION < 401
int PMPI_Request_get_status_all(int count, const MPI_Request requests[], int *flag,
                                MPI_Status statuses[]);
int PMPI_Request_get_status_any(int count, const MPI_Request requests[], int *index, int *flag,
                                MPI_Status *status);
int PMPI_Request_get_status_some(int count, const MPI_Request requests[], int *n_done,
                                 int indices[], MPI_Status statuses[]);
#endif

#endif
