/* Start and end of the shim, and the list of its parts. */
#ifndef CARPOOL_START_H
#define CARPOOL_START_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct cpl_comm_state;

/* cpl_start_raises_level: whether the level of threads that the program asks for is below what the
 * helper thread needs; cpl_start_init_thread is then called in place of MPI_Init or
 * MPI_Init_thread. Local. */
#ifdef CPL_SIMULATED
#define cpl_start_raises_level(required) ((void)(required), false)
#define cpl_start_init_thread            PMPI_Init_thread
#define cpl_preload_check(rank, n_ranks) CPL_PRELOAD_ALL
#define cpl_preload_await(request)       PMPI_Wait(request, MPI_STATUS_IGNORE)
#else
bool cpl_start_raises_level(int required);
int cpl_start_init_thread(int *argc, char ***argv, int required, int *provided);
#endif

/* After MPI was initialised: reads and broadcasts the settings. Collective over MPI_COMM_WORLD. If
 * a rank runs without the library, all stay passive, and one tells why. */
void cpl_start(void);

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
enum cpl_preload {
    CPL_PRELOAD_ALL,      /* no rank is seen to lack the library */
    CPL_PRELOAD_SOME,     /* some rank has not: the library must do nothing */
    CPL_PRELOAD_SOME_TELL /* the same, and this rank is the one to tell */
};

#ifndef CPL_SIMULATED
/* In MPI_Init, after MPI's own. All ranks of a host that have the library get the same answer.
 * Local. */
enum cpl_preload cpl_preload_check(int rank, int n_ranks);

/* Waits for a collective of all ranks, the first ones in MPI_Init. A rank that waits for long says
 * that some most likely lack the library, and ends the program at last (MPI_Abort). */
void cpl_preload_await(MPI_Request *request);
#endif

#endif
