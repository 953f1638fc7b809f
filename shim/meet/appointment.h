/* Appointments: meetings (meeting.h) of ranks that call no blocking collective, where they wait for
 * a nonblocking one (doc/architecture.md, Without blocking collectives;
 * tests/model/appointment.pml). Whoever has called another collective in between does not come. At
 * a collective that does not end when all have started it the ranks compare what they have called
 * of each communicator of all ranks, and who has ever called one of fewer ranks, of a window or of
 * a file does not come. Thread rule: one thread. */
#ifndef CARPOOL_APPOINTMENT_H
#define CARPOOL_APPOINTMENT_H

#include "shim/state/context.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct cpl_comm_state;

/* A collective is called on this rank, of any communicator: an appointment is off. Local. */
static inline void cpl_appointment_cancel(void)
{
    cpl_context.busy.appointment.with = NULL;
}

/* The bracket of every call that is collective (state/service.h). */
#define CPL_COLLECTIVE                                                                             \
    CPL_INSIDE;                                                                                    \
    cpl_appointment_cancel()

/* Whether a communicator's ranks may make appointments, once there is a communicator for them
 * (agree.h, cpl_agree_world). Alike on all of them. */
bool cpl_appointment_are_possible(const struct cpl_comm_state *state);

/* Persistent collectives exist on this rank: MPI_Start may begin one, of which nobody is told. From
 * now on it comes to no appointment. Local. */
static inline void cpl_appointment_bar(void)
{
    cpl_context.busy.appointment.barred = true;
    cpl_appointment_cancel();
}

/* A collective of fewer ranks, of a window, a file or a group is called on this rank. Local. */
static inline void cpl_appointment_note_other(void)
{
    cpl_context.busy.appointment.others = true;
}

/* A nonblocking collective was started on comm, any handle, with this request; `by_all`: it ends
 * when all ranks have started it. Counts it, and notes an appointment if it is time. Returns the
 * communicator's state if its ranks call no blocking collectives; NULL: they do, or it has not all
 * ranks. Local. */
struct cpl_comm_state *cpl_appointment_make(MPI_Comm comm, MPI_Request request, bool by_all);

/* Whether there is an appointment for the end of one of n requests. Local. */
static inline bool cpl_appointment_is_for(int n, const MPI_Request *requests)
{
    const struct cpl_appointment *a = &cpl_context.busy.appointment;
    if (!a->with || !requests)
        return false;
    for (int k = 0; k < n; k++)
        if (requests[k] == a->request)
            return true;
    return false;
}

/* This rank has waited for it: comes to the appointment, which is over then. Returns the
 * communicator's state when all ranks have come; NULL: they have not. *n is the number of
 * collectives that the meeting is to count. The same on all ranks that come. */
struct cpl_comm_state *cpl_appointment_come(int64_t *n);

/* At the end of MPI: receives what nobody has waited for. Local. */
void cpl_appointment_end(void);

#endif
