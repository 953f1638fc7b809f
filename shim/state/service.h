/* Serving other ranks while the program is not in MPI.
 *
 * A rank that forwards for others, or holds messages that the program takes for sent, must go on
 * doing so whatever the program does (doc/point-to-point.md, Progress). While it is outside MPI, a
 * helper thread wakes from time to time and polls. The two never call MPI at the same time: every
 * intercepted call that does not pass straight on to MPI is bracketed by CPL_INSIDE, and every
 * function of MPI that could disturb the thread is intercepted (others.def, harmless.def).
 *
 * Cost: a counter while `on` is false; else two stores and a load per call, because the thread pays
 * for the ordering of memory accesses (membarrier). The thread sleeps for LOOK_US and then works
 * only if the program has not polled since.
 *
 * In a program with MPI_THREAD_MULTIPLE (`shared`) the bracket takes a lock, and so does the helper
 * thread. Nobody keeps it while waiting for another thread or rank: calls that wait inside MPI are
 * made within CPL_OUTSIDE, which gives it back meanwhile, and a wait that polls hands it over
 * between two looks (cpl_service_give_way). So what other threads may change must be looked at
 * again after each of these. Only who settles something with all ranks keeps it (meet/agree.h).
 * Threads get the lock in the order in which they have asked for it. */
#ifndef CARPOOL_SERVICE_H
#define CARPOOL_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The lock of programs whose threads call at the same time. */
struct cpl_service_lock {
    atomic_int next;       /* number of the next thread that asks for it */
    atomic_int serving;    /* number of the thread that has it, or may have it */
    _Atomic(void *) owner; /* NULL: nobody has it (cpl_service_me) */
    atomic_int n_outside;  /* threads that wait inside MPI */
    int n_inside;          /* threads in bracketed calls, waiting or not; the owner's to change */
    bool kept; /* the owner keeps it while it waits, and does not step out; its to change */
};

struct cpl_service {     /* with `shared`, cpl_context.lock is used */
    int depth;           /* nesting depth of the program's bracketed calls; of the lock's owner */
    bool shared;         /* several threads may call; alike on all ranks, from start to end */
    atomic_bool on;      /* something is forwarded, held or under way: nothing passes unseen */
    bool barred;         /* there must be no thread (cpl_service_look) */
    bool by_thread;      /* the thread does the program's work just now */
    bool expedited;      /* the thread orders memory accesses for both sides (membarrier) */
    atomic_bool inside;  /* the program is in a bracketed call; kept while `on` */
    atomic_int serving;  /* the thread is at work: 1, or 2 when the program waits for it */
    atomic_uint n_polls; /* polls by the program and the thread */
};

/* Before MPI is initialised, and starts threads: prepares what the kernel takes 20 ms and more for
 * when there are several. Local. */
void cpl_service_begin(void);

/* Finds out whether there must be no thread: a program with one may have a malloc of its own
 * without locks. Then messages and nonblocking collectives are MPI's. Local; at the start. */
void cpl_service_look(void);

/* Starts the thread, unless it runs or is barred. Returns false when that fails: then nothing may
 * be managed. `work` does the work and returns whether there was any; it never waits. Local; call
 * it in a bracketed call. */
bool cpl_service_prepare(bool (*work)(void));

/* Turns service on or off. Local; call it in a bracketed call. */
void cpl_service_switch(bool on);

/* Ends the thread, at the end of MPI. */
void cpl_service_end(void);

/* The slow part of entering a bracket: waits until the thread is done. */
void cpl_service_wait(void);

/* From here on brackets take the lock; the calling thread, in a bracketed call, has it. Local. */
void cpl_service_share(void);

/* Brackets while `shared`; the owner may take the lock again. */
void cpl_service_lock(void);
void cpl_service_unlock(void);

/* Gives the lock back, and takes it again as often as it was taken, which the first returns; 0: the
 * calling thread has no lock. */
int cpl_service_step_out(void);
void cpl_service_step_in(int depth);

/* In a wait that polls, while `shared`: lets other threads have the lock if any waits for it. */
void cpl_service_give_way(void);

/* What names the calling thread. */
void *cpl_service_me(void);

static inline int cpl_service_enter(struct cpl_service *s)
{
    if (__builtin_expect(s->shared, 0)) {
        cpl_service_lock();
        return 0;
    }
    if (s->depth++ > 0 || !atomic_load_explicit(&s->on, memory_order_relaxed))
        return 0;
    atomic_store_explicit(&s->inside, true, memory_order_relaxed);
    if (s->expedited)
        atomic_signal_fence(memory_order_seq_cst);
    else
        atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&s->serving, memory_order_acquire))
        cpl_service_wait();
    return 0;
}

static inline void cpl_service_leave(struct cpl_service **s)
{
    if (__builtin_expect((*s)->shared, 0)) {
        cpl_service_unlock();
        return;
    }
    if (--(*s)->depth == 0 && atomic_load_explicit(&(*s)->on, memory_order_relaxed))
        atomic_store_explicit(&(*s)->inside, false, memory_order_release);
}

/* From here to the end of the block the program is in MPI. */
#define CPL_INSIDE                                                                                 \
    __attribute__((cleanup(cpl_service_leave))) struct cpl_service *cpl_inside_ =                  \
        &cpl_context.service;                                                                      \
    cpl_service_enter(cpl_inside_)

/* The opposite, where a call may wait inside MPI: from here to the end of the block other threads
 * of the program may be in bracketed calls. Where no threads are expected it costs a branch. */
#define CPL_OUTSIDE                                                                                \
    __attribute__((cleanup(cpl_service_return))) int cpl_outside_ =                                \
        cpl_context.service.shared ? cpl_service_step_out() : 0

/* The same for one call; its result. */
#define CPL_AWAY(call)                                                                             \
    __extension__({                                                                                \
        CPL_OUTSIDE;                                                                               \
        call;                                                                                      \
    })

static inline void cpl_service_return(const int *depth)
{
    if (*depth > 0)
        cpl_service_step_in(*depth);
}

#endif
