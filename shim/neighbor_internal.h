/* What the files that implement neighbor.h share. */
#ifndef CARPOOL_NEIGHBOR_INTERNAL_H
#define CARPOOL_NEIGHBOR_INTERNAL_H

#include "neighbor.h"

/* Finds where the data of all neighbours is: fills the exchange's out_span and in_span. Returns
 * false when an argument is one that MPI would refuse: the call is then left to MPI, which does.
 * Local. */
bool cpl_neighbor_resolve(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                          struct cpl_exchange *exchange);

/* Bytes of the payload for out-message m: its parts, and their lengths when there are several.
 * After resolving. */
int64_t cpl_neighbor_payload_bytes(const struct cpl_exchange *exchange,
                                   const struct cpl_comm_state *state, int m);

/* Plans an exchange on all ranks: its phase is PLANNED or DIRECT afterwards. Collective. */
void cpl_neighbor_plan(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                       struct cpl_exchange *exchange);

/* Carries a call of a planned exchange. Returns MPI's result, after the error handler when it is an
 * error. */
int cpl_neighbor_run(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                     struct cpl_exchange *exchange);

/* Tags on the private communicator: each kind of call has the executor's and one for straight
 * messages. */
static inline int cpl_neighbor_first_tag(enum cpl_neighbor_kind kind)
{
    return (int)kind * (CPL_EXECUTOR_TAGS + 1);
}

static inline int cpl_neighbor_straight_tag(enum cpl_neighbor_kind kind)
{
    return cpl_neighbor_first_tag(kind) + CPL_EXECUTOR_TAGS;
}

#endif
