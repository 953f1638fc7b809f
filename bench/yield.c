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
 * Such a rank starves what is not real-time, as ranks are that have not left MPI_Init or have not
 * asked yet. So it asks when it has received some messages, or called often, and for a while after
 * that it sleeps where it waits, until others have asked; later it sleeps when it has waited for 10
 * ms. (Without that eight ranks took 1 to 2.6 s for their first 100 exchanges, and 64 ranks 1 to 5
 * s, until the kernel took the processor from real-time processes.) In MPI_Finalize ranks wait for
 * each other without progress calls, so there they go back to the default scheduler. (Eight ranks
 * on two cores took 2.2 s to start and end without this, and take 0.6 s.)
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
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned progress_function(void *worker);

/* As in UCX, but for the worker's type, which is a pointer whatever it points to. */
unsigned ucp_worker_progress(void *worker);

/* ISO C has no conversion from an object's to a function's address; POSIX promises the copy. */
static bool look_up(const char *symbol, const char *library, void *function)
{
    void *found = dlsym(RTLD_NEXT, symbol);
    if (!found) {
        /* An MPI library that was itself loaded by dlopen has its symbols in a scope of its own. */
        void *loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
        found = loaded ? dlsym(loaded, symbol) : NULL;
    }
    memcpy(function, &found, sizeof found);
    return found;
}

/* Looked up at the first call; threads that race store the same address. */
static _Atomic(progress_function *) real_progress;

static progress_function *find_progress(void)
{
    progress_function *found;
    if (!look_up("ucp_worker_progress", "libucp.so.0", &found)) {
        fputs("yield: ucp_worker_progress called, but UCX has none; run without this preload\n",
              stderr);
        abort();
    }
    atomic_store_explicit(&real_progress, found, memory_order_relaxed);
    return found;
}

#define MULTIPLE 3 /* MPICH's MPI_THREAD_MULTIPLE */

#define NS                1000000000LL
#define SETTLING_NS       (NS / 20) /* in which others may not have asked yet */
#define IDLE_BEFORE_SLEEP 16
#define SLEEP_NS          100000
#define LONG_NS           (NS / 100) /* a rank that waits longer sleeps, too, and for longer */
#define LONG_SLEEP_NS     2000000
#define IDLE_BEFORE_CLOCK 64

static atomic_bool asked;
static atomic_llong settles_ns;      /* when they will have asked; 0: now, or not asked yet */
static atomic_uint n_idle;           /* calls in a row that found nothing */
static atomic_llong idle_ns;         /* since when, about */
static atomic_uint n_calls, n_found; /* until it asked */

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return NS * now.tv_sec + now.tv_nsec;
}

/* Children (a shell that the program starts, say) are not to inherit the policy. Once MPI is
 * initialised: where several threads call MPI it stays as it is, because MPI's lock is held here,
 * and a thread that waits for it would not be let in before this one takes it again. */
static void ask_for_round_robin(void)
{
    const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_RR)};
    int (*initialized)(int *), (*query)(int *), flag = 0, level = 0;
    if (look_up("MPI_Initialized", "libmpich.so.12", &initialized) &&
        look_up("PMPI_Query_thread", "libmpich.so.12", &query)) {
        initialized(&flag);
        if (!flag)
            return;
        query(&level);
    }
    atomic_store_explicit(&asked, true, memory_order_relaxed);
    if (level < MULTIPLE &&
        sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) == 0) /* or as before */
        atomic_store_explicit(&settles_ns, now_ns() + SETTLING_NS, memory_order_relaxed);
}

/* Calls, and calls that found something, before it asks; at the earliest after MPI_Init. */
#define CALLS_BEFORE  100000
#define EVENTS_BEFORE 64

static void note_call(unsigned n_events)
{
    unsigned calls = atomic_fetch_add_explicit(&n_calls, 1, memory_order_relaxed);
    unsigned found = atomic_fetch_add_explicit(&n_found, n_events > 0, memory_order_relaxed);
    if (calls >= CALLS_BEFORE || found >= EVENTS_BEFORE)
        ask_for_round_robin();
}

/* Whether this rank has found nothing for so long that it may be waiting for one that has not
 * asked. */
static bool waits_long(unsigned idle)
{
    if (idle == IDLE_BEFORE_CLOCK)
        atomic_store_explicit(&idle_ns, now_ns(), memory_order_relaxed);
    return idle > IDLE_BEFORE_CLOCK &&
           now_ns() - atomic_load_explicit(&idle_ns, memory_order_relaxed) > LONG_NS;
}

/* Of several threads any may be counted, which does not matter. */
static void give_way(void)
{
    long long until = atomic_load_explicit(&settles_ns, memory_order_relaxed);
    unsigned idle = atomic_fetch_add_explicit(&n_idle, 1, memory_order_relaxed);
    bool is_long = waits_long(idle);
    if ((until && idle >= IDLE_BEFORE_SLEEP) || is_long) {
        const struct timespec pause = {.tv_nsec = is_long ? LONG_SLEEP_NS : SLEEP_NS};
        nanosleep(&pause, NULL);
        if (until && now_ns() > until)
            atomic_store_explicit(&settles_ns, 0, memory_order_relaxed);
    } else {
        sched_yield();
    }
}

/* Carpool says so when something has come through shared memory, of which MPI sees nothing: the
 * rank has not waited long then (shim/wait/progress.c). */
void cpl_yield_no_wait(void);

void cpl_yield_no_wait(void)
{
    atomic_store_explicit(&n_idle, 0, memory_order_relaxed);
}

unsigned ucp_worker_progress(void *worker)
{
    progress_function *progress = atomic_load_explicit(&real_progress, memory_order_relaxed);

    if (!progress)
        progress = find_progress();
    unsigned n_events = progress(worker);
    if (!atomic_load_explicit(&asked, memory_order_relaxed))
        note_call(n_events);
    if (n_events == 0)
        give_way();
    else
        atomic_store_explicit(&n_idle, 0, memory_order_relaxed);
    return n_events;
}

/* As in UCX. MPICH calls it in MPI_Finalize, before its last waits, which spin. */
void ucp_worker_destroy(void *worker);

void ucp_worker_destroy(void *worker)
{
    const struct sched_param none = {.sched_priority = 0};
    void (*destroy)(void *);
    (void)sched_setscheduler(0, SCHED_OTHER, &none);
    if (look_up("ucp_worker_destroy", "libucp.so.0", &destroy))
        destroy(worker);
}
