/* The intercepted calls. Each asks the shim; what the shim does not carry goes to MPI unchanged,
 * or, while any communicator is managed, in a form that polls (collective.h). Switched off, a call
 * costs one branch. */
#include "allgather.h"
#include "collective.h"
#include "context.h"
#include "neighbor.h"
#include "pt2pt.h"
#include "quiet.h"
#include "reorder.h"

#include <mpi.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int MPI_Init(int *argc, char ***argv)
{
    int result = PMPI_Init(argc, argv);
    if (result == MPI_SUCCESS)
        cpl_context_start();
    return result;
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int result = PMPI_Init_thread(argc, argv, required, provided);
    if (result == MPI_SUCCESS)
        cpl_context_start();
    return result;
}

EXPORT int MPI_Finalize(void)
{
    cpl_context_finish();
    return PMPI_Finalize();
}

#define WITH(...)            (__VA_ARGS__, request)
#define WITH_REQUEST(...)    (__VA_ARGS__, MPI_Request * request)
#define WITH_INFO(...)       (__VA_ARGS__, MPI_Info info, MPI_Request * request)
#define WITH_INFO_GIVEN(...) (__VA_ARGS__, info, request)

/* Batches leave, and the ranks may agree on something. */
static void before_collective(MPI_Comm comm)
{
    if (cpl_quiet_collective(comm))
        return;
    cpl_pt2pt_before_collective(comm);
    cpl_neighbor_before_collective(comm);
    cpl_quiet_grant_collectives(comm);
}

/* One that is no exchange of few with few: what was sent before it no longer matters after it. */
static void before_other(MPI_Comm comm)
{
    before_collective(comm);
    cpl_context.last_exchange = NULL;
}

#define NEIGHBOR(name, nonblocking, persistent, parameters, arguments, ...)                        \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        if (!cpl_context.active)                                                                   \
            return PMPI_##name arguments;                                                          \
        before_collective(comm);                                                                   \
        struct cpl_neighbor_call call = __VA_ARGS__;                                               \
        int result;                                                                                \
        if (cpl_quiet_exchange(&call))                                                             \
            return PMPI_##name arguments;                                                          \
        if (cpl_neighbor_carry(&call, &result))                                                    \
            return result;                                                                         \
        result = cpl_collective_##name arguments;                                                  \
        cpl_neighbor_passed(&call);                                                                \
        return result;                                                                             \
    }                                                                                              \
    EXPORT int MPI_##nonblocking WITH_REQUEST parameters                                           \
    {                                                                                              \
        int result;                                                                                \
        if (cpl_context.active &&                                                                  \
            cpl_neighbor_start(&(struct cpl_neighbor_call)__VA_ARGS__, request, &result))          \
            return result;                                                                         \
        return PMPI_##nonblocking WITH arguments;                                                  \
    }                                                                                              \
    EXPORT int MPI_##persistent WITH_INFO parameters                                               \
    {                                                                                              \
        if (!cpl_context.active)                                                                   \
            return PMPI_##persistent WITH_INFO_GIVEN arguments;                                    \
        struct cpl_neighbor_call call = __VA_ARGS__;                                               \
        int result;                                                                                \
        if (cpl_neighbor_init(&call, request, &result))                                            \
            return result;                                                                         \
        result = PMPI_##persistent WITH_INFO_GIVEN arguments;                                      \
        cpl_neighbor_init_passed(&call, result, *request);                                         \
        return result;                                                                             \
    }
#define ALLTOALL(name, nonblocking, parameters, arguments, ...)                                    \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        if (!cpl_context.active)                                                                   \
            return PMPI_##name arguments;                                                          \
        before_collective(comm);                                                                   \
        struct cpl_neighbor_call call = __VA_ARGS__;                                               \
        int result;                                                                                \
        if (cpl_quiet_exchange(&call))                                                             \
            return PMPI_##name arguments;                                                          \
        if (cpl_alltoall_carry(&call, &result))                                                    \
            return result;                                                                         \
        result = cpl_collective_##name arguments;                                                  \
        cpl_neighbor_passed(&call);                                                                \
        return result;                                                                             \
    }                                                                                              \
    EXPORT int MPI_##nonblocking WITH_REQUEST parameters                                           \
    {                                                                                              \
        int result;                                                                                \
        if (cpl_context.active &&                                                                  \
            cpl_alltoall_start(&(struct cpl_neighbor_call)__VA_ARGS__, request, &result))          \
            return result;                                                                         \
        return PMPI_##nonblocking WITH arguments;                                                  \
    }
