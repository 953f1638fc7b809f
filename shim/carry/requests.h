/* The requests that the shim completes itself (doc/point-to-point.md, Requests), and what a send on
 * a managed communicator still waits for. Nothing is allocated once there are as many requests as
 * are open at a time; a handle is found by hashing. Thread rule: one thread. */
#ifndef CARPOOL_REQUESTS_H
#define CARPOOL_REQUESTS_H

#include "shim/carry/match.h"
#include "shim/state/context.h"

#include <mpi.h>
#include <stdbool.h>

/* What a send still waits for: requests of MPI, for a straight payload and for the match of a
 * synchronous one; MPI_REQUEST_NULL: not for that. */
struct cpl_sending {
    MPI_Request inner, matched;
};
#define CPL_SENT ((struct cpl_sending){MPI_REQUEST_NULL, MPI_REQUEST_NULL})

/* Whether a payload is above the size limit, and goes straight from the program's buffer. */
#define CPL_MOST_SEGMENT_BYTES (16 << 10) /* payloads above always do */
static inline bool cpl_goes_straight(int64_t bytes)
{
    return bytes > CPL_MOST_SEGMENT_BYTES || bytes > cpl_context.settings.size_limit;
}

/* Whether a send is complete. */
bool cpl_sending_is_done(struct cpl_sending *sending);

/* ---- requests ---- */

struct cpl_request {
    MPI_Request handle;
    struct cpl_request *next; /* next request with the same hash */
    struct cpl_request *next_spare;
    bool active;     /* it is managed, and the program has not completed it */
    bool persistent; /* its handle is MPI's, it is first in a struct cpl_persistent */
    bool shared;     /* it stands for all sends that are complete */
    bool receives;
    bool sends;      /* one request may receive and send */
    bool freed;      /* the program freed it, a persistent request, while it was active */
    bool collective; /* it is a neighborhood collective: `receive` only marks its end */
    bool by_mpi;     /* MPI receives it by receive.inner; the shim hears of its end */
    MPI_Comm comm;   /* communicator whose error handler is called; MPI_COMM_NULL: MPI did that */
    struct cpl_receive receive;                /* used if it receives */
    struct cpl_sending sending;                /* used if it sends */
    void (*came)(struct cpl_request *request); /* called once MPI has received it; its
                                                  communicator may be gone: NULL then */
};

/* Makes an active request with a handle of the shim, the first of which waits for memory; NULL:
 * there is none. The caller sets its receive or sending. */
struct cpl_request *cpl_request_make(MPI_Comm comm, bool receives);
struct cpl_request *cpl_request_try(MPI_Comm comm, bool receives);

/* Makes an active request that of a message to or from MPI_PROC_NULL, which is over. */
void cpl_request_end_null(struct cpl_request *request);

/* The handle of a send that is complete; waits for memory. */
struct cpl_request *cpl_request_make_complete_send(void);
static inline MPI_Request cpl_request_complete_send(void)
{
    struct cpl_request *request = cpl_context.requests.complete_send;
    if (!request)
        request = cpl_request_make_complete_send();
    cpl_context.busy.n_active_requests++;
    return request->handle;
}

/* Activates a persistent request, because it is started as a managed one. */
void cpl_request_activate(struct cpl_request *request, MPI_Comm comm, bool receives);

/* A request that was just activated as a receiving one stands for a collective; that is done, with
 * an error or MPI_SUCCESS. */
void cpl_request_open_collective(struct cpl_request *request);
void cpl_request_close_collective(struct cpl_request *request, int error);

/* A request that was just activated as a receiving one stands for a receive of MPI's. `came` is
 * called when it is over, with source and tag in its receive; or, with receive.abandoned, when the
 * program frees it before. */
void cpl_request_watch(struct cpl_request *request, MPI_Request inner,
                       void (*came)(struct cpl_request *request));

/* The request with a handle, the second only an active one; NULL: it is MPI's. */
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

/* Whether an active request is done. cpl_request_look asks MPI about all of n handles that stand
 * for receives of MPI's, at once: each single question would make all of MPI go on.
 * cpl_request_is_known_done does not ask about these. cpl_request_status: of a done one. Local. */
bool cpl_request_find_done(struct cpl_request *request);
static inline bool cpl_request_comes(const struct cpl_request *request)
{
    return request->receives && !request->sends && !request->by_mpi; /* nobody asks MPI about it */
}
static inline bool cpl_request_is_done(struct cpl_request *request)
{
    return request->shared ||
           (cpl_request_comes(request) ? request->receive.done : cpl_request_find_done(request));
}
void cpl_request_look(int n, const MPI_Request *handles);
bool cpl_request_is_known_done(struct cpl_request *request);
void cpl_request_status(const struct cpl_request *request, MPI_Status *status);

