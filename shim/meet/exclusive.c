/* Who settles (agree.h). */
#include "shim/meet/agree.h"

#include "shim/state/context.h"
#include "shim/wait/collective.h"

bool cpl_exclusive_take(MPI_Comm comm)
{
    void **holder = &cpl_context.thread.exclusive;
    struct cpl_service_lock *lock = &cpl_context.lock;
    /* Processes of another MPI_COMM_WORLD may have other levels of threads. */
    if (!cpl_context.service.shared || !cpl_collective_of_this_world(comm))
        return true;
    bool mine = !*holder && lock->n_inside == 1;
    if (mine)
        *holder = cpl_service_me();
    bool all = cpl_agree_all(comm, mine);
    if (all) {
        lock->kept = true;
        all = cpl_agree_all(comm, lock->n_inside == 1);
    }
    if (mine && !all)
        cpl_exclusive_leave();
    return all;
}

void cpl_exclusive_leave(void)
{
    if (!cpl_context.thread.exclusive)
        return;
    cpl_context.thread.exclusive = NULL;
    cpl_context.lock.kept = false;
}
