/* UCX, for libyield.so: wraps ucp_worker_progress, which the progress loop of MPICH's ch4:ucx
 * device calls. With another device nobody calls the wrapper. */
#include "bench/yield.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define UCP "libucp.so.0"

typedef unsigned progress_function(void *worker);

/* As in UCX, but for the worker's type, which is a pointer whatever it points to. */
unsigned ucp_worker_progress(void *worker);

/* Looked up at the first call; threads that race store the same address. */
static _Atomic(progress_function *) real_progress;

static progress_function *find_progress(void)
{
    progress_function *found;
    if (!cpl_yield_look_up("ucp_worker_progress", UCP, &found)) {
        fputs("yield: ucp_worker_progress called, but UCX has none; run without this preload\n",
              stderr);
        abort();
    }
    atomic_store_explicit(&real_progress, found, memory_order_relaxed);
    return found;
}

unsigned ucp_worker_progress(void *worker)
{
    progress_function *progress = atomic_load_explicit(&real_progress, memory_order_relaxed);

    if (!progress)
        progress = find_progress();
    unsigned n_events = progress(worker);
    cpl_yield_progressed(n_events > 0);
    return n_events;
}

/* As in UCX. MPICH calls it in MPI_Finalize, before its last waits, which spin. */
void ucp_worker_destroy(void *worker);

void ucp_worker_destroy(void *worker)
{
    void (*destroy)(void *);
    cpl_yield_end();
    if (cpl_yield_look_up("ucp_worker_destroy", UCP, &destroy))
        destroy(worker);
}
