/* Start and end of the shim, and the list of its parts. */
#ifndef CARPOOL_START_H
#define CARPOOL_START_H

#include <stdbool.h>

/* cpl_start_raises_level: whether the level of threads that the program asks for is below what the
 * helper thread needs; cpl_start_init_thread is then called in place of MPI_Init or
 * MPI_Init_thread. Local. */
bool cpl_start_raises_level(int required);
int cpl_start_init_thread(int *argc, char ***argv, int required, int *provided);

/* After MPI was initialised: reads and broadcasts the settings. Collective over MPI_COMM_WORLD. If
 * a rank runs without the library, all stay passive, and one tells why. */
void cpl_start(void);

/* Before MPI is finalized: releases all communicators' state, writes the report. Collective over
 * MPI_COMM_WORLD. When the shim is not active, only the report
 * is written, by the rank that is to tell why. */
void cpl_finish(void);

#endif
