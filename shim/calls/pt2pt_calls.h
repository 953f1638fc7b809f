/* Point-to-point calls on managed communicators, with MPI's meaning (doc/point-to-point.md). Return
 * MPI's error codes, after the communicator's error handler. */
#ifndef CARPOOL_PT2PT_CALLS_H
#define CARPOOL_PT2PT_CALLS_H

#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/state/comm_state.h"
#include "shim/state/describe.h"

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

/* Receive a message that a matched probe gave a handle for; MPI's own handles are passed on to
 * MPI. */
int cpl_pt2pt_mrecv(const struct cpl_span *span, MPI_Message *message, MPI_Status *status);
int cpl_pt2pt_imrecv(const struct cpl_span *span, MPI_Message *message, MPI_Request *request);

#endif
