/* Learned duplicates of a planned exchange: while its first calls are carried, the messages are
 * looked at (duplicates.h); then the ranks agree on a plan of their parts (parts.h), which from
 * then on carries every call, or is tried against the plan in use. When breaking equalities cost
 * too much of what is saved, the exchange is planned without those that broke, and then given back
 * to the plan it had.
 *
 * Blocking calls only: nonblocking ones are carried by the first plan. */
#ifndef CARPOOL_NEIGHBOR_SHARE_H
#define CARPOOL_NEIGHBOR_SHARE_H

#include "shim/carry/duplicates.h"
#include "shim/carry/executor.h"
#include "shim/carry/parts.h"

#include <stdbool.h>
#include <stdint.h>

struct cpl_comm_state;
struct cpl_exchange;
struct cpl_neighbor_call;
struct cpl_neighbor_data;

/* A received message whose elements cannot be put straight to their places. */
struct cpl_scratch {
    unsigned char *data; /* the message as packed; NULL until it is needed */
    int32_t n_arrived;   /* of its parts */
};

/* A rank's side. Until shared_executor is set the ranks observe; active, calls, the numbers of
 * calls and the executor's presence are alike on all ranks. */
struct cpl_sharing {
    bool active;
    int64_t calls; /* since the exchange was planned */
    int64_t next_review;
    int32_t n_reviews;
    int32_t n_shared;                  /* plans of parts so far */
    struct cpl_executor *executor;     /* of these, the one in use: one of the exchange's */
    struct cpl_duplicates *duplicates; /* NULL: none of this rank's, or nothing found yet */
    int32_t n_messages;                /* of this rank's in the plan */
    struct cpl_piece *pieces;          /* of the call at hand */
    struct cpl_parts parts;
    int32_t n_in;
    int32_t **words; /* per in-message: how its sender divides it; NULL: it goes straight */
    struct cpl_divided *divided;
    struct cpl_scratch *scratch;
    /* On this rank, since the parts were planned, and over all: */
    int64_t lost, lost_broken; /* bytes of records, and of those for broken equalities */
    int64_t n_broken;
    int64_t saved;                  /* bytes of a call: as last planned; and */
    int64_t n_elements;             /* elements of these, copies not counted */
    struct cpl_executor_work after; /* by plans of parts that are gone */
};

/* An exchange has been planned: begins to observe if the settings want it. */
void cpl_neighbor_share_begin(struct cpl_exchange *exchange);

/* Before each blocking call of a planned exchange. Collective. */
void cpl_neighbor_share(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                        struct cpl_exchange *exchange);

/* Compares the copies of a call that parts carry, whose straight messages are known. Local. */
void cpl_neighbor_share_prepare(struct cpl_exchange *exchange,
                                const struct cpl_neighbor_data *data);

/* What this rank has done by plans of parts. Local. */
struct cpl_executor_work cpl_neighbor_share_work(const struct cpl_exchange *exchange);

/* Frees everything but the exchange's executors. Local. */
void cpl_neighbor_share_free(struct cpl_sharing *sharing);

/* Frees what is known of the parts; looking for duplicates goes on. Local. */
void cpl_neighbor_share_free_parts(struct cpl_sharing *sharing);

#endif
