/* Sends of managed communicators: which payloads travel as messages of their own, and what a send
 * still waits for. */
#ifndef CARPOOL_SENDING_H
#define CARPOOL_SENDING_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* A send that is complete when its message has been matched. */
struct cpl_synchronous {
    struct cpl_synchronous *prev, *next;
    int dest;
    uint32_t number;
    bool done;
    bool abandoned; /* nobody waits for it */
};

/* What a send still waits for: an MPI request (payload on its way, straight), or an
 * acknowledgement, or neither. */
struct cpl_sending {
    MPI_Request inner;
    struct cpl_synchronous *synchronous;
};

/* Whether a payload is above the size limit: it travels as a message of its own, straight from the
 * program's buffer. */
bool cpl_goes_straight(int64_t bytes);

/* A send to dest waits for the acknowledgement of its message's number; NULL: no memory. */
struct cpl_synchronous *cpl_sending_expect(struct cpl_synchronous **list, int dest,
                                           uint32_t number);

/* It has not been sent after all. */
void cpl_sending_withdraw(struct cpl_synchronous **list, struct cpl_sending *sending);

/* The message has been matched. */
void cpl_sending_acknowledged(struct cpl_synchronous **list, int dest, uint32_t number);

/* Whether a send is complete. */
bool cpl_sending_is_done(struct cpl_sending *sending);

/* Nobody waits for a send any more, complete or not. */
void cpl_sending_forget(struct cpl_sending *sending);

#endif
