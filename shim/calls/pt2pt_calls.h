/* Point-to-point calls on managed communicators, with MPI's meaning (doc/point-to-point.md). Return
 * MPI's error codes, after the communicator's error handler. */
#ifndef CARPOOL_PT2PT_CALLS_H
#define CARPOOL_PT2PT_CALLS_H

#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/state/describe.h"

enum cpl_send_mode {
    CPL_SEND_STANDARD,
    CPL_SEND_SYNCHRONOUS,
    CPL_SEND_BUFFERED, /* complete when it is copied, if the attached buffer has room */
    CPL_SEND_COPIED    /* complete when it is copied */
};

/* The managed state of a communicator for a call with these arguments; NULL when the call is MPI's:
 * the communicator is not managed, the peer is MPI_PROC_NULL, or MPI is to refuse an argument.
 * Describes the buffer in *span. */
struct cpl_comm_state *cpl_pt2pt_managed(MPI_Comm comm, const void *buffer, MPI_Count count,
                                         MPI_Datatype type, int peer, int tag, bool receives,
                                         struct cpl_span *span);

/* The parts of this: the managed state of a communicator, NULL: there is none; and whether a peer
 * is a rank, MPI_PROC_NULL, or MPI_ANY_SOURCE of a receive. The third is cpl_describe. */
struct cpl_comm_state *cpl_pt2pt_managed_state(MPI_Comm comm);

/* Sends. *sending tells what is left to be waited for. When it returns an error nothing has been
 * sent, and the next message has the number that this one would have had. */
int cpl_pt2pt_send(struct cpl_comm_state *state, const struct cpl_span *span, int dest, int tag,
                   enum cpl_send_mode mode, struct cpl_sending *sending);

/* Waits for a send; makes a request of it. */
int cpl_pt2pt_finish_send(struct cpl_sending *sending);
int cpl_pt2pt_request_send(struct cpl_comm_state *state, struct cpl_sending *sending,
                           MPI_Request *request);

/* Posts a receive that the caller owns; waits for it and fills the status. */
void cpl_pt2pt_post(struct cpl_comm_state *state, struct cpl_receive *receive,
                    const struct cpl_span *span, int source, int tag);
int cpl_pt2pt_finish_receive(const struct cpl_comm_state *state, struct cpl_receive *receive,
                             MPI_Status *status);

int cpl_pt2pt_irecv(struct cpl_comm_state *state, const struct cpl_span *span, int source, int tag,
                    MPI_Request *request);

/* flag NULL: waits until there is a message. */
int cpl_pt2pt_probe(struct cpl_comm_state *state, int source, int tag, int *flag,
                    MPI_Status *status);
int cpl_pt2pt_mprobe(struct cpl_comm_state *state, int source, int tag, int *flag,
                     MPI_Message *message, MPI_Status *status);

/* Receives a message that a matched probe gave a handle for: forwards MPI's own. */
int cpl_pt2pt_mrecv(const struct cpl_span *span, MPI_Message *message, MPI_Status *status);
int cpl_pt2pt_imrecv(const struct cpl_span *span, MPI_Message *message, MPI_Request *request);

#endif
