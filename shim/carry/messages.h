/* Matched probes on managed communicators: MPI_Message handles for messages that MPI does not know
 * (doc/point-to-point.md). The payload is sent once more, from the rank to itself, so that the
 * handle is MPI's own; source and tag are kept here. */
#ifndef CARPOOL_PT2PT_MESSAGES_H
#define CARPOOL_PT2PT_MESSAGES_H

#include "shim/carry/match.h"

struct cpl_comm_state;

/* Makes a handle for a message, which is taken out of the queue. Returns MPI's error codes. */
int cpl_pt2pt_take_message(struct cpl_comm_state *state, struct cpl_arrival *arrival,
                           MPI_Message *message);

/* Whether a handle is one of these. */
bool cpl_pt2pt_has_message(MPI_Message message);

/* A handle that is one of these is forgotten: returns the communicator's state, and what is to be
 * told of the message. */
struct cpl_comm_state *cpl_pt2pt_forget_message(MPI_Message message, int *source, int *tag,
                                                int64_t *bytes);

/* Whether handles of a communicator are still to be received. */
bool cpl_pt2pt_has_taken(const struct cpl_comm_state *state);

/* Frees what the handles' payloads took; nothing may be open any more. */
void cpl_pt2pt_free_messages(void);

#endif
