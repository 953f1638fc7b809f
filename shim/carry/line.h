/* A line: a communicator on which the shim's own messages travel. It has combined messages
 * (combined.h), reductions that carry messages (embed.h), and a matching engine (match.h). */
#ifndef CARPOOL_LINE_H
#define CARPOOL_LINE_H

#include "shim/carry/combined.h"
#include "shim/carry/embed.h"
#include "shim/carry/match.h"
#include "shim/carry/requests.h"

#include <stdbool.h>
#include <stdint.h>

struct cpl_comm_state;

struct cpl_line {
    /* Alike on all ranks: */
    bool managed; /* the program's point-to-point messages travel on it: it is in
                     cpl_context.comms.first_managed */
    bool kept;    /* they are MPI's for a while, and what the line has for them is kept */
    struct cpl_comm_state *next_managed;
    struct cpl_combined combined;
    struct cpl_embed embed;
    struct cpl_match match;
    uint32_t *next_number; /* per rank: number of the next message to it */
};

/* cpl_line_open begins to receive combined messages, and makes room for matching; false when memory
 * ran out. cpl_line_manage: from then on the messages are the line's, and it is polled.
 * cpl_line_keep: they are MPI's for a while, until cpl_line_manage. cpl_line_close ends all this.
 * At the last two nothing may be under way. All ranks call alike. */
bool cpl_line_open(struct cpl_comm_state *state);
void cpl_line_manage(struct cpl_comm_state *state);
void cpl_line_keep(struct cpl_comm_state *state);
void cpl_line_close(struct cpl_comm_state *state);

/* Waits until no combined message is under way any more, on any rank. Collective. */
void cpl_line_drain(struct cpl_comm_state *state);

/* Matched probes: MPI_Message handles for messages that MPI does not know. The handle is that of an
 * empty message of the rank to itself, so that it is a real one of MPI; a payload that goes
 * straight has one.
 *
 * cpl_line_take_message takes a message out of the queue and makes a handle for it; returns MPI's
 * error codes. cpl_line_has_message: whether a handle was made here. cpl_line_receive_message gives
 * a receive, whose span is set, the message of such a handle; returns its communicator. */
int cpl_line_take_message(struct cpl_comm_state *state, struct cpl_arrival *arrival,
                          MPI_Message *message);
bool cpl_line_has_message(MPI_Message message);
MPI_Comm cpl_line_receive_message(MPI_Message *message, struct cpl_receive *receive);

/* That of all communicators of which nothing is kept. */
extern const struct cpl_line cpl_line_blank;

extern const struct cpl_hooks cpl_line_hooks;

#endif
