/* The helper thread (service.h). */
#include "shim/state/service.h"

#include "shim/base/log.h"
#include "shim/state/context.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOK_US 4000 /* between two checks whether the program polls */
#define BUSY_US 100  /* after a check that found something to do */
#define SPINS   200  /* before the program sleeps until the thread is done */

enum { ASLEEP, AWAKE, STOPS };

/* The thread. It belongs to the process, not to MPI's state. */
static struct {
    bool running;
    pid_t process; /* the process that has the thread: a child of fork has none */
    pthread_t thread;
    atomic_int state; /* AWAKE: there is something to serve */
    bool (*work)(void);
    int policy; /* of the program's thread: next to a real-time one the helper would starve */
    struct sched_param priority;
} helper;

/* `timeout` of a wait: NULL: for ever. */
static void futex(atomic_int *word, int operation, int value, const struct timespec *timeout)
{
    (void)syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

void cpl_service_wait(void)
{
    struct cpl_service *s = &cpl_context.service;
    for (int k = 0; k < SPINS; k++)
        if (!atomic_load_explicit(&s->serving, memory_order_acquire))
            return;
    for (;;) {
        int now = 1;
        atomic_compare_exchange_strong(&s->serving, &now, 2);
        if (now == 0)
            return;
        futex(&s->serving, FUTEX_WAIT_PRIVATE, 2, NULL);
    }
}

/* ---- the lock of programs with several threads */

static __thread char me __attribute__((tls_model("initial-exec")));

void *cpl_service_me(void)
{
    return &me;
}

static bool is_mine(struct cpl_service_lock *l)
{
    return atomic_load_explicit(&l->owner, memory_order_relaxed) == &me;
}

static void take(struct cpl_service_lock *l)
{
    int ticket = atomic_fetch_add(&l->next, 1), now;
    for (int k = 0; (now = atomic_load(&l->serving)) != ticket; k++)
        if (k >= SPINS)
            futex(&l->serving, FUTEX_WAIT_PRIVATE, now, NULL);
    atomic_store_explicit(&l->owner, &me, memory_order_relaxed);
}

static void give_back(struct cpl_service_lock *l)
{
    atomic_store_explicit(&l->owner, NULL, memory_order_relaxed);
    int now =
        atomic_load_explicit(&l->serving, memory_order_relaxed) + 1; /* nobody else writes it */
    atomic_store(&l->serving, now);
    if (atomic_load(&l->next) != now)
        futex(&l->serving, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
}

void cpl_service_share(void)
{
    struct cpl_service *s = &cpl_context.service;
    take(&cpl_context.lock);
    cpl_context.lock.n_inside = 1;
    s->shared = true;
}

void cpl_service_lock(void)
{
    struct cpl_service *s = &cpl_context.service;
    if (!is_mine(&cpl_context.lock)) {
        take(&cpl_context.lock);
        cpl_context.lock.n_inside++;
        s->depth = 0;
    }
    s->depth++;
}

void cpl_service_unlock(void)
{
    struct cpl_service *s = &cpl_context.service;
    if (--s->depth > 0)
        return;
    cpl_context.lock.n_inside--;
    give_back(&cpl_context.lock);
}

/* By the owner; the helper thread looks at it without the lock. */
static void count_outside(struct cpl_service_lock *l, int by)
{
    int n = atomic_load_explicit(&l->n_outside, memory_order_relaxed);
    atomic_store_explicit(&l->n_outside, n + by, memory_order_relaxed);
}

int cpl_service_step_out(void)
{
    struct cpl_service *s = &cpl_context.service;
    if (!is_mine(&cpl_context.lock) || cpl_context.lock.kept)
        return 0;
    int depth = s->depth;
    count_outside(&cpl_context.lock, 1);
    give_back(&cpl_context.lock);
    return depth;
}

void cpl_service_step_in(int depth)
{
    struct cpl_service *s = &cpl_context.service;
    take(&cpl_context.lock);
    s->depth = depth;
    count_outside(&cpl_context.lock, -1);
}

void cpl_service_give_way(void)
{
    if (atomic_load_explicit(&cpl_context.lock.next, memory_order_relaxed) ==
        atomic_load_explicit(&cpl_context.lock.serving, memory_order_relaxed) + 1)
        return;
    CPL_OUTSIDE; /* for a moment */
}

/* ---- the thread */

static bool do_work(struct cpl_service *s)
{
    s->by_thread = true;
    bool any = helper.work();
    s->by_thread = false;
    return any;
}

/* Does the program's work, in a program with several threads, if none of them has the lock. */
static bool serve_shared(struct cpl_service *s)
{
    struct cpl_service_lock *l = &cpl_context.lock;
    int now = atomic_load(&l->serving);
    if (!atomic_compare_exchange_strong(&l->next, &now, now + 1))
        return false;
    atomic_store_explicit(&l->owner, &me, memory_order_relaxed);
    bool any = s->on && do_work(s);
    give_back(l);
    return any;
}

/* Does the program's work if it is outside MPI. Returns whether there was any. */
static bool serve(struct cpl_service *s)
{
    bool any = false;
    if (s->shared)
        return serve_shared(s);
    atomic_store(&s->serving, 1);
    if (s->expedited)
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0);
    else
        atomic_thread_fence(memory_order_seq_cst);
    if (s->on && !atomic_load_explicit(&s->inside, memory_order_acquire))
        any = do_work(s);
    if (atomic_exchange(&s->serving, 0) == 2)
        futex(&s->serving, FUTEX_WAKE_PRIVATE, 1, NULL);
    return any;
}

/* Sleeps for a while, or until there is something to serve. Returns whether to go on. */
static bool rest(long us)
{
    const struct timespec timeout = {.tv_nsec = us * 1000};
    while (atomic_load(&helper.state) == ASLEEP)
        futex(&helper.state, FUTEX_WAIT_PRIVATE, ASLEEP, NULL);
    futex(&helper.state, FUTEX_WAIT_PRIVATE, AWAKE, &timeout);
    return atomic_load(&helper.state) != STOPS;
}

static void *run(void *unused)
{
    struct cpl_service *s = &cpl_context.service;
    unsigned seen = 0;
    bool any = false;
    (void)unused;
    (void)pthread_setschedparam(pthread_self(), helper.policy, &helper.priority);
    for (;;) {
        /* a thread of the program may wait inside MPI, where it cannot poll */
        bool awaited = atomic_load_explicit(&cpl_context.lock.n_outside, memory_order_relaxed) > 0;
        if (!rest(any || awaited ? BUSY_US : LOOK_US))
            return NULL;
        unsigned n = atomic_load_explicit(&s->n_polls, memory_order_relaxed);
        any = n == seen && serve(s);
        seen = atomic_load_explicit(&s->n_polls, memory_order_relaxed);
    }
}

/* Starts the thread with signals blocked: they are the program's. Those that its own doing raises
 * are not: the program's handlers may lift a protection of memory and go on. */
static bool start_thread(void)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t all, before;
    helper.policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
    sched_getparam(0, &helper.priority);
    atomic_store(&helper.state, ASLEEP);
    sigfillset(&all);
    for (size_t k = 0; k < sizeof own / sizeof *own; k++)
        sigdelset(&all, own[k]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&helper.thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0;
}

/* The main program comes first. */
static int is_within_program(struct dl_phdr_info *object, size_t size, void *address)
{
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD &&
            (uintptr_t)address - object->dlpi_addr - segment->p_vaddr < segment->p_memsz)
            return 1;
    }
    return -1;
}

