/* Matched probes (messages.h). */
#include "shim/carry/messages.h"
#include "shim/carry/line.h"
#include "shim/wait/progress.h"

#include "shim/state/comm_state.h"

#define TAKEN_TAG 2002

/* Makes a handle by an empty message, which MPI frees when it is received. */
static int make_handle(const struct cpl_comm_state *state, MPI_Message *handle)
{
    MPI_Request request;
    int flag = 0, result = PMPI_Isend(NULL, 0, MPI_BYTE, state->rank, TAKEN_TAG,
                                      state->private_comm, &request);
    if (result == MPI_SUCCESS)
        result = PMPI_Request_free(&request);
    while (result == MPI_SUCCESS && !flag) {
        result = PMPI_Improbe(state->rank, TAKEN_TAG, state->private_comm, &flag, handle,
                              MPI_STATUS_IGNORE);
        if (!flag)
            cpl_progress_poll();
    }
    return result;
}

int cpl_pt2pt_take_message(struct cpl_comm_state *state, struct cpl_arrival *arrival,
                           MPI_Message *message)
{
    int result = MPI_SUCCESS;
    cpl_match_take(&state->line->match, arrival);
    while (arrival->awaited)
        cpl_progress_poll();
    if (!(arrival->segment.flags & CPL_SEGMENT_STRAIGHT))
        result = make_handle(state, &arrival->message);
    *message = arrival->message;
    return result;
}

static struct cpl_arrival *find(MPI_Message handle, struct cpl_comm_state **of)
{
    for (struct cpl_comm_state *s = cpl_context.comms.first_managed; s; s = s->line->next_managed)
        for (struct cpl_arrival *taken = s->line->match.taken; taken; taken = taken->next_of)
            if (taken->message == handle) {
                *of = s;
                return taken;
            }
    return NULL;
}

bool cpl_pt2pt_has_message(MPI_Message message)
{
    struct cpl_comm_state *state;
    return find(message, &state);
}

MPI_Comm cpl_pt2pt_receive_message(MPI_Message *message, struct cpl_receive *receive)
{
    struct cpl_comm_state *state;
    struct cpl_arrival *arrival = find(*message, &state);
    if (!(arrival->segment.flags & CPL_SEGMENT_STRAIGHT))
        PMPI_Mrecv(NULL, 0, MPI_BYTE, message, MPI_STATUS_IGNORE);
    *message = MPI_MESSAGE_NULL;
    cpl_match_receive_taken(&state->line->match, receive, arrival);
    return state->comm;
}
