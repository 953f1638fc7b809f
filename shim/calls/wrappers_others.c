/* The intercepted calls of others.def: they go to MPI, but never while the helper thread calls MPI
 * (service.h). */
#include "shim/calls/meets.h"
#include "shim/meet/appointment.h"
#include "shim/pt2pt/pt2pt.h"
#include "shim/state/context.h"
#include "shim/wait/away.h"
#include "shim/wait/progress.h"

#include <mpi.h>

#define EXPORT __attribute__((visibility("default")))

#define BRACKETED(name, parameters, arguments, before)                                             \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        before;                                                                                    \
        if (!cpl_context.service.on || cpl_context.service.shared)                                 \
            return PMPI_##name arguments;                                                          \
        CPL_INSIDE;                                                                                \
        return PMPI_##name arguments;                                                              \
    }
#define HANDLES(name, via, parameters, arguments) BRACKETED(name, parameters, arguments, )
/* Nothing that a program starts, but for point-to-point messages, comes between a collective and an
 * appointment for its end (meet/appointment.h). */
#define BEGINS(name, via, parameters, arguments)                                                   \
    BRACKETED(name, parameters, arguments, cpl_appointment_cancel())
#define PERSISTS(name, via, parameters, arguments)                                                 \
    BRACKETED(name, parameters, arguments, cpl_appointment_bar())
#define COMES(name, via, parameters, arguments)                                                    \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        if (!cpl_context.active || cpl_context.service.shared)                                     \
            return PMPI_##name arguments;                                                          \
        CPL_COLLECTIVE;                                                                            \
        return cpl_meets_started(comm, PMPI_##name arguments, request, true);                      \
    }
#define TESTS(name, via, parameters, arguments)                                                    \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        if (!cpl_context.active)                                                                   \
            return PMPI_##name arguments;                                                          \
        CPL_INSIDE;                                                                                \
        if (cpl_context.busy.n_open_batches > 0)                                                   \
            cpl_progress_leave();                                                                  \
        if (cpl_progress_needed())                                                                 \
            cpl_progress_poll();                                                                   \
        return PMPI_##name arguments;                                                              \
    }
#define STAYS(name, via, parameters, arguments)                                                    \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        if (!cpl_context.active)                                                                   \
            return PMPI_##name arguments;                                                          \
        CPL_COLLECTIVE;                                                                            \
        cpl_away_alone();                                                                          \
        CPL_OUTSIDE;                                                                               \
        return PMPI_##name arguments;                                                              \
    }
#include "shim/tables/others.def"