/* Of the C library, from its version 2.32 on. */
extern char __libc_single_threaded __attribute__((weak));

static void expedite(void)
{
    cpl_context.service.expedited =
        cpl_context.service.expedited ||
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) == 0;
}

void cpl_service_begin(void)
{
    if (&__libc_single_threaded && __libc_single_threaded)
        expedite();
}

/* Not where a program without a fixed place only refers to libc's. */
void cpl_service_look(void)
{
    void *own = dlsym(RTLD_DEFAULT, "malloc");
    const ElfW(Sym) *symbol = NULL;
    Dl_info found;
    cpl_context.service.barred = cpl_context.thread.raised && own &&
                                 dl_iterate_phdr(is_within_program, own) > 0 &&
                                 dladdr1(own, &found, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
                                 symbol->st_shndx != SHN_UNDEF;
}

bool cpl_service_prepare(bool (*work)(void))
{
    if (helper.running)
        return true;
    if (cpl_context.service.barred)
        return false;
    helper.work = work;
    expedite();
    helper.process = getpid();
    helper.running = start_thread();
    if (helper.running) /* a program may exit without MPI_Finalize, and libraries then end */
        (void)atexit(cpl_service_end);
    if (!helper.running)
        cpl_log(CPL_LOG_WARN, "service",
                "no thread can be started: messages and nonblocking calls are left to MPI");
    return helper.running;
}

static void turn(int state)
{
    atomic_store(&helper.state, state);
    futex(&helper.state, FUTEX_WAKE_PRIVATE, 1, NULL);
}

void cpl_service_switch(bool on)
{
    struct cpl_service *s = &cpl_context.service;
    if (on == s->on)
        return;
    if (on && !s->shared)
        atomic_store(&s->inside, true); /* until the outermost bracket ends */
    s->on = on;
    if (helper.running)
        turn(on ? AWAKE : ASLEEP);
    if (!on)
        atomic_store(&s->inside, false);
}

void cpl_service_end(void)
{
    if (!helper.running || helper.process != getpid())
        return;
    turn(STOPS);
    pthread_join(helper.thread, NULL);
    helper.running = false;
}
