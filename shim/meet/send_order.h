/* A better order of the messages that a rank sends at once, when it is known how much each receiver
 * sends afterwards (planner/order.h). Every rank sorts its own list; together the ranks compare the
 * new order with the old one, in units of time. neighbor_order.h and point-to-point exchanges use
 * it.
 *
 * Order of calls: make, fill in the lists and keys, find, use, free. Thread rule: one thread. */
#ifndef CARPOOL_SEND_ORDER_H
#define CARPOOL_SEND_ORDER_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* The last rank's completion of both exchanges, in sends (planner/order.h). */
struct cpl_order_units {
    int32_t given, ordered; /* in the old order; in the new one */
    int32_t least, most;    /* bounds for any order */
};

struct cpl_send_order {
    int rank, n_ranks;
    int32_t *key; /* per rank: how much it sends afterwards; alike on all ranks */
    /* This rank's: */
    int n_given;
    int32_t *given; /* destinations of its sends in the old order */
    int n;
    int32_t *to, *weight; /* per message: its destination, and how many sends it takes */
    int64_t *order;       /* the result: numbers of the messages in the new order */
    int64_t *wide;        /* scratch memory of cpl_send_order_find */
    int32_t *when;        /* the same */
};

/* Makes room for at most most_sends messages and sends of this rank; everything is zero. Returns
 * false when memory ran out; free it in that case, too. Local. */
bool cpl_send_order_make(struct cpl_send_order *o, int rank, int n_ranks, int most_sends);
void cpl_send_order_free(struct cpl_send_order *o);

/* Sorts the messages by the receiver's key, largest first. Returns whether the last rank is done
 * earlier in this order, the same on all ranks of comm; *units compares the two. Collective. */
bool cpl_send_order_find(MPI_Comm comm, struct cpl_send_order *o, struct cpl_order_units *units);

#endif
