/* Locks and epochs of windows that would wait inside MPI (away.h). What MPI_Win_start waits for,
 * the posts of its group, and what MPI_Win_lock waits for, the unlocking of others, is told by
 * messages of the shim first, which are waited for while polling; MPI's own call then finds it
 * done.
 *
 * Each rank keeps the locks that others ask it for, in the order in which they ask, and answers
 * whenever it polls. Only while something is managed or served; where it was not when a lock was
 * taken, its unlocking says nothing. Thread rule: as the shim's. */
#ifndef CARPOOL_AWAY_WINDOW_H
#define CARPOOL_AWAY_WINDOW_H

#include <mpi.h>
#include <stdbool.h>

#define CPL_ALL_RANKS (-1)

/* A window was opened over comm: gives it a name that is alike on all its ranks. Collective. */
void cpl_window_opened(MPI_Comm comm, MPI_Win win);

/* A rank's exposure has been posted to a group; what a group's MPI_Win_start has to wait for. */
void cpl_window_posted(MPI_Group group, int assert, MPI_Win win);
void cpl_window_before_start(MPI_Group group, int assert, MPI_Win win);

/* Before a lock of a rank of the window, or of CPL_ALL_RANKS, is taken; after it was given back. */
void cpl_window_before_lock(bool exclusive, int rank, MPI_Win win);
void cpl_window_unlocked(int rank, MPI_Win win);

/* At the end of MPI. */
void cpl_window_end(void);

/* Serves other ranks' locks. */
extern const struct cpl_hooks cpl_window_hooks;

#endif
