/*
 * A preload that makes runs with more ranks than cores mean something:
 *     mpiexec -n 64 -genv LD_PRELOAD /path/libyield.so ./app
 *
 * A rank of MPICH that waits for a message spins in its progress loop. With more ranks than cores
 * it spins away the time slice that the rank it waits for would need, and what one measures is the
 * scheduler: an exchange of 32 ranks on two cores took 66 ms so, and 0.6 ms with this preload.
 * Here a rank whose progress call found nothing to do gives up the processor.
 *
 * Whom that helps depends on the scheduler: the default one of newer Linux kernels mostly lets a
 * process that yields go on (a barrier of 32 ranks on two cores took 7.6 ms on Linux 6.18), the
 * round-robin one puts it behind all others (0.4 ms). So the rank asks for round robin at the
 * lowest real-time priority, which root may; otherwise it stays where it is.
 *
 * It wraps ucp_worker_progress of UCX, which the progress loop of MPICH's ch4:ucx device calls. Use
 * it on both sides of a comparison. With another device nobody calls the wrapper and it does
 * nothing. Cost: a system call per progress call that found nothing, none for the others.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned progress_function(void *worker);

/* As in UCX, but for the worker's type, which is a pointer whatever it points to. */
unsigned ucp_worker_progress(void *worker);

/* Children (a shell that the program starts, say) are not to inherit the policy. */
static void ask_for_round_robin(void)
{
    struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_RR)};
    (void)sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest); /* refused: as before */
}

/* Looked up at the first call; threads that race store the same address. */
static _Atomic(progress_function *) real_progress;

static progress_function *find_progress(void)
{
    progress_function *found = NULL;
    void *symbol = dlsym(RTLD_NEXT, "ucp_worker_progress");

    if (!symbol) {
        /* An MPI library that was itself loaded by dlopen has UCX in a scope of its own. */
        void *library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
        symbol = library ? dlsym(library, "ucp_worker_progress") : NULL;
    }
    if (!symbol) {
        fputs("yield: ucp_worker_progress called, but UCX has none; run without this preload\n",
              stderr);
        abort();
    }
    /* ISO C has no conversion from an object's to a function's address; POSIX promises the copy. */
    memcpy(&found, &symbol, sizeof found);
    ask_for_round_robin();
    atomic_store_explicit(&real_progress, found, memory_order_relaxed);
    return found;
}

unsigned ucp_worker_progress(void *worker)
{
    progress_function *progress = atomic_load_explicit(&real_progress, memory_order_relaxed);

    if (!progress)
        progress = find_progress();
    unsigned n_events = progress(worker);
    if (n_events == 0)
        sched_yield();
    return n_events;
}
