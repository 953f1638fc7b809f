/* Point-to-point messages (doc/point-to-point.md): what the wrappers ask.
 *
 * Two questions: is a communicator managed, so that its messages are the shim's; and is anything
 * managed at all, so that every call that may wait must poll. Thread rule: one thread. */
#ifndef CARPOOL_PT2PT_H
#define CARPOOL_PT2PT_H

#include "shim/state/context.h"

#include <mpi.h>
#include <stdbool.h>

/* Whether anything is managed, served or under way: calls that may wait must then poll. */
static inline bool cpl_pt2pt_any_managed(void)
{
    return cpl_context.service.on;
}

/* Receives what has come, forwards, delivers, looks at hold times; gives way to others when there
 * was nothing to do. Never waits. */
void cpl_pt2pt_poll(void);

/* What the helper thread does while the program is not in MPI (service.h): messages that the
 * program takes for sent leave, and it polls. Returns whether there was anything to do. Never
 * waits. */
bool cpl_pt2pt_serve(void);

/* A blocking collective on comm is about to be entered (comm may be any handle): batches leave, and
 * at the 4th, 8th, 16th ... one the ranks of comm may agree on managing it. Collective. */
void cpl_pt2pt_before_collective(MPI_Comm comm);

/* An MPI_Allreduce is about to be made: carries it out if messages ride in it. Returns true then,
 * with MPI's result in *result; false when it is to be made as any collective. Collective. */
bool cpl_pt2pt_allreduce(MPI_Comm comm, const void *send, void *recv, int64_t count,
                         MPI_Datatype type, MPI_Op op, int *result);

/* The same of an MPI_Iallreduce, which is then started, with its request. Collective, and does not
 * wait. */
bool cpl_pt2pt_iallreduce(MPI_Comm comm, const void *send, void *recv, int64_t count,
                          MPI_Datatype type, MPI_Op op, MPI_Request *request, int *result);

/* A window or file is about to be opened over comm: its calls wait without polling. Nothing is
 * managed anew from then on; if comm has all ranks, what is managed is drained and no longer
 * forwarded. Collective. */
void cpl_pt2pt_before_open(MPI_Comm comm);

/* A call that may wait is about to be entered: batches leave. Local. */
void cpl_pt2pt_leave(void);

/* Waits for an MPI request while polling. Returns the request's MPI error code. */
int cpl_pt2pt_wait(MPI_Request *request, MPI_Status *status);

/* The same for those of an array that are MPI's own, as PMPI_Waitall; the shim's are left as they
 * are. One after the other: PMPI_Testall gives up at the first error, and MPICH's (4.0.2) fails
 * with persistent collectives. */
int cpl_pt2pt_wait_each(int n, MPI_Request *requests, MPI_Status *statuses);

/* Enters a collective whose nonblocking form must not be used: waits, while polling, until all
 * ranks of comm have come here. */
void cpl_pt2pt_gather_ranks(MPI_Comm comm);

#endif
