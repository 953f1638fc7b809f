/* Persistent requests of messages (carry/requests.h). When started on a managed communicator they
 * are carried; otherwise the shim learns from them and starts them in MPI. */
#ifndef CARPOOL_PT2PT_PERSISTENT_H
#define CARPOOL_PT2PT_PERSISTENT_H

#include "shim/calls/pt2pt_calls.h"

#include <mpi.h>
#include <stdbool.h>

/* The call that a persistent request stands for. */
struct cpl_persistent_call {
    bool receives;
    enum cpl_send_mode mode; /* when it sends */
    void *buffer;
    MPI_Count count;
    MPI_Datatype type;
    int peer, tag;
    MPI_Comm comm;
};

/* A persistent request was made, with this result, which is returned: remembers its call. */
int cpl_persistent_message(int result, const MPI_Request *request,
                           const struct cpl_persistent_call *call);

/* Whether requests that are started together are messages of one communicator that are MPI's
 * without a further look (wrappers.h); counts them. Local. */
bool cpl_persistent_series_passes(int n, const MPI_Request *requests);

#endif
