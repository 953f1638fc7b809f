/* Windows, whose calls may wait inside MPI where the rank cannot poll (wait/assembly.h). */
#ifndef CARPOOL_WRAPPERS_WINDOWS_H
#define CARPOOL_WRAPPERS_WINDOWS_H

#include <mpi.h>

/* A window was opened over comm: gives it a name that is alike on all its ranks. Collective. */
void cpl_window_opened(MPI_Comm comm, MPI_Win win);

/* At the end of MPI. */
void cpl_window_end(void);

/* Serves other ranks' locks. */
extern const struct cpl_hooks cpl_window_hooks;

#endif
