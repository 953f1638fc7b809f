/* Serving other ranks while the program is not in MPI.
 *
 * A rank that forwards for others, or holds messages that MPI regards as sent, must go on doing so
 * whatever the program does: compute, wait for a file, spin on memory. While it is in a call that
 * waits, that call polls (pt2pt.h). While it is outside MPI, a helper thread looks in from time to
 * time and does the same work. The two never call MPI at the same time, so MPI need not be
 * MPI_THREAD_MULTIPLE, whose locks every message would pay for; MPI_THREAD_SERIALIZED is asked for.
 *
 * Every intercepted call that does not pass straight on to MPI is bracketed by CPL_INSIDE, and
 * every function of MPI that could disturb the thread is intercepted (others.def, harmless.def).
 *
 * Cost: nothing while `on` is false but a counter; else two stores and a load a call: the thread
 * pays for the order of memory (membarrier). The thread sleeps LOOK_US, looks whether the program
 * has polled since, and only if not does anything. */
#ifndef CARPOOL_SERVICE_H
#define CARPOOL_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct cpl_service {
    int depth;           /* calls of the program that are bracketed, one inside the other */
    atomic_bool on;      /* something is forwarded, held or under way: nothing passes unseen */
    bool expedited;      /* the thread orders memory for both sides */
    atomic_bool inside;  /* the program is in a bracketed call; kept while `on` */
    atomic_int serving;  /* the thread is at work: 1, or 2 when the program waits for it */
    atomic_uint n_polls; /* by either */
};

#ifdef CPL_SIMULATED /* the simulated ranks of a process have no threads */
#define cpl_service_prepare(work) true
#define cpl_service_switch(yes)   (void)(cpl_context.service.on = (yes))
#define cpl_service_end()         (void)0
#define cpl_service_wait()        (void)0
#else
/* Makes the thread, unless there is one. Returns false when there cannot be one: nothing may then
 * be managed. `work` does what is to be done and returns whether there was anything; it never
 * waits. Local; in a bracketed call. */
bool cpl_service_prepare(bool (*work)(void));

/* Something begins or ceases to need service. Local; in a bracketed call. */
void cpl_service_switch(bool on);

/* Ends the thread, at the end of MPI. */
void cpl_service_end(void);

/* The slow parts of the brackets. */
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