/* Completes a done request for the program: sets its status and handle. Returns the request's
 * error; calls no error handler. */
int cpl_request_settle(struct cpl_request *request, MPI_Request *handle, MPI_Status *status);

/* The same without a status, of a send that was complete at once; false: it is another request. */
static inline bool cpl_request_settle_sent(const struct cpl_request *request, MPI_Request *handle)
{
    if (!request->shared)
        return false;
    cpl_context.busy.n_active_requests--;
    *handle = MPI_REQUEST_NULL;
    return true;
}

/* Frees an active request that is not persistent for the program; its transfer goes on. One of a
 * collective, which MPI does not allow to be freed, is waited for. */
void cpl_request_free(struct cpl_request *request, MPI_Request *handle);

/* Nobody waits for an active request from now on; its transfer goes on. Local. */
void cpl_request_abandon(struct cpl_request *request);

/* Frees the receive of a request that nobody waits for (match.h), which is done. */
void cpl_request_drop(struct cpl_receive *receive);

/* ---- persistent requests keep the handles that MPI gave them; what the shim carries is not
 * started in MPI ---- */

struct cpl_persistent;

struct cpl_persistent_kind {
    /* Starts a request that is not active. Returns MPI's error codes. */
    int (*start)(struct cpl_persistent *p, MPI_Request *handle);
    /* Frees the memory of a request that is not under way. */
    void (*free)(struct cpl_persistent *p);
    bool is_waited_for; /* freeing it while it is active, which MPI does not allow, waits for it */
};

/* Kinds embed it as the first member of their own struct. */
struct cpl_persistent {
    struct cpl_request request; /* must be first: what a handle leads to */
    const struct cpl_persistent_kind *kind;
    struct cpl_persistent *prev, *next;
};

/* Adds a persistent request that was made and takes over p, which its kind frees. */
void cpl_persistent_add(struct cpl_persistent *p, const struct cpl_persistent_kind *kind,
                        MPI_Request handle);

/* The request with a handle; NULL: there is none. */
struct cpl_persistent *cpl_persistent_find(MPI_Request handle);

/* Starts a request, of any kind or MPI's. Returns MPI's error codes. */
int cpl_persistent_start(MPI_Request *request);

/* The program frees a request, active or not, of any kind or MPI's: its handle is MPI's again, and
 * an active transfer goes on. */
void cpl_persistent_free(MPI_Request request);

/* Forgets all persistent requests. */
void cpl_persistent_end(void);

extern const struct cpl_hooks cpl_request_hooks;

/* Gives all handles back to MPI. */
void cpl_request_end(void);

/* ---- buffered.c: payloads above the size limit that MPI_Isend sends from copies in the shim's
 * memory, for MPI_Bsend and its relatives and MPI_Isendrecv_replace. The program's attached buffer
 * is not used, but a buffered send for which it has no room is refused, as MPI does. ---- */

/* The program has attached a buffer of size bytes (INT64_MAX: any number; 0: it has detached it);
 * or one of a communicator, whose size does not count. Local. */
void cpl_buffered_attach(int64_t size);
void cpl_buffered_attach_to_comm(bool yes);

/* Waits, while polling, until all buffered messages on a communicator have been sent;
 * MPI_COMM_NULL: on all. The second makes a request that is complete then, and when MPI has
 * completed `inner`; it waits for memory. */
void cpl_buffered_flush(MPI_Comm of);
MPI_Request cpl_buffered_iflush(MPI_Comm of, MPI_Request inner);

/* Whether the attached buffers have room for a buffered send of `bytes` bytes. */
bool cpl_buffered_has_room(int64_t bytes);

/* Copies the data and sends it on comm. `of`: where the program has sent it, buffered: it counts
 * against the attached buffer; MPI_COMM_NULL: it does not. Returns MPI_SUCCESS or MPI's error. */
int cpl_buffered_send(const struct cpl_span *span, int dest, int tag, MPI_Comm comm, MPI_Comm of);

/* Whether sends from copies are under way on a communicator. Local. */
bool cpl_buffered_any(MPI_Comm comm);

/* A buffered send on a communicator that is not managed: *request is complete, *result MPI's.
 * False: the call is to go to MPI, which refuses it. */
bool cpl_buffered_isend(const void *buffer, MPI_Count count, MPI_Datatype type, int dest, int tag,
                        MPI_Comm comm, MPI_Request *request, int *result);

extern const struct cpl_hooks cpl_buffered_hooks;

#endif
