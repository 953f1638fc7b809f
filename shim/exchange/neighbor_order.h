/* The order in which a neighborhood exchange's messages leave when another exchange always follows
 * it (planner/order.h): messages to the ranks that send most in the following exchange go first.
 *
 * Each rank notes which exchange follows which. At the 4th, 8th, 16th ... blocking call of an
 * exchange, and at the meetings about nonblocking ones (neighbor_serve.c), the ranks tell each
 * other how many messages they send next. They compare, in units of time, the present order (the
 * program's or the plan's) with the order by these numbers, and use the better one. In a plan it
 * holds for the messages that leave at once. Where MPI carries the exchange, the library sends the
 * program's messages itself, from the program's buffers, in that order. In auto mode the ranks
 * measure blocking exchanges with and without it (trial.h), from the start of the first exchange to
 * the end of the following one.
 *
 * Exchanges of all communicators count. Not ordered are: an exchange that follows itself; one that
 * another blocking collective separates from its follower, since all ranks wait there anyway; and
 * one whose follower has changed more than CPL_VARIED times.
 * Thread rule: one thread. */
#ifndef CARPOOL_NEIGHBOR_ORDER_H
#define CARPOOL_NEIGHBOR_ORDER_H

#include "shim/meet/date.h"
#include "shim/meet/send_order.h"
#include "shim/meet/trial.h"

#include <stdbool.h>
#include <stdint.h>

struct cpl_comm_state;
struct cpl_exchange;

#define CPL_VARIED 16

/* The exchange that came next after an exchange, on this rank. */
struct cpl_follower {
    int64_t number;  /* number of the next exchange on this rank; 0: none yet */
    int64_t times;   /* how often it came next, in a row */
    int32_t changes; /* changes from one follower to another; above CPL_VARIED nothing counts as
                        following */
    int32_t sends;   /* messages that this rank sent in it, the last time */
    bool settled;    /* how it is carried was not in a trial */
    bool waits;      /* it was a nonblocking call, whose end is not seen */
    int32_t kind;
    uint64_t pattern; /* fingerprint of its pattern; 0: not known */
};

struct cpl_order {
    int64_t number; /* names the exchange on this rank; 0: not called yet */
    struct cpl_follower next;
    const struct cpl_exchange *before; /* cpl_context.exchanges.last before the last call */
    struct cpl_exchange *after;        /* cpl_context.exchanges.last after a call that passes */
    /* Alike on all ranks: */
    struct cpl_date date; /* of the calls: the ranks look for an order */
    int64_t n_meetings;   /* of nonblocking calls */
    bool made;            /* there is an order */
    int32_t candidate; /* candidate of the exchange's trial (trial.h) whose messages are ordered */
    struct cpl_order_units units;
    struct cpl_trial trial; /* candidate 1: with the order */
    int32_t *key;           /* per rank: number of messages that it sends in the next exchange */
    /* This rank's: */
    int *message;    /* its out-messages in the order of sending, for exchanges that MPI carries */
    bool is_timed;   /* the last call was part of the trial: alike on all ranks */
    double start;    /* start of that call, in seconds */
    double own_us;   /* time from that start to the end of the next exchange */
    int64_t n_calls; /* ordered calls that MPI would have carried */
};

/* Call it before each blocking call. Collective over the communicator. */
void cpl_neighbor_order(struct cpl_comm_state *state, struct cpl_exchange *exchange);

/* cpl_neighbor_order_is_learned: whether this rank has learned that x follows `before`, or that
 * nothing always follows it (before x is planned: that it did so the last times).
 * cpl_neighbor_order_quiet: number of calls of x, which is left to MPI, until there is something to
 * do about its order. Local. */
bool cpl_neighbor_order_is_learned(const struct cpl_exchange *before, const struct cpl_exchange *x);
int64_t cpl_neighbor_order_quiet(const struct cpl_exchange *x);

/* As cpl_neighbor_order, for a nonblocking call. Local. */
void cpl_neighbor_order_started(struct cpl_exchange *exchange);

/* At a meeting of nonblocking calls: orders those that are carried. Collective over all ranks. */
void cpl_neighbor_order_served(void);

/* Whether the current call is part of a measurement, before which all ranks come together. */
bool cpl_neighbor_order_is_tried(const struct cpl_exchange *exchange);

/* Begins the measurement, when the ranks have come together. Local. */
void cpl_neighbor_order_begin(struct cpl_exchange *exchange);

/* Whether messages are sent in the new order when a candidate of the trial carries the call. */
bool cpl_neighbor_is_ordered(const struct cpl_exchange *exchange, int32_t candidate);

/* cpl_neighbor_order_waits: whether cpl_neighbor_order_ended is to be called at the end of the
 * current call. */
bool cpl_neighbor_order_waits(void);
void cpl_neighbor_order_ended(const struct cpl_exchange *exchange);

/* cpl_neighbor_order_free: frees an order. cpl_neighbor_order_forget: the exchange itself ends. */
void cpl_neighbor_order_free(struct cpl_order *order);
void cpl_neighbor_order_forget(const struct cpl_exchange *exchange);

#endif
