/* When the ranks decide about the nonblocking neighborhood collectives of a communicator. */
#ifndef CARPOOL_NEIGHBOR_SERVE_H
#define CARPOOL_NEIGHBOR_SERVE_H

#include "shim/meet/date.h"
#include "shim/meet/pace.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Calls are not tried, but given back when the program has become slower: that takes so many times
 * from collective to collective of before, so in mode auto nothing is decided before the date. */
#define CPL_LEAST_PACES 6
#define CPL_PACED_DATE  (CPL_LEAST_PACES + 2)

/* State of these decisions (neighbor_serve.c). */
struct cpl_serve {
    bool named;   /* there has been a nonblocking call */
    bool counted; /* the communicator counts in cpl_context.busy.n_served */
    int64_t id;   /* name of the communicator on all its ranks, once `request` is complete */
    MPI_Request request;
    struct cpl_date date; /* when they are decided about; alike on all ranks */
    bool met_any;         /* there was something to decide; alike on all ranks */
    struct cpl_pace pace; /* pace of nonblocking calls on any communicator */
    int64_t n_carried;    /* carried nonblocking calls, at the last blocking collective */
};

struct cpl_comm_state;

/* Calls on the communicator are carried from now on. On all its ranks. */
void cpl_neighbor_serve_count(struct cpl_comm_state *state);

#endif
