/* Communicators are MPI's to give, and the program's (MPICH has 2,048). Where a program has many,
 * the library gives those back that it made for itself, and with them what it carries on the
 * program's communicators, where nothing is under way; it makes no more then. */
#ifndef CARPOOL_RECLAIM_H
#define CARPOOL_RECLAIM_H

#include <mpi.h>
#include <stdint.h>

struct cpl_comm_state;

/* A communicator was made in a call of all ranks of `over`. Collective over that one. */
void cpl_reclaim_made(MPI_Comm over);

/* Of the communicators with a private one, that with the lowest number above `above`: on all ranks
 * in the same order; NULL: there is none. Local. */
struct cpl_comm_state *cpl_reclaim_next(int64_t above);

#endif
