/* The collectives of wait/collective.h between ranks that are fibers (fibers.h), with what else of
 * MPI goes with them: datatypes, operations, split communicators. All ranks must make the same
 * calls with the same arguments; else the test fails.
 *
 * A communicator's handle is collectives_comm(number, rank), and all have all ranks in order. */
#ifndef CARPOOL_TESTS_MOCK_COLLECTIVES_H
#define CARPOOL_TESTS_MOCK_COLLECTIVES_H

#include <mpi.h>

enum { COLLECTIVES_FIRST = 1000, COLLECTIVES_STEP = 100 }; /* number 0 is mock_comm */

void collectives_begin(void);

/* Fails the test when a datatype, an operation or a communicator was not freed. */
void collectives_end(void);

MPI_Comm collectives_comm(int number, int rank);

/* From here on this rank's MPI_Comm_split fails so many times. */
void collectives_fail_splits(int rank, int n);

#endif
