/* Polling and waiting (progress.h). */
#include "shim/wait/progress.h"

#include "shim/base/work.h"
#include "shim/state/comm_state.h"
#include "shim/state/hooks.h"

#include <sched.h>

#define IDLE_POLLS   64 /* in a row before the processor is given to others */
#define SHARED_POLLS 4  /* the same where ranks share processors */
#define IDLE_LOOKS   64 /* the same of looks at shared memory, by a rank with a core of its own */
#define LOOKS_AN_MPI 16 /* looks at shared memory for one at MPI */

static bool poll_once(void)
{
    bool any = false;
    atomic_fetch_add_explicit(&cpl_context.service.n_polls, 1, memory_order_relaxed);
    CPL_EACH_HOOKS(hooks)
    {
        if (hooks->poll)
            any |= hooks->poll();
    }
    return any;
}

void cpl_progress_update(void)
{
    const struct cpl_context *c = &cpl_context;
    bool on = c->busy.n_managed + c->busy.n_served + c->busy.n_hosts > 0 || c->busy.first_pending;
    if (on && !c->service.on)
        cpl_comm_state_forget_recent();
    cpl_service_switch(on);
}

void cpl_progress_poll(void)
{
    static int n_idle;
    n_idle = poll_once() ? 0 : n_idle + 1;
    if (!cpl_context.busy.first_pending)
        cpl_progress_update();
    if (n_idle >= (cpl_context.shares_cores ? SHARED_POLLS : IDLE_POLLS)) {
        n_idle = 0;
        sched_yield();
    }
}

/* A look at whether anything has come for MPI makes all of MPI go on. */
static void poll_mpi(void)
{
    int flag;
    PMPI_Iprobe(0, 0, cpl_context.comms.self, &flag, MPI_STATUS_IGNORE);
}

void cpl_progress_pause(int *n_idle)
{
    int n = ++*n_idle;
    cpl_work_looked();
    if (cpl_progress_needed()) {
        cpl_progress_poll();
        return;
    }
    if (n % LOOKS_AN_MPI == 0)
        poll_mpi();
    else if (cpl_context.shares_cores || n % IDLE_LOOKS == 0)
        sched_yield();
}

bool cpl_progress_serve(void)
{
    bool any = false;
    CPL_EACH_HOOKS(hooks)
    {
        if (hooks->serve)
            any |= hooks->serve();
    }
    return poll_once() || any;
}

void cpl_progress_leave(void)
{
    CPL_EACH_HOOKS(hooks)
    {
        if (hooks->leave)
            hooks->leave();
    }
}

void cpl_progress_before_wait(void)
{
    cpl_progress_leave();
    if (cpl_progress_needed())
        cpl_progress_poll();
}

int cpl_progress_wait(MPI_Request *request, MPI_Status *status)
{
    int flag = 0;
    if (cpl_context.busy.n_open_batches > 0)
        cpl_progress_leave();
    for (;;) {
        int result = PMPI_Test(request, &flag, status);
        if (result != MPI_SUCCESS || flag)
            return result;
        cpl_progress_poll();
    }
}

int cpl_progress_wait_each(int n, MPI_Request *requests, MPI_Status *statuses)
{
    int result = MPI_SUCCESS;
    for (int k = 0; k < n; k++) {
        MPI_Status status;
        bool is_null = requests[k] == MPI_REQUEST_NULL;
        int code = cpl_progress_wait(&requests[k], &status);
        if (code != MPI_SUCCESS)
            result = MPI_ERR_IN_STATUS;
        if (statuses != MPI_STATUSES_IGNORE) {
            int error = is_null ? statuses[k].MPI_ERROR : code;
            statuses[k] = status;
            statuses[k].MPI_ERROR = error;
        }
    }
    return result;
}

void cpl_progress_gather(MPI_Comm comm)
{
    MPI_Request request;
    if (PMPI_Ibarrier(comm, &request) == MPI_SUCCESS)
        cpl_progress_wait(&request, MPI_STATUS_IGNORE);
}
