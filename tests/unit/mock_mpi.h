/* The part of MPI that the matching engine, combined messages and executor use, for several ranks
 * in one process. Messages wait in a network that keeps the order of each pair and tag and nothing
 * else; when a rank looks for them, a random number decides whether they have come. Datatypes are
 * bytes.
 *
 * Order of calls: mock_begin, the code under test with mock_comm(rank) as its communicator,
 * mock_end, which fails the test when anything was left in the network. */
#ifndef CARPOOL_TESTS_MOCK_MPI_H
#define CARPOOL_TESTS_MOCK_MPI_H

#include "shim/state/datatype.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#define MOCK_MOST_RANKS 32

void mock_begin(int n_ranks, uint64_t seed);
void mock_end(void);

MPI_Comm mock_comm(int rank);

/* Called with true before the network takes memory of its own, and with false after it; NULL:
 * nothing is. For tests whose heap fails for good. */
extern void (*mock_takes_memory)(bool takes);

/* What PMPI_Wtime returns; starts at 1. */
void mock_set_time(double seconds);

/* Messages that have been sent so far. */
int64_t mock_n_sent(void);

/* Calls of PMPI_Test and PMPI_Testsome so far. */
int64_t mock_n_tests(void);

/* Calls of a rank that fail: of those from here on, number `after` (from 0). PMPI_Isend then sends
 * nothing, PMPI_Irecv posts nothing, and both leave the request as it is; PMPI_Testsome finds an
 * error in the status of a receive, PMPI_Test of a send returns one. Messages that nobody receives
 * because of that are discarded by the test. */
enum mock_call { MOCK_ISEND, MOCK_IRECV, MOCK_TESTSOME, MOCK_TEST, MOCK_N_CALLS };
#define MOCK_ERROR     MPI_ERR_OTHER
#define MOCK_TRUNCATED 77 /* bytes in the status of a truncated message */
void mock_fail(enum mock_call call, int rank, int after);
void mock_discard(void);

/* An empty synchronous message. */
MPI_Request mock_synchronous(int source, int dest, int tag);

/* MPI goes on at a rank, until what was sent has come. */
void mock_progress(int rank);

/* Count bytes at an address. */
struct cpl_span mock_span(void *address, int count);

#endif
