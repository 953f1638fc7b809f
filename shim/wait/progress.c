/* Polling and waiting (progress.h). */
#include "shim/wait/progress.h"

#include "shim/base/work.h"
#include "shim/state/comm_state.h"
#include "shim/state/hooks.h"

#include <sched.h>

#define IDLE_LOOKS 64 /* in a row before a rank with a core of its own gives it to others */
#define NO_MPI     0
#define MPI_LOOKS  4 /* in a row before a rank that shares its core gives it to others */
/* Looks at shared memory for one at MPI: where ranks share cores, and where they do not. There a
 * look at MPI takes as long as a message inside the node. */
#define LOOKS_SHARED 16
#define LOOKS_OWN    64
#define SECONDS_AWAY 2e-6 /* since the last look: others have had the core */

/* bench/yield.c, where that is preloaded. */
extern void cpl_yield_waits(bool waits) __attribute__((weak));

static void tell_yield(bool waits)
{
    if (cpl_yield_waits)
        cpl_yield_waits(waits);
}

void cpl_progress_no_wait(void)
{
    tell_yield(false);
}

/* A look at whether anything has come for MPI makes all of MPI go on. */
static void poll_mpi(void)
{
    int flag;
    cpl_progress_looked();
    PMPI_Iprobe(MPI_ANY_SOURCE, cpl_context.tag_ub, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static bool is_turn_of_mpi(int n_idle)
{
    return n_idle % (cpl_context.machine.shares_cores ? LOOKS_SHARED : LOOKS_OWN) == 0;
}

/* What is polled may be in shared memory alone: others may wait for MPI to go on at this rank. */
static bool poll_once(void)
{
    bool any = false;
    atomic_fetch_add_explicit(&cpl_context.service.n_polls, 1, memory_order_relaxed);
    CPL_EACH_HOOKS(hooks)
    {
        if (hooks->poll)
            any |= hooks->poll();
    }
    if (!any && is_turn_of_mpi(++cpl_context.busy.idle.n_polls))
        poll_mpi();
    return any;
}

void cpl_progress_update(void)
{
    const struct cpl_context *c = &cpl_context;
    bool on = c->busy.n_managed + c->busy.n_served > 0 || c->busy.first_pending ||
              c->requests.buffered.flushes;
    if (on && !c->service.on)
        cpl_comm_state_forget_recent();
    cpl_service_switch(on);
}

/* After a look that found nothing, the n-th in a row. Where ranks share cores a rank that looks on
 * keeps others from what it waits for, so it gives its core away: after each look at shared memory,
 * which sees all that has come, and after some at MPI, which goes on by steps. */
static void give_way(int n, int patience)
{
    if (n % (cpl_context.machine.shares_cores ? patience : IDLE_LOOKS) == 0)
        sched_yield();
}

/* The same where MPI was looked at, which may give the core away as well: that it has is seen by
 * the time that has passed. */
static void give_way_unless_given(int n, int patience)
{
    struct cpl_idle *idle = &cpl_context.busy.idle;
    if (!cpl_context.machine.shares_cores) {
        give_way(n, patience);
        return;
    }
    idle->n_kept = PMPI_Wtime() - idle->last < SECONDS_AWAY ? idle->n_kept + 1 : 0;
    if (idle->n_kept > 0)
        give_way(idle->n_kept, patience);
    idle->last = PMPI_Wtime();
}

/* patience: as give_way; NO_MPI: 1, and the caller has not looked at MPI. */
static void poll(int patience)
{
    int *n_idle = &cpl_context.busy.idle.n;
    const unsigned n_looks = cpl_context.busy.n_looks_at_mpi;
    *n_idle = poll_once() ? 0 : *n_idle + 1;
    tell_yield(*n_idle > 0);
    if (!cpl_context.busy.first_pending)
        cpl_progress_update();
    if (*n_idle > 0 && patience == NO_MPI && n_looks == cpl_context.busy.n_looks_at_mpi)
        give_way(*n_idle, 1);
    else if (*n_idle > 0)
        give_way_unless_given(*n_idle, patience == NO_MPI ? 1 : patience);
    if (cpl_context.service.shared)
        cpl_service_give_way();
}

void cpl_progress_poll(void)
{
    poll(1);
}

void cpl_progress_await(void)
{
    poll(NO_MPI);
}

void cpl_progress_pause(int n)
{
    cpl_work_looked(n);
    if (n == 1) {
        cpl_progress_no_wait();
        cpl_progress_leave();
    }
    if (cpl_progress_needed()) {
        cpl_progress_poll();
        return;
    }
    if (is_turn_of_mpi(n))
        poll_mpi();
    else
        give_way(n, 1);
    if (cpl_context.service.shared)
        cpl_service_give_way();
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

void cpl_progress_send_batches(void)
{
    CPL_CALL_HOOKS(leave, ());
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
    cpl_progress_leave();
    for (;;) {
        int result = PMPI_Test(request, &flag, status);
        if (result != MPI_SUCCESS || flag)
            return result;
        poll(MPI_LOOKS);
    }
}

int cpl_progress_wait_each(int n, MPI_Request *requests, MPI_Status *statuses)
{
    int result = MPI_SUCCESS;
    for (int k = 0, flag; k < n; k++) {
        MPI_Status *status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[k];
        if (requests[k] == MPI_REQUEST_NULL) { /* whether its error is set depends on the MPI */
            PMPI_Testall(1, &requests[k], &flag, status);
            continue;
        }
        int code = cpl_progress_wait(&requests[k], status);
        if (code != MPI_SUCCESS)
            result = MPI_ERR_IN_STATUS;
        if (status != MPI_STATUS_IGNORE)
            status->MPI_ERROR = code;
    }
    return result;
}
