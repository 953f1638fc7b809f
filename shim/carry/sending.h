/* Sends on managed communicators: whether a payload travels as a message of its own, and what a
 * send still waits for. */
#ifndef CARPOOL_SENDING_H
#define CARPOOL_SENDING_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* A synchronous send: it is complete when its message has been matched. */
struct cpl_synchronous {
    struct cpl_synchronous *prev, *next;
    int dest;
    uint32_t number;
    bool done;
    bool abandoned; /* nobody waits for the send any more */
};

/* What a send still waits for: an MPI request (for a straight payload), an acknowledgement, or
 * neither. */
struct cpl_sending {
    MPI_Request inner;
    struct cpl_synchronous *synchronous;
};

/* Whether a payload is above the size limit: it travels as a message of its own, straight from the
 * program's buffer. */
bool cpl_goes_straight(int64_t bytes);

/* Makes a send to dest wait for the acknowledgement of its message `number`. Returns NULL when
 * memory ran out. */
struct cpl_synchronous *cpl_sending_expect(struct cpl_synchronous **list, int dest,
                                           uint32_t number);

/* The message was not sent after all: removes the expectation. */
void cpl_sending_withdraw(struct cpl_synchronous **list, struct cpl_sending *sending);

/* The acknowledgement has come: the message was matched. */
void cpl_sending_acknowledged(struct cpl_synchronous **list, int dest, uint32_t number);

/* Whether a send is complete. */
bool cpl_sending_is_done(struct cpl_sending *sending);

/* Nobody waits for a send any more, complete or not. */
void cpl_sending_forget(struct cpl_sending *sending);

#endif
