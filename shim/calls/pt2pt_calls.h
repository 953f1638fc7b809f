/* Point-to-point and completion calls, with MPI's meaning (doc/point-to-point.md). Return MPI's
 * error codes, after the communicator's error handler. One thread. */
#ifndef CARPOOL_PT2PT_CALLS_H
#define CARPOOL_PT2PT_CALLS_H

#include "shim/carry/requests.h"
#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/state/comm_state.h"
#include "shim/state/describe.h"

/* ---- on managed communicators (pt2pt_calls.c) */

enum cpl_send_mode {
    CPL_SEND_STANDARD,
    CPL_SEND_SYNCHRONOUS,
    CPL_SEND_BUFFERED, /* complete when copied, if the attached buffer has room */
    CPL_SEND_COPIED    /* complete when copied */
};

/* The state of a communicator, if it is managed and the shim carries a call with these arguments;
 * describes the buffer in *span. NULL when the call is MPI's: the communicator is not managed, the
 * peer is MPI_PROC_NULL, or MPI is to refuse an argument. */
struct cpl_comm_state *cpl_pt2pt_managed(MPI_Comm comm, const void *buffer, MPI_Count count,
                                         MPI_Datatype type, int peer, int tag, bool receives,
                                         struct cpl_span *span);

/* The state of a communicator if it is managed, else NULL. */
static inline struct cpl_comm_state *cpl_pt2pt_managed_state(MPI_Comm comm)
{
    if (cpl_context.busy.n_managed == 0)
        return NULL;
    struct cpl_comm_state *state = cpl_comm_state_get(comm);
    return state && state->pt2pt->phase == CPL_PT2PT_MANAGED ? state : NULL;
}

/* Sends. *sending becomes what is still to be waited for. After an error nothing has been sent, and
 * the next message gets the number that this one would have had. */
int cpl_pt2pt_send(struct cpl_comm_state *state, const struct cpl_span *span, int dest, int tag,
                   enum cpl_send_mode mode, struct cpl_sending *sending);

/* The same for a send that is waited for, and for one that gets a request. */
int cpl_pt2pt_send_and_wait(struct cpl_comm_state *state, const struct cpl_span *span, int dest,
                            int tag, enum cpl_send_mode mode);
int cpl_pt2pt_isend(struct cpl_comm_state *state, const struct cpl_span *span, int dest, int tag,
                    enum cpl_send_mode mode, MPI_Request *request);

/* Posts a receive that the caller owns. */
void cpl_pt2pt_post(struct cpl_comm_state *state, struct cpl_receive *receive,
                    const struct cpl_span *span, int source, int tag);

int cpl_pt2pt_recv(struct cpl_comm_state *state, const struct cpl_span *span, int source, int tag,
                   MPI_Status *status);

/* Starts a message to or from MPI_PROC_NULL on a managed communicator. Its request is the shim's:
 * MPI goes on for each of its own that a call asks about. False: it is MPI's. */
bool cpl_pt2pt_null(MPI_Comm comm, const void *buffer, MPI_Count count, MPI_Datatype type, int peer,
                    int tag, bool receives, MPI_Request *request);

int cpl_pt2pt_irecv(struct cpl_comm_state *state, const struct cpl_span *span, int source, int tag,
                    MPI_Request *request);

/* Probes as MPI does; with flag NULL it waits until there is a message. A message that is given is
 * the handle of a matched probe. */
int cpl_pt2pt_probe(struct cpl_comm_state *state, int source, int tag, int *flag,
                    MPI_Message *message, MPI_Status *status);

/* Starts to receive a message that a matched probe gave a handle of the shim's for. */
int cpl_pt2pt_imrecv(const struct cpl_span *span, MPI_Message *message, MPI_Request *request);

/* ---- completion of requests, some of which are the shim's (requests.h) and others MPI's
 * (pt2pt_complete.c); polls. Arrays of the shim's requests only are completed without MPI; mixed
 * ones cost MPI's call for a copy with its part, and memory when there are more than a few. */

/* As MPI_Wait, MPI_Test and MPI_Request_get_status, which leaves the requests as they are. */
enum cpl_completion { CPL_WAITS, CPL_TESTS, CPL_PEEKS };

/* The four forms for one request and for arrays; flag: NULL if the call waits. */
int cpl_complete_one(MPI_Request *request, int *flag, MPI_Status *status, enum cpl_completion how);
int cpl_complete_all(int n, MPI_Request *requests, int *flag, MPI_Status *statuses,
                     enum cpl_completion how);
int cpl_complete_any(int n, MPI_Request *requests, int *index, int *flag, MPI_Status *status,
                     enum cpl_completion how);
int cpl_complete_some(int n, MPI_Request *requests, int *n_done, int *indices, MPI_Status *statuses,
                      enum cpl_completion how);

/* ---- messages that MPI carries while the shim learns about their communicator, or counts them
 * (pt2pt_watch.c). Whose message a receive with wildcards takes is known when it is over. So its
 * request is the shim's, which looks at MPI's, and no agreement comes about while one is open. When
 * that cannot be the communicator is not learned about any more. All are local. */

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
