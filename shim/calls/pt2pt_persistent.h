/* Persistent requests (doc/point-to-point.md). A persistent request is MPI's own; started on a
 * managed communicator it is not started in MPI, and completion calls find it among the shim's
 * requests (pt2pt_requests.h). */
#ifndef CARPOOL_PT2PT_PERSISTENT_H
#define CARPOOL_PT2PT_PERSISTENT_H

#include "shim/calls/pt2pt_calls.h"

#include <mpi.h>
#include <stdbool.h>

struct cpl_exchange;
struct cpl_neighbor_op;

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

/* A persistent request was made: remembers its call. */
void cpl_persistent_add(MPI_Request request, const struct cpl_persistent_call *call);

/* The same for a neighborhood collective that is carried: the handle is that of an MPI request
 * which is never started. Takes over the operation; false when memory ran out. */
bool cpl_persistent_add_collective(MPI_Request request, struct cpl_neighbor_op *op);

/* Forgets a request that add_collective took over; the operation is the caller's again. */
void cpl_persistent_forget_collective(MPI_Request request);

/* The same for one that stays MPI's and whose starts are counted; takes over the exchange, which is
 * recorded with this rank and so many in all when the request is freed. */
bool cpl_persistent_watch(MPI_Request request, struct cpl_exchange *exchange, int rank,
                          int n_ranks);

/* Starts a request; learns from it, or starts it managed. Returns MPI's error codes. */
int cpl_persistent_start(MPI_Request *request);

/* The request is freed by the program, active or not, and its handle is MPI's again: what is active
 * goes on. Nothing happens if it is no persistent one. */
void cpl_persistent_free(MPI_Request request);

/* Forgets all persistent requests. */
void cpl_persistent_end(void);

#endif
