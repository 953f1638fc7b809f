/* Blocking collectives that poll (collective.h). */
#include "collective.h"

#include "context.h"
#include "neighbor.h"
#include "pt2pt.h"

/* Whether a group has only processes of this MPI_COMM_WORLD. */
static bool within_world(MPI_Group group)
{
    MPI_Group world, others;
    int n_others = 1;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    if (PMPI_Group_difference(group, world, &others) == MPI_SUCCESS) {
        PMPI_Group_size(others, &n_others);
        PMPI_Group_free(&others);
    }
    PMPI_Group_free(&world);
    return n_others == 0;
}

static bool is_intercommunicator(MPI_Comm comm)
{
    int inter = 0;
    PMPI_Comm_test_inter(comm, &inter);
    return inter;
}

bool cpl_collective_of_this_world(MPI_Comm comm)
{
    MPI_Group group;
    if (PMPI_Comm_group(comm, &group) != MPI_SUCCESS)
        return false;
    bool within = within_world(group);
    PMPI_Group_free(&group);
    if (within && is_intercommunicator(comm)) {
        PMPI_Comm_remote_group(comm, &group);
        within = within_world(group);
        PMPI_Group_free(&group);
    }
    return within;
}

/* Whether a collective over comm has to poll: the same answer on all its ranks, whatever this one
 * has under way. */
static bool must_poll(MPI_Comm comm)
{
    return cpl_context.n_managed + cpl_context.n_served > 0 && comm != MPI_COMM_NULL &&
           (!cpl_context.met_others || cpl_collective_of_this_world(comm));
}

/* Waits until all ranks of comm, of both groups if it has two, have come here. A barrier between
 * two groups tells that the other group has come; the second one that it has left the first one,
 * for which all of this group have come. */
static void gather_ranks(MPI_Comm comm)
{
    cpl_pt2pt_gather_ranks(comm);
    if (is_intercommunicator(comm))
        cpl_pt2pt_gather_ranks(comm);
}

/* Ends a nonblocking form; `started` is what its start returned. */
static int finish(int started, MPI_Request *request)
{
    return started == MPI_SUCCESS ? cpl_pt2pt_wait(request, MPI_STATUS_IGNORE) : started;
}

#define WITH_REQUEST(...) (__VA_ARGS__, &request)
#define MOVES(name, via, nonblocking, parameters, arguments)                                       \
    int cpl_collective_##name parameters                                                           \
    {                                                                                              \
        if (!must_poll(comm))                                                                      \
            return PMPI_##name arguments;                                                          \
        MPI_Request request;                                                                       \
        int started = PMPI_##nonblocking WITH_REQUEST arguments;                                   \
        return finish(started, &request);                                                          \
    }
#define ENTERS(name, via, over, parameters, arguments)                                             \
    int cpl_collective_##name parameters                                                           \
    {                                                                                              \
        if (must_poll(over))                                                                       \
            gather_ranks(over);                                                                    \
        return PMPI_##name arguments;                                                              \
    }
#define OPENS ENTERS
#define JOINS(name, via, over, parameters, arguments)                                              \
    int cpl_collective_##name parameters                                                           \
    {                                                                                              \
        cpl_context.met_others = true;                                                             \
        if (must_poll(over))                                                                       \
            gather_ranks(over);                                                                    \
        return PMPI_##name arguments;                                                              \
    }
#define NEIGHBOR(name, nonblocking, persistent, parameters, arguments, ...)                        \
    MOVES(name, , nonblocking, parameters, arguments)
#define ALLTOALL(name, nonblocking, parameters, arguments, ...)                                    \
    MOVES(name, , nonblocking, parameters, arguments)
#include "calls.def"
#include "collectives.def"

void cpl_collective_before_wait(void)
{
    cpl_pt2pt_leave();
    cpl_neighbor_finish_pending();
    if (cpl_pt2pt_any_managed())
        cpl_pt2pt_poll();
}

int cpl_collective_waitsome(int n, MPI_Request requests[], int *n_done, int indices[],
                            MPI_Status statuses[])
{
    if (!cpl_pt2pt_any_managed())
        return PMPI_Waitsome(n, requests, n_done, indices, statuses);
    for (;;) {
        int result = PMPI_Testsome(n, requests, n_done, indices, statuses);
        if (result != MPI_SUCCESS || *n_done != 0)
            return result;
        cpl_pt2pt_poll();
    }
}

int cpl_collective_waitall(int n, MPI_Request requests[], MPI_Status statuses[])
{
    return cpl_pt2pt_any_managed() ? cpl_pt2pt_wait_each(n, requests, statuses)
                                   : PMPI_Waitall(n, requests, statuses);
}
