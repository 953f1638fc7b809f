/* Several ranks in one process, each with a stack and a cpl_context of its own, so that code which
 * waits for other ranks can be tested as it is. Only one runs at a time; it goes on until it waits,
 * and a random number says who is next. A test fails when all ranks wait, or when they meet in
 * different calls.
 *
 * Order of calls: fibers_begin; then fibers_run and looks at the contexts, as often as wanted. */
#ifndef CARPOOL_TESTS_FIBERS_H
#define CARPOOL_TESTS_FIBERS_H

#include "shim/state/context.h"

#include <mpi.h>
#include <stdint.h>

enum { FIBERS_MOST = 12 };

/* n ranks with contexts that are zero but for rank and size. */
void fibers_begin(int n, uint64_t seed);

/* Runs a program on all ranks to its end. */
void fibers_run(void (*program)(int rank));

/* A rank's context, while no program runs. */
struct cpl_context *fibers_context(int rank);

/* Called when a rank begins to run, and with -1 when it stops; NULL: nothing is. */
extern void (*fibers_turn)(int rank);

/* In a program: the rank that runs; others may run. */
int fibers_rank(void);
void fibers_yield(void);

/* What ranks have to call alike. */
struct fibers_call {
    const char *name;
    int64_t comm, count, type, op, root; /* those that the call has not are 0 */
};

/* Waits until all ranks have come to the same call; the last one of them calls `together` with what
 * each gave as `mine`. Fails the test when their calls differ. */
void fibers_meet(const struct fibers_call *call, void *mine, void (*together)(void *const *all));

/* Meets to compare a number, which must be the same on all ranks. */
void fibers_compare(const char *what, int64_t value);

/* A random number 0 .. n-1. */
int fibers_draw(int n);

/* Ranks that run, and how often they have met so far. */
int fibers_n(void);
int64_t fibers_n_meetings(void);

#endif
