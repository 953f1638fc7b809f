/* A better order of what the ranks send at once, when it is known how much each sends afterwards
 * (planner/order.h): every rank sorts its own list, and together they compare, in units of time,
 * the new order with the one of before. For neighbor_order.h and point-to-point exchanges.
 *
 * Order of calls: make, fill in the lists and keys, find, use, free. Thread rule: one thread. */
#ifndef CARPOOL_SEND_ORDER_H
#define CARPOOL_SEND_ORDER_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* The last rank's completion of both exchanges, in sends (planner/order.h). */
struct cpl_order_units {
    int32_t given, ordered; /* in the order of before, and in the new one */
    int32_t least, most;    /* what no order is below, and what none exceeds */
};

struct cpl_send_order {
    int rank, n_ranks;
    int32_t *key; /* per rank: what it sends afterwards; alike on all ranks */
    /* This rank's: */
    int n_given;
    int32_t *given; /* destinations of its sends in the order of before */
    int n;
    int32_t *to, *weight; /* of its messages: destination, and how many sends it takes */
    int64_t *order;       /* found: their numbers in the new order */
    int64_t *wide;        /* for finding */
    int32_t *when;
};

/* Room for so many messages and sends of this rank; all is zero. Returns false when memory ran out
 * (free it then, too). Local. */
bool cpl_send_order_make(struct cpl_send_order *o, int rank, int n_ranks, int most_sends);
void cpl_send_order_free(struct cpl_send_order *o);

/* Sorts the messages: by descending key of the receiver. Returns on all ranks of comm alike whether
 * the last one is done earlier so; *units is what the orders come to. Collective. */
bool cpl_send_order_find(MPI_Comm comm, struct cpl_send_order *o, struct cpl_order_units *units);

#endif
