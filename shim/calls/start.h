/* Start and end of the shim, and the list of its parts. */
#ifndef CARPOOL_START_H
#define CARPOOL_START_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct cpl_comm_state;

/* MPI_Init (required: NULL), or MPI_Init_thread, perhaps with a higher level, which the helper
 * thread needs. Then reads and broadcasts the settings. Collective over MPI_COMM_WORLD. If a rank
 * runs without the library, all stay passive, and one tells why. */
int cpl_start_init(int *argc, char ***argv, const int *required, int *provided);

/* Before MPI is finalized: releases all communicators' state, writes the report. Collective over
 * MPI_COMM_WORLD. When the shim is not active, only the report is written, by the rank that is to
 * tell why. */
void cpl_finish(void);

/* Communicators are MPI's to give, and the program's (MPICH has 2,048). Where a program has many,
 * the library gives those back that it made for itself, and with them what it carries on the
 * program's communicators, where nothing is under way; it makes no more then (reclaim.c). A
 * communicator was made in a call of all ranks of `over`. Collective over that one. */
void cpl_reclaim_made(MPI_Comm over);

/* Of the communicators with a private one, that with the lowest number above `above`: on all ranks
 * in the same order; NULL: there is none. Local. */
struct cpl_comm_state *cpl_reclaim_next(int64_t above);

/* Whether all ranks of the job run with the library. One that does not would take part in nothing,
 * and the others would wait for it; a launcher's line can start programs with different
 * environments.
 *
 * No protocol of a launcher is spoken. Under hydra each rank looks at the processes that its proxy
 * has started on this host, in /proc. Ranks on other hosts show by not answering. */
#ifdef CPL_SIMULATED
#define cpl_preload_lacks(rank, n_ranks, tells) (*(tells) = false)
#define cpl_preload_await(request)              PMPI_Wait(request, MPI_STATUS_IGNORE)
#else
/* Whether a rank of this host is seen to lack the library, which must do nothing then. *tells: this
 * rank is the one to tell. In MPI_Init, after MPI's own. All ranks of a host that have the library
 * get the same answer. Local. */
bool cpl_preload_lacks(int rank, int n_ranks, bool *tells);

/* Waits for a collective of all ranks, the first ones in MPI_Init. A rank that waits for long says
 * that some most likely lack the library, and ends the program at last (MPI_Abort). */
void cpl_preload_await(MPI_Request *request);
#endif

#endif
