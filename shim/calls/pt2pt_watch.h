/* Receives with wildcards that MPI carries out while the shim learns about their communicator.
 * Whose message such a receive takes is known when it is over. So its request is the shim's, which
 * looks at MPI's, and no agreement comes about while one is open. */
#ifndef CARPOOL_PT2PT_WATCH_H
#define CARPOOL_PT2PT_WATCH_H

#include "shim/carry/requests.h"
#include "shim/pt2pt/pt2pt_internal.h"

#include <mpi.h>
#include <stdbool.h>

/* The state of a communicator whose messages are noted or counted; NULL: there is nothing to do. */
struct cpl_comm_state *cpl_watch_learning(MPI_Comm comm);

/* MPI has started a receive on a communicator that is learning. Returns false if it has no
 * wildcard. Else watches it and puts the shim's request in the place of MPI's; when that cannot be
 * the communicator is not learned about any more. Local. */
bool cpl_watch_receive(struct cpl_comm_state *state, int source, int tag, MPI_Request *request);

/* The same of a persistent request, before it is started; `request` is what its handle leads to. */
bool cpl_watch_persistent(struct cpl_comm_state *state, int source, int tag,
                          struct cpl_request *request);

#endif
