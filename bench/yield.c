/*
 * A preload that makes runs with more ranks than cores mean something:
 *     mpiexec -n 64 -genv LD_PRELOAD /path/libyield.so ./app
 *
 * A rank of MPICH that waits for a message spins in its progress loop. With more ranks than cores
 * it spins away the time slice that the rank it waits for would need, and what one measures is the
 * scheduler: an exchange of 32 ranks on two cores took 66 ms so, and 0.6 ms with this preload.
 * Here a rank whose progress call found nothing to do gives up the processor. yield_ucx.c and
 * yield_fabric.c notice the progress calls.
 *
 * Whom that helps depends on the scheduler: the default one of newer Linux kernels mostly lets a
 * process that yields go on (a barrier of 32 ranks on two cores took 7.6 ms on Linux 6.18). There
 * are two better ones. The one for batch jobs with short time slices (Linux 6.12) needs no rights:
 * each rank that waits asks for it. The round-robin one puts a process that yields behind all
 * others (0.4 ms). It starves what is not real-time, so only a rank asks for it, at the lowest
 * real-time priority, which root may, whose progress calls have found some messages. For a while
 * after that it sleeps where it waits, until others have asked; later it sleeps when it has waited
 * for 10 ms, and stays real-time, since others that are would starve it. (Without that eight ranks
 * took 1 to 2.6 s for their first 100 exchanges, and 64 ranks 1 to 5 s, until the kernel took the
 * processor from real-time processes.)
 *
 * Real-time ranks stay on the processor on which they happen to be, five on one and three on
 * another. So each takes one in turn, where a node has more ranks than processors and the launcher
 * tells which rank of the node it is (hydra does). In MPI_Finalize it has all again.
 *
 * A rank that exchanges with itself (MPI_COMM_SELF) does not wait, though its progress calls find
 * nothing: it must not sleep. Such a rank comes back later than one that waits: 0.7 us and more
 * after a progress call, in place of 0.05 to 0.2 us. So now and then the processor is not given up,
 * and the time is taken. (Neighborhood alltoalls of two ranks with themselves took 1,990 us.)
 *
 * Many MPICHs move messages inside a node past the network library. Then progress calls find
 * little: ranks stay with the batch jobs for the first 100,000 calls, and for good where nothing at
 * all was found. PyPI's MPICHs, eight ranks on two cores, messages of four bytes with all others,
 * medians of three without and with this preload: 3.4.3 12 ms and 67 us, 4.0.3 12 ms and 82 us,
 * 4.2.3 13 ms and 14 us, 4.3.2 13 ms and 14 us. 5.0.2 gives way by itself.
 *
 * Intel MPI yields by itself where there are more ranks than cores, and is left as it is.
 *
 * In MPI_Finalize ranks wait for each other without progress calls, so there they go back to the
 * default scheduler. (Eight ranks on two cores took 2.2 s to start and end without this, and take
 * 0.6 s.)
 *
 * Use it on both sides of a comparison. Cost: a system call per progress call that found nothing,
 * none for the others.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT, SCHED_BATCH, cpu_set_t */
#endif
#include "bench/yield.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ISO C has no conversion from an object's to a function's address; POSIX promises the copy. */
bool cpl_yield_look_up(const char *symbol, const char *library, void *function)
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

static bool look_up_mpi(const char *symbol, void *function)
{
    return cpl_yield_look_up(symbol, "libmpich.so.12", function) ||
           cpl_yield_look_up(symbol, "libmpi.so.12", function);
}

/* MPI_THREAD_MULTIPLE: of MPICH, and of the standard's ABI. */
#define MULTIPLE     3
#define MULTIPLE_ABI 4096

#define NS                1000000000LL
#define SETTLING_NS       (NS / 20) /* in which others may not have asked yet */
#define IDLE_BEFORE_BATCH 16
#define IDLE_BEFORE_SLEEP 16
#define SLEEP_NS          100000
#define LONG_NS           (NS / 100) /* a rank that waits longer sleeps, too, and for longer */
#define LONG_SLEEP_NS     2000000
#define IDLE_BEFORE_CLOCK 64
#define IDLE_PER_PROBE    16
#define SOON_NS           300    /* a rank that comes back later does not wait */
#define SURE              2      /* probes beyond those that say the contrary */
#define SLICE_NS          100000 /* the shortest that Linux grants */
#define EVENTS_BEFORE     64     /* progress calls that found something, before round robin */
#define FEW_EVENTS        8      /* the same for a rank that mostly waits: after so many calls */
#define CALLS_BEFORE      100000

