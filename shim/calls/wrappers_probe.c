/* The intercepted probes (doc/point-to-point.md): they send the batches, and poll while anything is
 * managed. While nothing is managed, a call costs three branches. */
#include "shim/calls/wrappers_pt2pt.h"
#include "shim/wait/progress.h"

#include <mpi.h>

/* Whether probes on a communicator are the shim's. */
static struct cpl_comm_state *managed(MPI_Comm comm, int source, int tag)
{
    struct cpl_span none;
    return cpl_pt2pt_managed(comm, NULL, 0, MPI_BYTE, source, tag, true, &none);
}

/* Whether probes on all communicators are MPI's, and no batch has to be sent. */
static inline bool probes_pass(void)
{
    return !cpl_context.active || (cpl_context.busy.n_open_batches == 0 && !cpl_progress_needed() &&
                                   !cpl_context.service.shared);
}

PASSING(Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status),
        (source, tag, comm, status), probes_pass())
{
    CPL_INSIDE;
    int flag = 0, result = MPI_SUCCESS;
    leave();
    struct cpl_comm_state *state = managed(comm, source, tag);
    if (state && has_status(status))
        return cpl_pt2pt_probe(state, source, tag, NULL, status);
    if (!cpl_progress_needed() || !has_status(status)) {
        CPL_OUTSIDE;
        return PMPI_Probe(source, tag, comm, status);
    }
    while (result == MPI_SUCCESS && !flag) {
        cpl_progress_poll();
        result = PMPI_Iprobe(source, tag, comm, &flag, status);
    }
    return result;
}

PASSING(Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
        (source, tag, comm, flag, status), probes_pass())
{
    CPL_INSIDE;
    leave();
    struct cpl_comm_state *state = managed(comm, source, tag);
    if (state && flag && has_status(status))
        return cpl_pt2pt_probe(state, source, tag, flag, status);
    if (cpl_progress_needed())
        cpl_progress_poll();
    return PMPI_Iprobe(source, tag, comm, flag, status);
}

EXPORT int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    int flag = 0, result = MPI_SUCCESS;
    if (!cpl_context.active)
        return PMPI_Mprobe(source, tag, comm, message, status);
    CPL_INSIDE;
    leave();
    struct cpl_comm_state *state = managed(comm, source, tag);
    if (state && message && has_status(status))
        return cpl_pt2pt_mprobe(state, source, tag, NULL, message, status);
    MPI_Status own, *to = status == MPI_STATUS_IGNORE ? &own : status;
    if (!cpl_progress_needed() || !message || !has_status(status)) {
        CPL_OUTSIDE;
        result = PMPI_Mprobe(source, tag, comm, message, to);
        flag = 1;
    }
    while (result == MPI_SUCCESS && !flag) {
        cpl_progress_poll();
        result = PMPI_Improbe(source, tag, comm, &flag, message, to);
    }
    if (result == MPI_SUCCESS)
        cpl_wrap_note_received(comm, source, tag, result, to);
    return result;
}

EXPORT int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                       MPI_Status *status)
{
    if (!cpl_context.active)
        return PMPI_Improbe(source, tag, comm, flag, message, status);
    CPL_INSIDE;
    leave();
    struct cpl_comm_state *state = managed(comm, source, tag);
    if (state && flag && message && has_status(status))
        return cpl_pt2pt_mprobe(state, source, tag, flag, message, status);
    if (cpl_progress_needed())
        cpl_progress_poll();
    MPI_Status own, *to = status == MPI_STATUS_IGNORE ? &own : status;
    int result = PMPI_Improbe(source, tag, comm, flag, message, to);
    if (result == MPI_SUCCESS && *flag)
        cpl_wrap_note_received(comm, source, tag, result, to);
    return result;
}
