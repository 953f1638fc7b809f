/* The intercepted calls of others.def: they go to MPI, but never while the helper thread calls MPI
 * (service.h). They pass their arguments on as words. */
#include "shim/calls/wrappers.h"
#include "shim/carry/requests.h"
#include "shim/meet/appointment.h"
#include "shim/state/comm_state.h"
#include "shim/state/context.h"
#include "shim/tables/words.h"
#include "shim/wait/assembly.h"
#include "shim/wait/progress.h"

#include <mpi.h>

#define WRAPPER(prefix, name, n)                                                                   \
    cpl_word cpl_real_##prefix##_##name(CPL_TAKES(n));                                             \
    cpl_word cpl_own_##prefix##_##name(CPL_TAKES(n));                                              \
    cpl_word cpl_own_##prefix##_##name(CPL_TAKES(n))
#define BRACKETED(prefix, name, n, before)                                                         \
    WRAPPER(prefix, name, n)                                                                       \
    {                                                                                              \
        before;                                                                                    \
        if (!cpl_context.service.on || cpl_context.service.shared)                                 \
            return cpl_real_##prefix##_##name(CPL_GIVES(n));                                       \
        CPL_INSIDE;                                                                                \
        return cpl_real_##prefix##_##name(CPL_GIVES(n));                                           \
    }
#define HANDLES(prefix, name, n) BRACKETED(prefix, name, n, )
/* Nothing that a program starts, but for point-to-point messages, comes between a collective and an
 * appointment for its end (meet/appointment.h). */
#define BEGINS(prefix, name, n) BRACKETED(prefix, name, n, cpl_appointment_cancel())
#define PERSISTS(name, n)       BRACKETED(MPI, name, n, cpl_appointment_bar())
/* Its arguments end with the communicator and the request. */
#define COMES(name, n)                                                                             \
    WRAPPER(MPI, name, n)                                                                          \
    {                                                                                              \
        if (!cpl_context.active || cpl_context.service.shared)                                     \
            return cpl_real_MPI_##name(CPL_GIVES(n));                                              \
        CPL_COLLECTIVE;                                                                            \
        const cpl_word given[] = {CPL_GIVES(n)};                                                   \
        return cpl_meets_started((MPI_Comm)given[(n)-2], (int)cpl_real_MPI_##name(CPL_GIVES(n)),   \
                                 (MPI_Request *)given[(n)-1], true);                               \
    }
#define TESTS(prefix, name, n)                                                                     \
    WRAPPER(prefix, name, n)                                                                       \
    {                                                                                              \
        if (!cpl_context.active)                                                                   \
            return cpl_real_##prefix##_##name(CPL_GIVES(n));                                       \
        CPL_INSIDE;                                                                                \
        cpl_progress_leave();                                                                      \
        if (cpl_progress_needed())                                                                 \
            cpl_progress_poll();                                                                   \
        return cpl_real_##prefix##_##name(CPL_GIVES(n));                                           \
    }
#define STAYS(prefix, name, n)                                                                     \
    WRAPPER(prefix, name, n)                                                                       \
    {                                                                                              \
        if (!cpl_context.active)                                                                   \
            return cpl_real_##prefix##_##name(CPL_GIVES(n));                                       \
        CPL_COLLECTIVE;                                                                            \
        cpl_progress_before_wait();                                                                \
        return CPL_AWAY(cpl_real_##prefix##_##name(CPL_GIVES(n)));                                 \
    }
/* A communicator of another world has no barrier; MPI refuses what is none. */
static void gather(MPI_Comm comm)
{
    MPI_Group group;
    cpl_appointment_note_other();
    if (comm == MPI_COMM_NULL || PMPI_Comm_group(comm, &group) != MPI_SUCCESS)
        return;
    cpl_away_group(group);
    PMPI_Group_free(&group);
}

/* `end` gets the arguments as `given`, when MPI has returned. */
#define GATHERED(name, n, end)                                                                     \
    WRAPPER(MPIX, name, n)                                                                         \
    {                                                                                              \
        if (!cpl_context.active)                                                                   \
            return cpl_real_MPIX_##name(CPL_GIVES(n));                                             \
        CPL_COLLECTIVE;                                                                            \
        const cpl_word given[] = {CPL_GIVES(n)};                                                   \
        gather((MPI_Comm)given[0]);                                                                \
        cpl_word result = CPL_AWAY(cpl_real_MPIX_##name(CPL_GIVES(n)));                            \
        end;                                                                                       \
        return result;                                                                             \
    }
#define WAITS_X(name, n) GATHERED(name, n, )
/* Messages of streams and of threads that are ranks are no messages between two ranks of ours. */
#define MAKES_X(name, n)                                                                           \
    GATHERED(name, n,                                                                              \
             if ((int)result == MPI_SUCCESS) cpl_comm_state_set_aside(*(MPI_Comm *)given[(n)-1]))
#include "shim/tables/others.def"

/* It makes no progress. */
WRAPPER(MPIX, Request_is_complete, 1)
{
    CPL_INSIDE;
    struct cpl_request *managed = cpl_request_active((MPI_Request)a);
    if (!managed)
        return cpl_real_MPIX_Request_is_complete(a);
    return cpl_request_is_known_done(managed);
}

WRAPPER(MPIX, Threadcomm_free, 1)
{
    CPL_COLLECTIVE;
    const MPI_Comm comm = *(MPI_Comm *)a;
    cpl_word result = cpl_real_MPIX_Threadcomm_free(a);
    if ((int)result == MPI_SUCCESS)
        cpl_comm_state_take_back(comm);
    return result;
}
