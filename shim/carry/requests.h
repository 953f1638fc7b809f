/* The requests that the shim completes itself (doc/point-to-point.md): their handles, and what is
 * behind them.
 *
 * A managed receive, a synchronous send, or a neighborhood collective has a handle of MPI's own,
 * that of a generalized request that MPI never completes: the intercepted completion calls find
 * here what it stands for, and when the program has completed it the handle is used again. All
 * managed sends that are complete at once share one handle, as MPI's do. Persistent requests keep
 * the handles that MPI gave them.
 *
 * Cost: nothing is allocated once there are as many requests as are open at a time; a handle is
 * found by hashing. Thread rule: one thread. */
#ifndef CARPOOL_REQUESTS_H
#define CARPOOL_REQUESTS_H

#include "shim/carry/match.h"
#include "shim/carry/sending.h"
#include "shim/state/context.h"

#include <mpi.h>
#include <stdbool.h>

struct cpl_request {
    MPI_Request handle;
    struct cpl_request *next; /* of the same hash */
    struct cpl_request *next_spare;
    bool active;     /* managed, and not completed by the program */
    bool persistent; /* else its handle is the shim's */
    bool shared;     /* of all sends that are complete */
    bool receives;
    bool sends;                 /* both, in one request */
    bool freed;                 /* a persistent one, by the program, while it was active */
    bool collective;            /* a neighborhood collective: `receive` is only what it ends with */
    MPI_Comm comm;              /* whose error handler is called */
    struct cpl_receive receive; /* when it receives */
    struct cpl_sending sending; /* when it sends */
    void (*gone)(struct cpl_request *request); /* a freed one is done: its owner frees it */
};

/* A request that is active, with a handle of the shim's; NULL when memory ran out. Its receive or
 * sending is the caller's to set. */
struct cpl_request *cpl_request_make(MPI_Comm comm, bool receives);

/* The handle of a send that is complete; MPI_REQUEST_NULL when memory ran out. */
MPI_Request cpl_request_complete_send(void);

/* Makes a request of the caller's known by its handle, or unknown again. Returns false when memory
 * ran out. */
bool cpl_request_add(struct cpl_request *request);
void cpl_request_remove(struct cpl_request *request);

/* An added request is started managed. */
void cpl_request_activate(struct cpl_request *request, MPI_Comm comm, bool receives);

/* A request that was just activated, receiving, is one of a neighborhood collective; and it is
 * done, with an error or MPI_SUCCESS. */
void cpl_request_open_collective(struct cpl_request *request);
void cpl_request_close_collective(struct cpl_request *request, int error);

/* What is behind a handle; NULL: it is MPI's. cpl_request_active: only what is active. */
struct cpl_request *cpl_request_find(MPI_Request handle);
static inline struct cpl_request *cpl_request_active(MPI_Request handle)
{
    struct cpl_request *request = cpl_context.requests.complete_send;
    if (cpl_context.busy.n_active_requests == 0 || handle == MPI_REQUEST_NULL)
        return NULL;
    if (!request || request->handle != handle)
        request = cpl_request_find(handle);
    return request && request->active ? request : NULL;
}

/* Whether an active request is done; its status. */
bool cpl_request_is_done(struct cpl_request *request);
void cpl_request_status(const struct cpl_request *request, MPI_Status *status);

/* The program completes a request that is done: sets the status and the handle in the program's
 * hands. Returns the request's error, for which no handler has been called. */
int cpl_request_settle(struct cpl_request *request, MPI_Request *handle, MPI_Status *status);

/* The program frees an active request that is not persistent: it goes on until it is done. One of a
 * collective, which MPI does not allow, is waited for. */
void cpl_request_free(struct cpl_request *request, MPI_Request *handle);

/* An active request goes on without anybody waiting for it. Local. */
void cpl_request_abandon(struct cpl_request *request);

/* An abandoned receive is done. */
void cpl_request_drop(struct cpl_receive *receive);

extern const struct cpl_hooks cpl_request_hooks;

/* Gives all handles back to MPI. */
void cpl_request_end(void);

#endif