/* UNCHANGED: it is that of others and stays so. */
enum scheduler { OF_OTHERS, FOR_BATCH, ROUND_ROBIN, UNCHANGED };

static _Atomic(enum scheduler) present = OF_OTHERS;
static atomic_bool refused;     /* round robin */
static atomic_llong settles_ns; /* when others will have asked; 0: now, or not asked yet */
static atomic_uint n_idle;      /* calls in a row that found nothing */
static atomic_llong idle_ns;    /* since when, about */
static atomic_llong left_ns;    /* when the last probe began */
static atomic_int n_soon;       /* probes that say the rank waits, less others; to SURE */
static atomic_uint n_found;     /* calls that found something; not counted to the end */
static atomic_uint n_calls;     /* that found nothing, while for batch jobs */

static enum scheduler get_present(void)
{
    return atomic_load_explicit(&present, memory_order_relaxed);
}

static void set_present(enum scheduler scheduler)
{
    atomic_store_explicit(&present, scheduler, memory_order_relaxed);
}

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return NS * now.tv_sec + now.tv_nsec;
}

/* As Linux has it since 3.14; older C libraries have no declaration. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

/* With short slices a rank that yields loses its turn by one of them. Linux before 6.12 has none,
 * before 3.14 nothing happens. */
static void go_batch(void)
{
    const struct attributes wanted = {.size = sizeof wanted,
                                      .policy = SCHED_BATCH,
                                      .nice = getpriority(PRIO_PROCESS, 0),
                                      .runtime = SLICE_NS};
    (void)syscall(SYS_sched_setattr, 0, &wanted, 0);
    set_present(FOR_BATCH);
}

/* A number that the launcher has set; 0: it has not. */
static int number_of(const char *variable)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : 0;
}

/* The processors that the rank may use, once it has taken one of them. */
static cpu_set_t all_processors;
static bool took_processor;

/* Linux does not spread real-time processes evenly: eight ranks stayed five and three on two cores,
 * for whole runs that took 1.2 times as long. So where a node has more ranks than processors each
 * rank takes one, in turn. */
static void take_processor(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all_processors, &all_processors) != 0)
        return;
    int n = CPU_COUNT(&all_processors), k = number_of("MPI_LOCALRANKID") % n;
    if (n < 2 || number_of("MPI_LOCALNRANKS") <= n)
        return;
    for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all_processors) && k-- == 0)
            CPU_SET(cpu, &one);
    took_processor = sched_setaffinity(0, sizeof one, &one) == 0;
}

/* Children (a shell that the program starts, say) are not to inherit the policy. */
static bool go_round_robin(void)
{
    const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_RR)};
    if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) != 0)
        return false;
    set_present(ROUND_ROBIN);
    take_processor();
    return true;
}

/* Once MPI is initialised. Where several threads call MPI the scheduler stays as it is, because
 * MPI's lock is held here, and a thread that waits for it would not be let in before this one takes
 * it again. Long waits are slept through there: without, eight ranks on two busy cores hung. */
static bool may_change(void)
{
    int (*initialized)(int *), (*query)(int *), flag = 0, level = 0;
    if (look_up_mpi("MPI_Initialized", &initialized) && look_up_mpi("PMPI_Query_thread", &query)) {
        initialized(&flag);
        if (!flag)
            return false;
        query(&level);
    }
    if (level != MULTIPLE && level != MULTIPLE_ABI)
        return true;
    set_present(UNCHANGED);
    return false;
}

static void ask_for_round_robin(void)
{
    if (get_present() == ROUND_ROBIN || get_present() == UNCHANGED ||
        atomic_load_explicit(&refused, memory_order_relaxed) ||
        (get_present() == OF_OTHERS && !may_change()))
        return;
    if (go_round_robin())
        atomic_store_explicit(&settles_ns, now_ns() + SETTLING_NS, memory_order_relaxed);
    else
        atomic_store_explicit(&refused, true, memory_order_relaxed);
}

/* Whether progress calls have found so many messages that they can be relied upon. */
static bool sees_messages(unsigned least)
{
    return atomic_load_explicit(&n_found, memory_order_relaxed) > least;
}

