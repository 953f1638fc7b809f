/* Point-to-point messages (doc/point-to-point.md): the interface for the wrappers.
 *
 * Wrappers ask two questions: whether a communicator is managed, so that its messages are the
 * shim's; and whether anything is managed at all, so that every call that may wait must poll.
 * Thread rule: one thread. */
#ifndef CARPOOL_PT2PT_H
#define CARPOOL_PT2PT_H

#include "shim/wait/progress.h"

#include <mpi.h>
#include <stdbool.h>

struct cpl_comm_state;

/* Notes a blocking collective of the communicator for what is learned of messages on those that
 * meet where it does (pt2pt_parts.h). Local. */
void cpl_family_note_collective(const struct cpl_comm_state *state);

/* Notes a collective of the communicator for what is learned of messages, before the ranks meet
 * (meet/meeting.h). Collective: all ranks decide about reductions that are new. */
void cpl_pt2pt_note_collective(struct cpl_comm_state *state);

/* Carries an MPI_Allreduce out if it may carry messages, or with a request starts an
 * MPI_Iallreduce, which does not wait. Returns true then, with MPI's result in *result; false when
 * it is to be made like any collective. Collective. */
bool cpl_pt2pt_allreduce(MPI_Comm comm, const void *send, void *recv, int64_t count,
                         MPI_Datatype type, MPI_Op op, MPI_Request *request, int *result);

extern const struct cpl_hooks cpl_pt2pt_hooks;

#endif
