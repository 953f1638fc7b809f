/* Persistent requests, and completion calls while something is managed (doc/point-to-point.md). A
 * persistent request is MPI's own; started on a managed communicator it is not started in MPI, and
 * completion calls find here whether it is complete. */
#ifndef CARPOOL_PT2PT_PERSISTENT_H
#define CARPOOL_PT2PT_PERSISTENT_H

#include <mpi.h>
#include <stdbool.h>

struct cpl_neighbor_op;

/* The call that a persistent request stands for. */
struct cpl_persistent_call {
    bool receives;
    bool synchronous;
    void *buffer;
    int count;
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
void cpl_persistent_forget(MPI_Request request);

/* Starts a request; learns from it, or starts it managed. Returns MPI's error codes. */
int cpl_persistent_start(MPI_Request *request);

/* The request is freed by the program. */
void cpl_persistent_free(MPI_Request request);

/* The program wants to cancel a request. Returns whether it is a managed one: then it is done. */
bool cpl_persistent_cancel(MPI_Request request);

/* Whether a request is a managed one; then tells whether it is done, and its status. */
bool cpl_persistent_get_status(MPI_Request request, int *flag, MPI_Status *status);

/* Completion calls, polling. flag NULL: waits. */
int cpl_complete_one(MPI_Request *request, int *flag, MPI_Status *status);
int cpl_complete_all(int n, MPI_Request *requests, int *flag, MPI_Status *statuses);
int cpl_complete_any(int n, MPI_Request *requests, int *index, int *flag, MPI_Status *status);
int cpl_complete_some(int n, MPI_Request *requests, int *n_done, int *indices, MPI_Status *statuses,
                      bool waits);

/* Forgets all persistent requests. */
void cpl_persistent_end(void);

#endif
