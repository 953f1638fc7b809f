/* What all ranks of a communicator settle together: whether all say yes, times to decide by, new
 * communicators, who shares a node, who plans. All functions but cpl_agree_ns are collective. */
#ifndef CARPOOL_AGREE_H
#define CARPOOL_AGREE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct cpl_comm_state;

/* The private communicator on which a communicator's ranks settle things and reroute messages; made
 * at first need. That disturbs none of the program's collectives: MPI makes it by messages of its
 * own, while collectives of ours on the program's communicator would have to come in one order with
 * the program's nonblocking ones. MPI_COMM_NULL on all ranks: there is none to be had. Collective
 * over its ranks. */
MPI_Comm cpl_agree_own(struct cpl_comm_state *state);

/* Makes a communicator of the same ranks as comm in the order of key, without attributes or
 * topology of the program's, whose errors return. Returns false on all ranks when that fails.
 * Collective. */
bool cpl_agree_split(MPI_Comm comm, int key, MPI_Comm *made);

/* A communicator, any handle, has been made. If it is a graph, the ranks tell each other who has
 * neighbours, and get an inner one where some have none (state/graph.h). Waits for memory.
 * Collective over it. */
void cpl_agree_graph(MPI_Comm made);

/* A communicator of the ranks of comm that share the caller's node, in their order, whose errors
 * return; the caller frees it. False on all ranks when MPI fails on one. Errors must return on
 * comm. Collective. */
bool cpl_agree_split_node(MPI_Comm comm, MPI_Comm *node);

/* Where a rank sits. Those who plan find it at the beginning of what each rank hands in
 * (decision.h).
 */
struct cpl_seat {
    int64_t node; /* that ranks of the same node share: set by the user's ranks per node, or the
                     first rank that shares memory */
    int64_t world_rank;
};

/* The calling rank's. Errors must return on comm. Collective. */
struct cpl_seat cpl_agree_seat(MPI_Comm comm);

/* The rank that plans: the one that comes first in MPI_COMM_WORLD, so that mostly one process does
 * it for all communicators and tells the user what there is to tell once. rank is the caller's in
 * comm. Collective. */
int cpl_agree_root(MPI_Comm comm, int rank);

/* A time as ranks decide by it: whole nanoseconds, whose sums are the same on all ranks in whatever
 * order MPI adds them up. Sums of floating-point numbers need not be. Local. */
int64_t cpl_agree_ns(double seconds);

/* Whether all ranks of comm say yes. Collective. */
bool cpl_agree_all(MPI_Comm comm, bool yes);

/* The communicator for the barriers of away.h and for appointments, with all ranks in the order of
 * MPI_COMM_WORLD; made once. Returns the same on all ranks. Collective over `over`, which has the
 * ranks of MPI_COMM_WORLD. */
bool cpl_agree_world(MPI_Comm over);

/* Prepares this process for managing or serving: the helper thread (service.h), that communicator,
 * and the parts (hooks.h, prepare). Returns the same on all ranks. Collective over `over`, which
 * has the ranks of MPI_COMM_WORLD. */
bool cpl_agree_service(MPI_Comm over);

#endif
