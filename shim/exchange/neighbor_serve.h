/* When the nonblocking neighborhood collectives of a communicator are decided about. */
#ifndef CARPOOL_NEIGHBOR_SERVE_H
#define CARPOOL_NEIGHBOR_SERVE_H

#include "shim/meet/date.h"
#include "shim/meet/pace.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* When the nonblocking neighborhood collectives are decided about (neighbor_serve.c). */
struct cpl_serve {
    bool named;   /* there has been a nonblocking call */
    bool counted; /* in cpl_context.busy.n_served */
    int64_t id;   /* names the communicator on all its ranks, once the request is complete */
    MPI_Request request;
    struct cpl_date date; /* when they are decided about; alike on all ranks */
    bool met_any;         /* there was something to decide; alike on all ranks */
    struct cpl_pace pace; /* by nonblocking calls on any communicator */
    int64_t n_carried;    /* of these, at the last blocking collective */
};

#endif
