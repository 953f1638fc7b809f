/* Messages that MPI carries while the shim learns about their communicator, or counts them.
 *
 * Whose message a receive with wildcards takes is known when it is over. So its request is the
 * shim's, which looks at MPI's, and no agreement comes about while one is open. When that cannot be
 * the communicator is not learned about any more. All are local. */
#ifndef CARPOOL_PT2PT_WATCH_H
#define CARPOOL_PT2PT_WATCH_H

#include "shim/carry/requests.h"
#include "shim/pt2pt/pt2pt_internal.h"

#include <mpi.h>

/* A message is sent. */
void cpl_watch_send(MPI_Comm comm, MPI_Count count, MPI_Datatype type, int dest, int tag);

/* MPI's nonblocking receive has returned `result`; returns that, and may put a request of the shim
 * in the place of MPI's. */
int cpl_watch_posted(MPI_Comm comm, int source, int tag, int result, MPI_Request *request);

/* A persistent receive is about to be started; `request` is what its handle leads to. */
void cpl_watch_starting(MPI_Comm comm, int source, int tag, struct cpl_request *request);

/* A blocking receive has returned `result`: source and tag are known even for wildcards. */
void cpl_watch_received(MPI_Comm comm, int source, int tag, int result, const MPI_Status *status);

#endif