#include "calls.def"

#define ENTERS(name, via, over, parameters, arguments)                                             \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        if (!cpl_context.active)                                                                   \
            return PMPI_##name arguments;                                                          \
        before_other(over);                                                                        \
        return cpl_collective_##name arguments;                                                    \
    }
#define REDUCES(name, via, over, parameters, arguments)                                            \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        int result;                                                                                \
        if (!cpl_context.active)                                                                   \
            return PMPI_##name arguments;                                                          \
        if (cpl_pt2pt_allreduce(comm, sendbuf, recvbuf, count, datatype, op, &result)) {           \
            cpl_neighbor_before_collective(comm);                                                  \
            cpl_context.last_exchange = NULL;                                                      \
            return result;                                                                         \
        }                                                                                          \
        before_other(over);                                                                        \
        return cpl_collective_##name arguments;                                                    \
    }
#define INITIATES(name, via, parameters, arguments)                                                \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        int result;                                                                                \
        if (cpl_context.active &&                                                                  \
            cpl_pt2pt_iallreduce(comm, sendbuf, recvbuf, count, datatype, op, request, &result))   \
            return result;                                                                         \
        return PMPI_##name arguments;                                                              \
    }
#define WITH_RESULT(...) (__VA_ARGS__, &result)
#define REORDERS(name, via, over, parameters, arguments)                                           \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        int result;                                                                                \
        if (!cpl_context.active)                                                                   \
            return PMPI_##name arguments;                                                          \
        before_other(over);                                                                        \
        if (reorder && cpl_reorder_##name WITH_RESULT arguments)                                   \
            return result;                                                                         \
        return cpl_collective_##name arguments;                                                    \
    }
#define OPENS(name, via, over, parameters, arguments)                                              \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        if (!cpl_context.active)                                                                   \
            return PMPI_##name arguments;                                                          \
        cpl_pt2pt_before_open(over);                                                               \
        cpl_neighbor_before_collective(over);                                                      \
        return cpl_collective_##name arguments;                                                    \
    }
#define JOINS ENTERS
#define MOVES(name, via, nonblocking, parameters, arguments)                                       \
    ENTERS(name, via, comm, parameters, arguments)
#define GATHERS(name, via, nonblocking, parameters, arguments, ...)                                \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        if (!cpl_context.active)                                                                   \
            return PMPI_##name arguments;                                                          \
        before_collective(comm);                                                                   \
        if (!cpl_allgather_is_open(&(struct cpl_allgather_call)__VA_ARGS__))                       \
            return cpl_collective_##name arguments;                                                \
        struct cpl_allgather_call call = __VA_ARGS__;                                              \
        int result;                                                                                \
        if (cpl_allgather_carry(&call, &result))                                                   \
            return result;                                                                         \
        result = cpl_collective_##name arguments;                                                  \
        cpl_allgather_passed(&call);                                                               \
        return result;                                                                             \
    }
#define FREES(name, via, parameters, arguments)                                                    \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        if (cpl_context.active && comm && *comm != MPI_COMM_NULL) {                                \
            cpl_pt2pt_before_free(*comm);                                                          \
            cpl_neighbor_before_free(*comm);                                                       \
        }                                                                                          \
        return PMPI_##name arguments;                                                              \
    }
#define WAITS(name, via, parameters, arguments)                                                    \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        if (cpl_context.active)                                                                    \
            cpl_collective_before_wait();                                                          \
        return PMPI_##name arguments;                                                              \
    }
#include "collectives.def"
