/* Blocking collectives that poll while anything is carried (doc/architecture.md, Waiting). All
 * ranks of a communicator choose alike, because n_managed and n_served change together on all ranks
 * of MPI_COMM_WORLD, and only in collectives over all of them (pt2pt_parts.h has communicators of
 * fewer); communicators with processes of another world never poll. Cost while nothing is managed:
 * a branch.
 *
 * In a program with MPI_THREAD_MULTIPLE these may change while another thread enters a collective.
 * There the helper thread serves while a thread waits inside MPI (state/service.h), so no rank has
 * to poll; but it looks at times only. So the ranks settle at a communicator's own meetings whether
 * its collectives poll, and while they are in the exclusive section (meet/agree.h) all do. Thread
 * rule: within CPL_INSIDE; other threads of the program may go on meanwhile. */
#ifndef CARPOOL_COLLECTIVE_H
#define CARPOOL_COLLECTIVE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* cpl_collective_NAME, for every call of the tables that communicates over a communicator:
 * PMPI_NAME with any handles, polling when needed. */
#define MOVES(name, nonblocking, parameters, arguments) int cpl_collective_##name parameters;
#define ENTERS(name, comm, parameters, arguments)       int cpl_collective_##name parameters;
#define JOINS                                           ENTERS
#include "shim/tables/collectives.def"
#define NEIGHBOR(name, nonblocking, persistent, parameters, arguments, ...)                        \
    int cpl_collective_##name parameters;
#define ALLTOALL(name, nonblocking, persistent, parameters, arguments, ...)                        \
    int cpl_collective_##name parameters;
#include "shim/tables/calls.def"

/* The arguments of a blocking collective that can be checked before it. An argument that a call
 * does not have gets one of these values. */
#define CPL_NO_ROOT (-1000)
#define CPL_NO_TYPE ((MPI_Datatype)(uintptr_t)-1)
#define CPL_NO_OP   ((MPI_Op)(uintptr_t)-1)
struct cpl_arguments {
    int root;
    MPI_Count count, sendcount;
    MPI_Datatype datatype, sendtype, recvtype;
    MPI_Op op;
    const void *sendbuf, *recvbuf, *buffer;
};

/* Whether MPI would refuse the call on this rank because of an argument. Local. */
bool cpl_collective_is_refused(MPI_Comm comm, const struct cpl_arguments *arguments);

/* Whether all processes of a communicator, of both groups if it has two, are of this
 * MPI_COMM_WORLD. Local; the same answer on all its ranks. */
bool cpl_collective_of_this_world(MPI_Comm comm);

/* Whether a collective over comm has to poll: the same answer on all its ranks, whatever this one
 * has under way. Local. */
bool cpl_collective_polls(MPI_Comm comm);

/* A small PMPI_Allreduce of the shim's own on a communicator of the program. Where it can it is
 * nonblocking: MPICH counts a communicator's blocking collectives and adds in another order from
 * the fifth on (in shared memory), which is to be the fifth of the program. */
int cpl_collective_settle(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm);

/* PMPI_Waitsome, for who need not poll (progress.h); PMPI_Waitall, polling while anything is
 * managed. Local; MPI's return values. */
int cpl_collective_waitsome(int n, MPI_Request requests[], int *n_done, int indices[],
                            MPI_Status statuses[]);
int cpl_collective_waitall(int n, MPI_Request requests[], MPI_Status statuses[]);

#endif
