/* Calls at which the ranks may meet (wrappers.h). */
#include "shim/calls/wrappers.h"

#include "shim/exchange/neighbor.h"
#include "shim/meet/appointment.h"
#include "shim/meet/meeting.h"
#include "shim/pt2pt/pt2pt.h"
#include "shim/state/comm_state.h"

/* All ranks are here. */
static void note(struct cpl_comm_state *state)
{
    cpl_meeting_end_grant(state); /* so that it is known which collective this is */
    cpl_pt2pt_note_collective(state);
    cpl_family_note_collective(state);
    cpl_neighbor_note_collective(state);
}

void cpl_meets_at_collective(MPI_Comm comm)
{
    struct cpl_comm_state *state = cpl_comm_state_get(comm);
    if (!state)
        return;
    if (state->size > 1 && (state->size < cpl_context.size || state->meeting.family.number == 0))
        cpl_appointment_note_other();
    note(state);
    cpl_meeting_count(state, 1);
    cpl_meeting_grant(comm);
}

int cpl_meets_started(MPI_Comm comm, int result, const MPI_Request *request, bool by_all)
{
    struct cpl_comm_state *state = cpl_context.active && result == MPI_SUCCESS && request
                                       ? cpl_appointment_make(comm, *request, by_all)
                                       : NULL;
    if (state)
        cpl_neighbor_note_pace(state);
    return result;
}

int cpl_meets_waited(bool appointed, int result)
{
    int64_t n;
    struct cpl_comm_state *state =
        appointed && result == MPI_SUCCESS ? cpl_appointment_come(&n) : NULL;
    if (state) {
        note(state);
        cpl_meeting_count(state, n);
    }
    return result;
}
