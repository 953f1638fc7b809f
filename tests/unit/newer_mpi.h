/* Functions of MPI 4.1 that the library calls, for unit tests: an mpi.h of before has none of them,
 * and that of MPICH 4.2 has no const in them. */
#ifndef CARPOOL_TESTS_NEWER_MPI_H
#define CARPOOL_TESTS_NEWER_MPI_H

#define PMPI_Request_get_status_all  mpi_h_get_status_all
#define PMPI_Request_get_status_any  mpi_h_get_status_any
#define PMPI_Request_get_status_some mpi_h_get_status_some
#include <mpi.h>
#undef PMPI_Request_get_status_all
#undef PMPI_Request_get_status_any
#undef PMPI_Request_get_status_some

int PMPI_Request_get_status_all(int count, const MPI_Request requests[], int *flag,
                                MPI_Status statuses[]);
int PMPI_Request_get_status_any(int count, const MPI_Request requests[], int *index, int *flag,
                                MPI_Status *status);
int PMPI_Request_get_status_some(int count, const MPI_Request requests[], int *n_done,
                                 int indices[], MPI_Status statuses[]);

#endif
