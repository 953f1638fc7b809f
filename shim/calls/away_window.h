/* Locks and epochs of windows that would wait inside MPI (away.h). MPI_Win_start waits for the
 * posts of its group, and MPI_Win_lock for other ranks to unlock. The shim sends messages about
 * both and waits for these while polling; MPI's own call then need not wait.
 *
 * Each rank queues the locks that others ask it for, in the order in which they ask, and answers
 * whenever it polls. All this happens only while something is managed or served; locks that were
 * taken before are reported when that begins. Nothing begins while a rank is between MPI_Win_post
 * and MPI_Win_wait or between MPI_Win_start and MPI_Win_complete (cpl_context.n_epochs). Thread
 * rule: as the shim's. */
#ifndef CARPOOL_AWAY_WINDOW_H
#define CARPOOL_AWAY_WINDOW_H

#include <mpi.h>
#include <stdbool.h>

#define CPL_ALL_RANKS (-1)

/* A window was opened over comm: gives it a name that is alike on all its ranks. Collective. */
void cpl_window_opened(MPI_Comm comm, MPI_Win win);

/* cpl_window_posted: this rank has posted its exposure to a group. cpl_window_before_start: waits
 * until the ranks of a group have posted. */
void cpl_window_posted(MPI_Group group, int assert, MPI_Win win);
void cpl_window_before_start(MPI_Group group, int assert, MPI_Win win);

/* Called before a lock of a rank of the window, or of CPL_ALL_RANKS, is taken, after that, and
 * after it was released. */
void cpl_window_before_lock(bool exclusive, int rank, MPI_Win win);
void cpl_window_locked(bool exclusive, int rank, MPI_Win win);
void cpl_window_unlocked(int rank, MPI_Win win);

/* At the end of MPI. */
void cpl_window_end(void);

/* Serves other ranks' locks. */
extern const struct cpl_hooks cpl_window_hooks;

#endif
