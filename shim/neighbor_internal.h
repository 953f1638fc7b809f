/* What the files that implement neighbor.h share. */
#ifndef CARPOOL_NEIGHBOR_INTERNAL_H
#define CARPOOL_NEIGHBOR_INTERNAL_H

#include "neighbor.h"

/* Room for the data of one call; false when memory ran out (free it then, too). Local. */
bool cpl_neighbor_data_make(struct cpl_neighbor_data *data, const struct cpl_adjacency *adjacency);
void cpl_neighbor_data_free(struct cpl_neighbor_data *data);

/* Finds where the data of all neighbours is: fills out_span and in_span. Returns false when an
 * argument is one that MPI would refuse: the call is then left to MPI, which does. Local. */
bool cpl_neighbor_resolve(const struct cpl_neighbor_call *call,
                          const struct cpl_adjacency *adjacency, struct cpl_neighbor_data *data);

/* Bytes of the payload for out-message m: its parts, and their lengths when there are several.
 * After resolving. */
int64_t cpl_neighbor_payload_bytes(const struct cpl_neighbor_data *data,
                                   const struct cpl_adjacency *adjacency, int m);

/* Plans an exchange on all ranks: its phase is PLANNED or DIRECT afterwards. Collective. */
void cpl_neighbor_plan(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                       struct cpl_exchange *exchange);

/* One carrying of a planned exchange: from the data resolved for it until it is complete. One at a
 * time for an exchange. */
struct cpl_neighbor_ride {
    const struct cpl_comm_state *state;
    struct cpl_exchange *x;
    struct cpl_neighbor_data *data;
    bool carried; /* all that goes by combined messages is done */
    int result;   /* MPI's, of the first error */
};

/* Starts and advances a carrying, neither ever waits. Progress returns true when it is complete. */
void cpl_neighbor_ride_start(struct cpl_neighbor_ride *ride);
bool cpl_neighbor_ride_progress(struct cpl_neighbor_ride *ride);

/* Carries a blocking call of a planned exchange, whose data is resolved. Returns MPI's result,
 * after the error handler when it is an error. */
int cpl_neighbor_run(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                     struct cpl_exchange *exchange);

/* Tags that an exchange has on the private communicator. */
#define CPL_NEIGHBOR_TAGS (CPL_EXECUTOR_TAGS + 1)

static inline int cpl_neighbor_straight_tag(const struct cpl_exchange *exchange)
{
    return exchange->first_tag + CPL_EXECUTOR_TAGS;
}

#endif
