/* The intercepted calls on buffers for MPI_Bsend. While something is managed, the shim itself keeps
 * buffered messages (carry/buffered.h), so a call that waits for these waits, while polling, for
 * the shim's, and then MPI's own have nothing to wait for but what was sent before. */
#include "shim/calls/wrappers.h"
#include "shim/carry/buffered.h"
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
    leave();
    cpl_buffered_flush(comm);
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
#define ATTACHES_C(name, count_t)                                                                  \
    ATTACHES(name, (void *buffer, count_t size), (buffer, size),                                   \
             cpl_buffered_attach(buffer == MPI_BUFFER_AUTOMATIC ? INT64_MAX : size))
ATTACHES_C(Buffer_attach, int)
ATTACHES_C(Buffer_attach_c, MPI_Count)
ATTACHES(Comm_attach_buffer, (MPI_Comm comm, void *buffer, int size), (comm, buffer, size),
         cpl_buffered_attach_to_comm(true))
ATTACHES(Comm_attach_buffer_c, (MPI_Comm comm, void *buffer, MPI_Count size), (comm, buffer, size),
         cpl_buffered_attach_to_comm(true))

/* Arguments that MPI refuses change nothing. */
#define DETACHES(name, of, parameters, arguments, detached)                                        \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        CPL_INSIDE;                                                                                \
        if (buffer && size)                                                                        \
            flush(of);                                                                             \
        int result;                                                                                \
        {                                                                                          \
            CPL_OUTSIDE;                                                                           \
            result = PMPI_##name arguments;                                                        \
        }                                                                                          \
        if (result == MPI_SUCCESS)                                                                 \
            detached;                                                                              \
        return result;                                                                             \
    }
DETACHES(Buffer_detach, MPI_COMM_NULL, (void *buffer, int *size), (buffer, size),
         cpl_buffered_detach())
DETACHES(Buffer_detach_c, MPI_COMM_NULL, (void *buffer, MPI_Count *size), (buffer, size),
         cpl_buffered_detach())
DETACHES(Comm_detach_buffer, comm, (MPI_Comm comm, void *buffer, int *size), (comm, buffer, size),
         cpl_buffered_attach_to_comm(false))
DETACHES(Comm_detach_buffer_c, comm, (MPI_Comm comm, void *buffer, MPI_Count *size),
         (comm, buffer, size), cpl_buffered_attach_to_comm(false))

/* Runs as its nonblocking form while something is managed. */
static int wait_for(int started, MPI_Request *request)
{
    return started == MPI_SUCCESS ? cpl_progress_wait(request, MPI_STATUS_IGNORE) : started;
}

EXPORT int MPI_Buffer_flush(void)
{
    CPL_INSIDE;
    MPI_Request request;
    flush(MPI_COMM_NULL);
    if (cpl_progress_needed())
        return wait_for(PMPI_Buffer_iflush(&request), &request);
    CPL_OUTSIDE;
    return PMPI_Buffer_flush();
}

EXPORT int MPI_Comm_flush_buffer(MPI_Comm comm)
{
    CPL_INSIDE;
    MPI_Request request;
    flush(comm);
    if (cpl_progress_needed())
        return wait_for(PMPI_Comm_iflush_buffer(comm, &request), &request);
    CPL_OUTSIDE;
    return PMPI_Comm_flush_buffer(comm);
}

/* After MPI's own flush was started: the shim's messages belong to it. */
static int add_ours(MPI_Comm comm, int started, MPI_Request *request)
{
    if (started != MPI_SUCCESS || !cpl_progress_needed())
        return started;
    MPI_Request inner = *request;
    int result = cpl_buffered_iflush(comm, inner, request);
    if (result != MPI_SUCCESS) {
        *request = inner;
        cpl_buffered_flush(comm);
    }
    return started;
}

EXPORT int MPI_Buffer_iflush(MPI_Request *request)
{
    CPL_INSIDE;
    return add_ours(MPI_COMM_NULL, PMPI_Buffer_iflush(request), request);
}

EXPORT int MPI_Comm_iflush_buffer(MPI_Comm comm, MPI_Request *request)
{
    CPL_INSIDE;
    return add_ours(comm, PMPI_Comm_iflush_buffer(comm, request), request);
}