static void note_event(void)
{
    atomic_store_explicit(&n_idle, 0, memory_order_relaxed);
    if (!sees_messages(EVENTS_BEFORE))
        atomic_fetch_add_explicit(&n_found, 1, memory_order_relaxed);
    else
        ask_for_round_robin();
}

/* Whether this rank has found nothing for so long that it may be waiting for one that is not
 * real-time. */
static bool waits_long(unsigned idle)
{
    if (idle == IDLE_BEFORE_CLOCK)
        atomic_store_explicit(&idle_ns, now_ns(), memory_order_relaxed);
    return idle > IDLE_BEFORE_CLOCK &&
           now_ns() - atomic_load_explicit(&idle_ns, memory_order_relaxed) > LONG_NS;
}

static void sleep_for(long ns)
{
    const struct timespec pause = {.tv_nsec = ns};
    nanosleep(&pause, NULL);
}

static void settle(void)
{
    sleep_for(SLEEP_NS);
    if (now_ns() > atomic_load_explicit(&settles_ns, memory_order_relaxed))
        atomic_store_explicit(&settles_ns, 0, memory_order_relaxed);
}

/* A rank that asks for nothing yet, or only waits for long. */
static void note_waiting(unsigned idle)
{
    if (get_present() == OF_OTHERS && idle % IDLE_BEFORE_BATCH == IDLE_BEFORE_BATCH - 1 &&
        may_change())
        go_batch();
    if (get_present() == FOR_BATCH && sees_messages(FEW_EVENTS) &&
        atomic_fetch_add_explicit(&n_calls, 1, memory_order_relaxed) >= CALLS_BEFORE)
        ask_for_round_robin();
}

/* Every so many calls a rank is not made to give way, to see when it comes back; that the next call
 * tells. Returns whether this is such a call. */
static bool probe(unsigned idle)
{
    long long ns = now_ns();
    int n = atomic_load_explicit(&n_soon, memory_order_relaxed);
    if (idle % IDLE_PER_PROBE == 0)
        atomic_store_explicit(&left_ns, ns, memory_order_relaxed);
    if (idle % IDLE_PER_PROBE != 1)
        return idle % IDLE_PER_PROBE == 0;
    bool soon = ns - atomic_load_explicit(&left_ns, memory_order_relaxed) <= SOON_NS;
    if (soon ? n < SURE : n > -SURE)
        atomic_store_explicit(&n_soon, soon ? n + 1 : n - 1, memory_order_relaxed);
    return false;
}

/* Of several threads any may be counted, which does not matter. */
static void give_way(void)
{
    unsigned idle = atomic_fetch_add_explicit(&n_idle, 1, memory_order_relaxed);
    note_waiting(idle);
    bool may_sleep = get_present() == ROUND_ROBIN || get_present() == UNCHANGED;
    bool long_idle = may_sleep && waits_long(idle);
    if (long_idle && probe(idle))
        return;
    if (long_idle && atomic_load_explicit(&n_soon, memory_order_relaxed) > 0)
        sleep_for(sees_messages(EVENTS_BEFORE) ? LONG_SLEEP_NS : SLEEP_NS);
    else if (get_present() == ROUND_ROBIN && idle >= IDLE_BEFORE_SLEEP &&
             atomic_load_explicit(&settles_ns, memory_order_relaxed))
        settle();
    else
        sched_yield();
}

void cpl_yield_progressed(bool found)
{
    if (found)
        note_event();
    else
        give_way();
}

/* Carpool (shim/wait/progress.c) says when it waits, since its looks at MPI are further apart than
 * a waiting MPI's, and when something has come through shared memory, of which MPI sees nothing:
 * the rank has not waited long then. */
void cpl_yield_waits(bool waits);

void cpl_yield_waits(bool waits)
{
    if (waits)
        atomic_store_explicit(&n_soon, SURE, memory_order_relaxed);
    else
        atomic_store_explicit(&n_idle, 0, memory_order_relaxed);
}

void cpl_yield_end(void)
{
    const struct sched_param none = {.sched_priority = 0};
    if (get_present() != FOR_BATCH && get_present() != ROUND_ROBIN)
        return;
    (void)sched_setscheduler(0, SCHED_OTHER, &none);
    if (took_processor)
        (void)sched_setaffinity(0, sizeof all_processors, &all_processors);
    set_present(OF_OTHERS);
}
