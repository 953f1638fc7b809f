/* The intercepted calls on windows that wait for other ranks' posts and locks (away_window.h). */
#include "shim/calls/away_window.h"
#include "shim/calls/wrappers.h"
#include "shim/meet/appointment.h"
#include "shim/state/context.h"
#include "shim/wait/away.h"
#include "shim/wait/progress.h"

#include <mpi.h>

EXPORT int MPI_Win_post(MPI_Group group, int assert, MPI_Win win)
{
    CPL_COLLECTIVE;
    cpl_appointment_note_other();
    int result = PMPI_Win_post(group, assert, win);
    cpl_context.n_epochs += result == MPI_SUCCESS;
    if (cpl_context.active && result == MPI_SUCCESS)
        cpl_window_posted(group, assert, win);
    return result;
}

EXPORT int MPI_Win_test(MPI_Win win, int *flag)
{
    CPL_COLLECTIVE;
    cpl_appointment_note_other();
    if (cpl_context.active && cpl_progress_needed())
        cpl_progress_poll();
    int result = PMPI_Win_test(win, flag);
    cpl_context.n_epochs -= result == MPI_SUCCESS && *flag;
    return result;
}

/* MPI_Win_wait, where other ranks may need this one. */
static int wait_for(MPI_Win win)
{
    int flag = 0, result = MPI_SUCCESS;
    if (!cpl_progress_needed()) {
        CPL_OUTSIDE;
        return PMPI_Win_wait(win);
    }
    while (!flag && result == MPI_SUCCESS) {
        result = PMPI_Win_test(win, &flag);
        if (!flag)
            cpl_progress_poll();
    }
    return result;
}

EXPORT int MPI_Win_wait(MPI_Win win)
{
    CPL_COLLECTIVE;
    cpl_appointment_note_other();
    if (cpl_context.active)
        cpl_progress_before_wait();
    int result = wait_for(win);
    cpl_context.n_epochs -= result == MPI_SUCCESS;
    return result;
}

/* A call that may wait inside MPI for other ranks: what comes before it and after it, where the
 * library is active. */
#define MAY_WAIT(name, parameters, arguments, before, after)                                       \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        CPL_COLLECTIVE;                                                                            \
        cpl_appointment_note_other();                                                              \
        if (cpl_context.active) {                                                                  \
            cpl_progress_before_wait();                                                            \
            before;                                                                                \
        }                                                                                          \
        int result;                                                                                \
        {                                                                                          \
            CPL_OUTSIDE;                                                                           \
            result = PMPI_##name arguments;                                                        \
        }                                                                                          \
        if (cpl_context.active)                                                                    \
            after;                                                                                 \
        return result;                                                                             \
    }
MAY_WAIT(Win_start, (MPI_Group group, int assert, MPI_Win win), (group, assert, win),
         cpl_window_before_start(group, assert, win), cpl_context.n_epochs += result == MPI_SUCCESS)
MAY_WAIT(Win_complete, (MPI_Win win), (win), , cpl_context.n_epochs -= result == MPI_SUCCESS)
MAY_WAIT(Win_lock, (int lock_type, int rank, int assert, MPI_Win win),
         (lock_type, rank, assert, win),
         cpl_window_before_lock(lock_type == MPI_LOCK_EXCLUSIVE, rank, win),
         result == MPI_SUCCESS ? cpl_window_locked(lock_type == MPI_LOCK_EXCLUSIVE, rank, win)
                               : (void)0)
MAY_WAIT(Win_unlock, (int rank, MPI_Win win), (rank, win), , cpl_window_unlocked(rank, win))
MAY_WAIT(Win_lock_all, (int assert, MPI_Win win), (assert, win),
         cpl_window_before_lock(false, CPL_ALL_RANKS, win),
         result == MPI_SUCCESS ? cpl_window_locked(false, CPL_ALL_RANKS, win) : (void)0)
MAY_WAIT(Win_unlock_all, (MPI_Win win), (win), , cpl_window_unlocked(CPL_ALL_RANKS, win))
