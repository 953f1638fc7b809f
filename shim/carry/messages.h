/* Matched probes on managed communicators: MPI_Message handles for messages that MPI does not know
 * (doc/point-to-point.md). The handle is that of an empty message of the rank to itself, so that it
 * is a real one of MPI; a payload that goes straight has one. */
#ifndef CARPOOL_PT2PT_MESSAGES_H
#define CARPOOL_PT2PT_MESSAGES_H

#include "shim/carry/match.h"

struct cpl_comm_state;

/* Takes a message out of the queue and makes a handle for it. Returns MPI's error codes. */
int cpl_pt2pt_take_message(struct cpl_comm_state *state, struct cpl_arrival *arrival,
                           MPI_Message *message);

/* Whether a handle was made here. */
bool cpl_pt2pt_has_message(MPI_Message message);

/* Gives a receive, whose span is set, the message of a handle that was made here. Returns the
 * message's communicator. */
MPI_Comm cpl_pt2pt_receive_message(MPI_Message *message, struct cpl_receive *receive);

#endif
