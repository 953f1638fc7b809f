/* What all ranks of a communicator settle together: whether all say yes, times to decide by, new
 * communicators, who shares a node. All functions but cpl_agree_ns are collective. */
#ifndef CARPOOL_AGREE_H
#define CARPOOL_AGREE_H

#include "shim/base/shared_memory.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct cpl_comm_state;

/* The private communicator on which a communicator's ranks settle things and reroute messages; made
 * at first need, by messages alone (doc/architecture.md). MPI_COMM_NULL on all ranks: there is none
 * to be had. Collective over its ranks. */
MPI_Comm cpl_agree_own(struct cpl_comm_state *state);

/* Makes a communicator of the same ranks as comm in the order of key, without attributes or
 * topology of the program's, whose errors return. Returns false on all ranks when that fails.
 * Collective. */
bool cpl_agree_split(MPI_Comm comm, int key, MPI_Comm *made);

/* A communicator, any handle, has been made. If it is a graph, the ranks tell each other who has
 * neighbours, and get an inner one where some have none (state/comm_state.h). Waits for memory.
 * Collective over it. */
void cpl_agree_graph(MPI_Comm made);

/* A communicator of the ranks of comm that share the caller's node, in their order, whose errors
 * return; the caller frees it. False on all ranks when MPI fails on one. Errors must return on
 * comm. Collective. */
bool cpl_agree_split_node(MPI_Comm comm, MPI_Comm *node);

/* Where a rank sits. */
struct cpl_seat {
    int64_t node; /* that ranks of the same node share: set by the user's ranks per node, or the
                     first rank that shares memory */
    int64_t world_rank;
    int64_t word; /* what else it says where seats are handed in (decision.h) */
};

/* The calling rank's. Errors must return on comm. Collective. */
struct cpl_seat cpl_agree_seat(MPI_Comm comm);

/* A time as ranks decide by it: whole nanoseconds, whose sums are the same on all ranks in whatever
 * order MPI adds them up. Sums of floating-point numbers need not be. Local. */
int64_t cpl_agree_ns(double seconds);

/* Whether all ranks of comm say yes. Collective. */
bool cpl_agree_all(MPI_Comm comm, bool yes);

/* The communicator for the barriers of assembly.h and for appointments, with all ranks in the order
 * of MPI_COMM_WORLD; made once. Returns the same on all ranks. Collective over `over`, which has
 * the ranks of MPI_COMM_WORLD. */
bool cpl_agree_world(MPI_Comm over);

/* Prepares this process for managing or serving: the helper thread (service.h), that communicator,
 * and the parts (hooks.h, prepare). Returns the same on all ranks. Collective over `over`, which
 * has the ranks of MPI_COMM_WORLD. */
bool cpl_agree_service(MPI_Comm over);

/* node_memory.c: memory for the ranks of `node`: bytes, which are alike on all, of which the first
 * CPL_SHARED_HEAD are taken; the others are zeros. It has no name any more, so nothing stays when a
 * process dies; the caller frees it by cpl_shared_free. NULL on all of them when one cannot open
 * it: why says what went wrong on this rank, if anything did. Whether ranks share memory is tried,
 * not believed. Collective over node, whose errors return. */
unsigned char *cpl_node_memory_open(MPI_Comm node, int64_t bytes, char why[CPL_SHARED_WHY]);

extern const struct cpl_hooks cpl_node_hooks; /* own.c */

/* Exclusive sections. With MPI_THREAD_MULTIPLE the ranks may meet on several communicators at the
 * same time, in another order on each rank, and other threads call MPI meanwhile. So nothing is
 * settled but by who is in the exclusive section on all ranks of a communicator: there, no other
 * thread is in a call, and none enters one until it is over.
 *
 * It is asked for, not waited for. In a first round each rank gives it to who asks first, if no
 * other thread is in a call; meanwhile others may come and go, since the ranks that have not come
 * yet may wait for them. Once all ranks have given it, all have come: in a second round, with the
 * lock kept, they see whether each is still alone. Where a communicator does not get it, none of
 * its ranks settles anything, and they try again at a later call, or leave the matter to MPI. */

/* Enters the exclusive section, on all ranks of comm or on none; always in a program without
 * several threads. Returns whether they have it; alike on all. Until cpl_exclusive_leave,
 * collectives of all communicators poll (wait/collective.h). Collective. */
bool cpl_exclusive_take(MPI_Comm comm);

/* Gives it back. Local. */
void cpl_exclusive_leave(void);

#endif
