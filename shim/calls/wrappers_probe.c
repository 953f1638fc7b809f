/* The intercepted probes (doc/point-to-point.md): they send the batches, and poll while anything is
 * managed. While nothing is managed, a call costs three branches. */
#include "shim/calls/wrappers.h"
#include "shim/wait/progress.h"

#include <mpi.h>

/* Whether probes on all communicators are MPI's, and no batch has to be sent. */
static inline bool probes_pass(void)
{
    return !cpl_context.active || (cpl_context.busy.n_open_batches == 0 && !cpl_progress_needed() &&
                                   !cpl_context.service.shared);
}

/* A probe that does not pass, with arguments that MPI takes. flag: NULL for one that waits;
 * message: NULL for one that gives no handle. */
static int probe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                 MPI_Status *status)
{
    struct cpl_span none;
    MPI_Status own, *to = status == MPI_STATUS_IGNORE ? &own : status;
    int own_flag = 0, *found = flag ? flag : &own_flag, result;
    leave();
    struct cpl_comm_state *state =
        cpl_pt2pt_managed(comm, NULL, 0, MPI_BYTE, source, tag, true, &none);
    if (state)
        return cpl_pt2pt_probe(state, source, tag, flag, message, status);
    if (!flag && !cpl_progress_needed()) {
        CPL_OUTSIDE;
        result = message ? PMPI_Mprobe(source, tag, comm, message, to)
                         : PMPI_Probe(source, tag, comm, to);
        own_flag = 1;
    } else {
        do {
            if (cpl_progress_needed())
                cpl_progress_poll();
            result = message ? PMPI_Improbe(source, tag, comm, found, message, to)
                             : PMPI_Iprobe(source, tag, comm, found, to);
        } while (!flag && !own_flag && result == MPI_SUCCESS);
    }
    if (message && result == MPI_SUCCESS && *found)
        cpl_watch_received(comm, source, tag, result, to);
    return result;
}

PASSING(Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status),
        (source, tag, comm, status), probes_pass())
{
    CPL_INSIDE;
    return has_status(status) ? probe(source, tag, comm, NULL, NULL, status)
                              : PMPI_Probe(source, tag, comm, status);
}

PASSING(Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
        (source, tag, comm, flag, status), probes_pass())
{
    CPL_INSIDE;
    return flag && has_status(status) ? probe(source, tag, comm, flag, NULL, status)
                                      : PMPI_Iprobe(source, tag, comm, flag, status);
}

EXPORT int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    if (!cpl_context.active)
        return PMPI_Mprobe(source, tag, comm, message, status);
    CPL_INSIDE;
    return message && has_status(status) ? probe(source, tag, comm, NULL, message, status)
                                         : PMPI_Mprobe(source, tag, comm, message, status);
}

EXPORT int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                       MPI_Status *status)
{
    if (!cpl_context.active)
        return PMPI_Improbe(source, tag, comm, flag, message, status);
    CPL_INSIDE;
    return flag && message && has_status(status)
               ? probe(source, tag, comm, flag, message, status)
               : PMPI_Improbe(source, tag, comm, flag, message, status);
}
