/* The pieces of which ways carry a call (way.h): what goes from the program's buffers to the
 * program's buffers, each message on its own. A way takes those that it does not carry otherwise.
 *
 * Order of calls: a way's `start` calls the pieces, receives before sends; its `progress` and
 * `wait` may be the ones here, or call them when their own part is done. Errors are kept in
 * c->result, and nothing stops at one. Receiving and sending one message are two sides of one
 * thing: what one end does by cpl_carrying_send the other must expect by cpl_carrying_receive.
 * Thread rule: one thread. */
#ifndef CARPOOL_CARRYING_H
#define CARPOOL_CARRYING_H

#include "shim/exchange/neighbor_internal.h"

/* Keeps MPI's result when it is the first error. */
static inline void cpl_carrying_note(struct cpl_carrying *c, int code)
{
    if (c->result == MPI_SUCCESS)
        c->result = code;
}

/* Starts to send or receive a message of its own, on the private communicator. Local. */
void cpl_carrying_move(struct cpl_carrying *c, bool sends, const struct cpl_span *span, int peer,
                       int tag, MPI_Request *request);

/* Starts to receive in-message m, with all its parts, into the program's buffer. Local. */
void cpl_carrying_receive(struct cpl_carrying *c, int m);

/* Starts to send out-message m, with all its parts, from the program's buffer. Local. */
void cpl_carrying_send(struct cpl_carrying *c, int m);

/* Starts the messages that are not among the neighbours', receives first. Local. */
void cpl_carrying_extras(struct cpl_carrying *c);

/* Copies the messages of the rank to itself. Local. */
void cpl_carrying_selves(struct cpl_carrying *c);

/* Whether all requests are complete; never waits. Local. */
bool cpl_carrying_progress(struct cpl_carrying *c);

/* Waits for all requests, or for some; with collectives that poll, it does, too
 * (wait/collective.h). */
void cpl_carrying_wait(struct cpl_carrying *c);
void cpl_carrying_wait_for(struct cpl_carrying *c, int n, MPI_Request *requests,
                           MPI_Status *statuses);

#endif
