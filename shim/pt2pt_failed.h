/* Managed nonblocking receives that ended with an error (truncation): a generalized request cannot
 * tell which (MPICH makes every error of a query function MPI_ERR_OTHER), so completion calls look
 * here. Usually empty: then a branch. */
#ifndef CARPOOL_PT2PT_FAILED_H
#define CARPOOL_PT2PT_FAILED_H

#include "context.h"

#include <mpi.h>

/* Notes that a request, of a communicator, is complete with an error. */
void cpl_failed_add(MPI_Request request, MPI_Comm comm, int error);

/* The errors of n requests about to be completed, in their order; NULL: none has one. To be given
 * to one of the functions below or to cpl_failed_forget. */
struct cpl_failed *cpl_failed_find(int n, const MPI_Request *requests);

/* After the completion of all, of number `index`, or of those in indices: sets MPI_ERROR in the
 * statuses (which may be ignored), calls the error handler, and returns what the completion call is
 * to return, given what it would have returned. Frees failed, which may be NULL. */
int cpl_failed_all(struct cpl_failed *failed, int n, MPI_Status *statuses, int result);
int cpl_failed_one(struct cpl_failed *failed, int index, int result);
int cpl_failed_some(struct cpl_failed *failed, int n, const int *indices, MPI_Status *statuses,
                    int result);

/* Nothing was completed. */
void cpl_failed_forget(struct cpl_failed *failed);

#endif
