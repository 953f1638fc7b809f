/* Progress: the one place in which the shim waits (doc/point-to-point.md, Progress). The parts
 * register what there is to do (state/hooks.h). Thread rule: within CPL_INSIDE (state/service.h);
 * every function that may wait, cpl_progress_poll and cpl_progress_pause may let other threads of
 * the program go on meanwhile. */
#ifndef CARPOOL_PROGRESS_H
#define CARPOOL_PROGRESS_H

#include "shim/state/context.h"

#include <mpi.h>
#include <stdbool.h>

/* Whether anything is managed, served or under way: calls that may wait must then poll. */
static inline bool cpl_progress_needed(void)
{
    return cpl_context.service.on;
}

/* A poll asks MPI whether something is done, which may give a shared core away. Local. */
static inline void cpl_progress_looked(void)
{
    cpl_context.busy.n_looks_at_mpi++;
}

/* Receives what has come, forwards, delivers, and checks hold times; yields the processor when
 * there was nothing to do. Never waits. */
void cpl_progress_poll(void);

/* The same in a wait that does not ask MPI itself: where a poll has not asked it either, a shared
 * core is given away at once. */
void cpl_progress_await(void);

/* After a look at what other ranks write into shared memory that found nothing, the n-th in a row,
 * from 1. Sends the batches at the first. Keeps MPI going, and whatever is managed; gives the
 * processor away, at once where ranks share processors. Never waits. */
void cpl_progress_pause(int n);

/* This rank does not wait long: it only tests, or looks at shared memory. For bench's libyield,
 * with which ranks that wait long in MPI sleep. */
void cpl_progress_no_wait(void);

/* The helper thread's work while the program is not in MPI (service.h): sends messages that the
 * program takes for sent, and polls. Returns whether there was anything to do. Never waits. */
bool cpl_progress_serve(void);

/* Before a call that may wait: sends the batches. Local. */
void cpl_progress_send_batches(void);
static inline void cpl_progress_leave(void)
{
    if (cpl_context.busy.n_open_batches > 0)
        cpl_progress_send_batches();
}

/* Before a call that may wait without a communicator (windows, files), or only for ranks that are
 * in MPI already: sends the batches and deals once with what has come. Local. */
void cpl_progress_before_wait(void);

/* Waits for an MPI request while polling. Returns the request's MPI error code. */
int cpl_progress_wait(MPI_Request *request, MPI_Status *status);

/* Waits for several requests, as PMPI_Waitall does, one after the other: PMPI_Testall gives up at
 * the first error, and MPICH's (4.0.2) fails with persistent collectives. */
int cpl_progress_wait_each(int n, MPI_Request *requests, MPI_Status *statuses);

/* Call after a change of the counters in cpl_context.busy: while anything is managed, served or
 * under way, no call passes unseen and the helper thread serves. Local. */
void cpl_progress_update(void);

#endif
