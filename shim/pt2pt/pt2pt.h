/* Point-to-point messages (doc/point-to-point.md): what the wrappers ask.
 *
 * Two questions: is a communicator managed, so that its messages are the shim's; and is anything
 * managed at all, so that every call that may wait must poll. Thread rule: one thread. */
#ifndef CARPOOL_PT2PT_H
#define CARPOOL_PT2PT_H

#include "shim/wait/progress.h"

#include <mpi.h>
#include <stdbool.h>

struct cpl_comm_state;

/* A blocking collective is about to be entered: what this rank has sent leaves, and the pace is
 * taken. state may be NULL. Local. */
void cpl_pt2pt_arrive(struct cpl_comm_state *state);

/* Notes a collective of the communicator for what is learned of messages, before the ranks meet
 * (meet/meeting.h). Collective: all ranks decide about reductions that are new. */
void cpl_pt2pt_note_collective(struct cpl_comm_state *state);

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

extern const struct cpl_hooks cpl_pt2pt_hooks;

#endif
