/* The intercepted calls on buffers for MPI_Bsend. While something is managed, the shim itself keeps
 * buffered messages (carry/requests.h), so a call that waits for these waits, while polling, for
 * the shim's, and then MPI's own have nothing to wait for but what was sent before. */
#include "shim/calls/wrappers.h"
#include "shim/carry/requests.h"
#include "shim/wait/progress.h"

#include <mpi.h>

#ifndef MPI_BUFFER_AUTOMATIC
#define MPI_BUFFER_AUTOMATIC                                                                       \
    ((void *)(intptr_t)-2) /* MPI 4.1, as MPICH's versions have it that know it */
#endif

/* Before a call that waits for buffered messages on a communicator; MPI_COMM_NULL: on all. */
static void flush(MPI_Comm comm)
{
    if (!cpl_context.active)
        return;
    cpl_progress_leave();
    cpl_buffered_flush(comm);
}

/* After MPI's own flush was started: the shim's messages belong to it. */
static int add_ours(MPI_Comm comm, int started, MPI_Request *request)
{
    if (started != MPI_SUCCESS || !cpl_progress_needed())
        return started;
    *request = cpl_buffered_iflush(comm, *request);
    return started;
}

#define ATTACHES(name, parameters, arguments, attached)                                            \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        int result = PMPI_##name arguments;                                                        \
        if (result == MPI_SUCCESS)                                                                 \
            attached;                                                                              \
        return result;                                                                             \
    }

/* Arguments that MPI refuses change nothing. */
#define DETACHES(name, of, parameters, arguments, detached)                                        \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        if (buffer && size)                                                                        \
            flush(of);                                                                             \
        int result = CPL_AWAY(PMPI_##name arguments);                                              \
        if (result == MPI_SUCCESS)                                                                 \
            detached;                                                                              \
        return result;                                                                             \
    }
#define OF_BOTH_COUNTS(form, count_t)                                                              \
    ATTACHES(Buffer_attach##form, (void *buffer, count_t size), (buffer, size),                    \
             cpl_buffered_attach(buffer == MPI_BUFFER_AUTOMATIC ? INT64_MAX : size))               \
    ATTACHES(Comm_attach_buffer##form, (MPI_Comm comm, void *buffer, count_t size),                \
             (comm, buffer, size), cpl_buffered_attach_to_comm(true))                              \
    DETACHES(Buffer_detach##form, MPI_COMM_NULL, (void *buffer, count_t *size), (buffer, size),    \
             cpl_buffered_attach(0))                                                               \
    DETACHES(Comm_detach_buffer##form, comm, (MPI_Comm comm, void *buffer, count_t *size),         \
             (comm, buffer, size), cpl_buffered_attach_to_comm(false))
OF_BOTH_COUNTS(, int)
OF_BOTH_COUNTS(_c, MPI_Count)

/* A flush, which runs as its nonblocking form while something is managed, and that form. */
#define FLUSHES(name, nonblocking, of, parameters, arguments, more_parameters, more_arguments)     \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        MPI_Request started, *request = &started;                                                  \
        flush(of);                                                                                 \
        if (!cpl_progress_needed())                                                                \
            return CPL_AWAY(PMPI_##name arguments);                                                \
        int result = PMPI_##nonblocking more_arguments;                                            \
        return result == MPI_SUCCESS ? cpl_progress_wait(request, MPI_STATUS_IGNORE) : result;     \
    }                                                                                              \
    EXPORT int MPI_##nonblocking more_parameters                                                   \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        return add_ours(of, PMPI_##nonblocking more_arguments, request);                           \
    }
FLUSHES(Buffer_flush, Buffer_iflush, MPI_COMM_NULL, (void), (), (MPI_Request * request), (request))
FLUSHES(Comm_flush_buffer, Comm_iflush_buffer, comm, (MPI_Comm comm), (comm),
        (MPI_Comm comm, MPI_Request *request), (comm, request))
