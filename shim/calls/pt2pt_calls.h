/* Point-to-point calls on managed communicators, with MPI's meaning (doc/point-to-point.md). Return
 * MPI's error codes, after the communicator's error handler. */
#ifndef CARPOOL_PT2PT_CALLS_H
#define CARPOOL_PT2PT_CALLS_H

#include "shim/pt2pt/pt2pt_internal.h"

enum cpl_send_mode {
    CPL_SEND_STANDARD,
    CPL_SEND_SYNCHRONOUS,
    CPL_SEND_BUFFERED, /* complete when it is copied, if the attached buffer has room */
    CPL_SEND_COPIED    /* complete when it is copied */
};

/* What a send still waits for: an MPI request (payload on its way, straight), or an
 * acknowledgement, or neither. */
struct cpl_sending {
    MPI_Request inner;
    struct cpl_synchronous *synchronous;
};

/* The managed state of a communicator for a call with these arguments; NULL when the call is MPI's:
 * the communicator is not managed, the peer is MPI_PROC_NULL, or MPI is to refuse an argument.
 * Describes the buffer in *span. */
struct cpl_comm_state *cpl_pt2pt_managed(MPI_Comm comm, const void *buffer, MPI_Count count,
                                         MPI_Datatype type, int peer, int tag, bool receives,
                                         struct cpl_span *span);

/* The parts of this: the managed state of a communicator, NULL: there is none; whether a peer is a
 * rank, MPI_PROC_NULL, or MPI_ANY_SOURCE of a receive; and the description of a buffer, false: MPI
 * would refuse it or the tag. MPI itself is asked, by a message to or from MPI_PROC_NULL, unless
 * the arguments are of the usual kind. */
struct cpl_comm_state *cpl_pt2pt_managed_state(MPI_Comm comm);
bool cpl_pt2pt_is_peer(MPI_Comm comm, int peer, bool receives);
bool cpl_pt2pt_describe(const void *buffer, MPI_Count count, MPI_Datatype type, int tag,
                        bool receives, struct cpl_span *span);

/* Sends. *sending tells what is left to be waited for. When it returns an error nothing has been
 * sent, and the next message has the number that this one would have had. */
int cpl_pt2pt_send(struct cpl_comm_state *state, const struct cpl_span *span, int dest, int tag,
                   enum cpl_send_mode mode, struct cpl_sending *sending);

/* Whether a payload is above the size limit: it travels as a message of its own, straight from the
 * program's buffer. */
bool cpl_pt2pt_goes_straight(int64_t bytes);

/* Waits for a send; makes a request of it. */
int cpl_pt2pt_finish_send(struct cpl_sending *sending);
int cpl_pt2pt_request_send(struct cpl_comm_state *state, struct cpl_sending *sending,
                           MPI_Request *request);

/* Whether a send is complete. */
bool cpl_pt2pt_send_done(struct cpl_sending *sending);

/* Nobody waits for a send any more, complete or not. */
void cpl_pt2pt_forget_send(struct cpl_sending *sending);

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
