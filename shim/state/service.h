/* Serving other ranks while the program is not in MPI.
 *
 * A rank that forwards for others, or holds messages that the program takes for sent, must go on
 * doing so whatever the program does: compute, wait for a file, spin on memory. While the program
 * is in a call that waits, that call polls (pt2pt.h). While it is outside MPI, a helper thread
 * wakes from time to time and does the same work. The two never call MPI at the same time, so MPI
 * need not be MPI_THREAD_MULTIPLE, whose locks every message would pay for; MPI_THREAD_SERIALIZED
 * is asked for.
 *
 * Every intercepted call that does not pass straight on to MPI is bracketed by CPL_INSIDE, and
 * every function of MPI that could disturb the thread is intercepted (others.def, harmless.def).
 *
 * Cost: a counter while `on` is false; else two stores and a load per call, because the thread pays
 * for the ordering of memory accesses (membarrier). The thread sleeps for LOOK_US and then works
 * only if the program has not polled since. */
#ifndef CARPOOL_SERVICE_H
#define CARPOOL_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct cpl_service {
    int depth;           /* nesting depth of the program's bracketed calls */
    atomic_bool on;      /* something is forwarded, held or under way: nothing passes unseen */
    bool expedited;      /* the thread orders memory accesses for both sides (membarrier) */
    atomic_bool inside;  /* the program is in a bracketed call; kept while `on` */
    atomic_int serving;  /* the thread is at work: 1, or 2 when the program waits for it */
    atomic_uint n_polls; /* polls by the program and the thread */
};

#ifdef CPL_SIMULATED /* the simulated ranks of a process have no threads */
#define cpl_service_prepare(work) true
#define cpl_service_switch(yes)   (void)(cpl_context.service.on = (yes))
#define cpl_service_end()         (void)0
#define cpl_service_wait()        (void)0
#else
/* Starts the thread, unless it runs. Returns false when that fails: then nothing may be managed.
 * `work` does the work and returns whether there was any; it never waits. Local; call it in a
 * bracketed call. */
bool cpl_service_prepare(bool (*work)(void));

/* Turns service on or off. Local; call it in a bracketed call. */
void cpl_service_switch(bool on);

/* Ends the thread, at the end of MPI. */
void cpl_service_end(void);

/* The slow part of entering a bracket: waits until the thread is done. */
void cpl_service_wait(void);
#endif

static inline int cpl_service_enter(struct cpl_service *s)
{
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
    if (--(*s)->depth == 0 && atomic_load_explicit(&(*s)->on, memory_order_relaxed))
        atomic_store_explicit(&(*s)->inside, false, memory_order_release);
}

/* From here to the end of the block the program is in MPI. */
#define CPL_INSIDE                                                                                 \
    __attribute__((cleanup(cpl_service_leave))) struct cpl_service *cpl_inside_ =                  \
        &cpl_context.service;                                                                      \
    cpl_service_enter(cpl_inside_)

#endif
