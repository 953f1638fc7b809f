/* Matched probes on managed communicators: MPI_Message handles for messages that MPI does not know
 * (doc/point-to-point.md). The rank sends the payload once more, to itself, so that the handle is a
 * real one of MPI; this module keeps source and tag. */
#ifndef CARPOOL_PT2PT_MESSAGES_H
#define CARPOOL_PT2PT_MESSAGES_H

#include "shim/carry/match.h"

struct cpl_comm_state;

/* Takes a message out of the queue and makes a handle for it. Returns MPI's error codes. */
int cpl_pt2pt_take_message(struct cpl_comm_state *state, struct cpl_arrival *arrival,
                           MPI_Message *message);

/* Whether a handle was made here. */
bool cpl_pt2pt_has_message(MPI_Message message);

/* Forgets a handle that was made here. Returns the communicator's state, and source, tag and bytes
 * of the message. */
struct cpl_comm_state *cpl_pt2pt_forget_message(MPI_Message message, int *source, int *tag,
                                                int64_t *bytes);

/* Whether messages behind handles of a communicator are still to be received. */
bool cpl_pt2pt_has_taken(const struct cpl_comm_state *state);

/* Frees the memory of handles that were received and whose payloads have been sent. */
void cpl_pt2pt_free_messages(void);

#endif
