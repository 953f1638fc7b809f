/* The order in which a blocking neighborhood exchange's messages leave (CARPOOL_ORDER=on): first to
 * the ranks that send most in the exchange that follows.
 *
 * Each rank notes how many messages it has sent in the exchange that came next, on whatever
 * communicator. At the 4th, 8th, 16th ... call of an exchange, unless its plans are being tried,
 * the ranks look for a better order (meet/send_order.h). In a plan it is one of the messages that
 * leave at once. Where MPI carries the exchange, the library sends the program's messages itself
 * (way_straight.c). An exchange that follows itself keeps its order. Thread rule: one thread. */
#ifndef CARPOOL_NEIGHBOR_ORDER_H
#define CARPOOL_NEIGHBOR_ORDER_H

#include "shim/meet/send_order.h"

#include <stdint.h>

struct cpl_comm_state;
struct cpl_exchange;

struct cpl_order {
    /* The exchange that came next, on this rank: */
    int32_t next_sends; /* messages that this rank sent in it; 0: none, or not known */
    int32_t next_kind;
    uint64_t next_pattern; /* fingerprint; 0: not known */
    /* Alike on all ranks: */
    struct cpl_order_units units; /* the last time that a better order was found */
    int64_t n_calls;              /* ordered calls that MPI would have carried */
    /* This rank's out-messages in the order of sending, for calls that MPI would carry; NULL on all
     * ranks: MPI carries them. */
    int32_t *message;
};

/* Call it before each blocking call. Collective over the communicator. */
void cpl_neighbor_order(struct cpl_comm_state *state, struct cpl_exchange *exchange);

#endif
