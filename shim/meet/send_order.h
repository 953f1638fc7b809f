/* A better order of the messages that a rank sends at once: first to the ranks that send most
 * afterwards (planner/order.h). Thread rule: one thread. */
#ifndef CARPOOL_SEND_ORDER_H
#define CARPOOL_SEND_ORDER_H

#include <stdbool.h>
#include <stdint.h>

struct cpl_comm_state;

/* When the last rank has done both exchanges, in sends: in the order of before, in the new one. No
 * order has been found as long as they are 0. */
struct cpl_order_units {
    int32_t given, ordered;
};

/* Orders this rank's sends: the k-th is that of message list[k], to rank to[list[k]]; a message of
 * several sends is there several times. NULL: memory has run out. `next`: how much this rank sends
 * afterwards. Returns whether the new order is better, the same on all ranks; the list and *units
 * change only then. Collective over the private communicator. */
bool cpl_send_order_find(const struct cpl_comm_state *state, int32_t next, int32_t *list, int32_t n,
                         const int32_t *to, struct cpl_order_units *units);

#endif
