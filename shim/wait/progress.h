/* Progress: the one place in which the shim waits. While anything is managed, served or under way,
 * a rank that waits goes on receiving, forwarding and delivering what others need
 * (doc/point-to-point.md, Progress). What there is to do, the parts say (state/hooks.h). Thread
 * rule: one thread. */
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

/* Receives what has come, forwards, delivers, looks at hold times; gives way to others when there
 * was nothing to do. Never waits. */
void cpl_progress_poll(void);

/* What the helper thread does while the program is not in MPI (service.h): messages that the
 * program takes for sent leave, and it polls. Returns whether there was anything to do. Never
 * waits. */
bool cpl_progress_serve(void);

/* A call that may wait is about to be entered: batches leave. Local. */
void cpl_progress_leave(void);

/* The same for one that waits on no communicator at hand (windows, files): what has come is dealt
 * with once, too. Local. */
void cpl_progress_before_wait(void);

/* Waits for an MPI request while polling. Returns the request's MPI error code. */
int cpl_progress_wait(MPI_Request *request, MPI_Status *status);

/* The same for several, as PMPI_Waitall. One after the other: PMPI_Testall gives up at the first
 * error, and MPICH's (4.0.2) fails with persistent collectives. */
int cpl_progress_wait_each(int n, MPI_Request *requests, MPI_Status *statuses);

/* Enters a collective whose nonblocking form must not be used: waits, while polling, until all
 * ranks of comm have come here. */
void cpl_progress_gather(MPI_Comm comm);

/* The counters of cpl_context say whether anything is managed, served or under way: from now on no
 * call passes unseen while it is, and the helper thread serves. Local. */
void cpl_progress_update(void);

#endif
