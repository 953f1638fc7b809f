/* Matched probes (messages.h). */
#include "shim/carry/messages.h"
#include "shim/carry/line.h"
#include "shim/wait/progress.h"

#include "shim/state/comm_state.h"

#include <stdlib.h>
#include <utlist.h>

#define TAKEN_TAG 2002

/* A handle that the program has not received yet, or whose payload MPI is still sending. */
struct cpl_taken_message {
    struct cpl_taken_message *prev, *next;
    MPI_Message handle;
    struct cpl_comm_state *state;
    bool received;
    MPI_Request request; /* of the payload on its way from this rank to itself */
    struct cpl_arrival *arrival;
};

void cpl_pt2pt_free_messages(void)
{
    struct cpl_taken_message *m, *next;
    DL_FOREACH_SAFE(cpl_context.requests.taken_messages, m, next)
    {
        int flag = 1;
        if (m->request != MPI_REQUEST_NULL)
            PMPI_Test(&m->request, &flag, MPI_STATUS_IGNORE);
        if (!flag || !m->received)
            continue;
        DL_DELETE(cpl_context.requests.taken_messages, m);
        free(m->arrival);
        free(m);
    }
}

/* Makes an MPI handle for a payload that came in a combined message, by a message of the rank to
 * itself. */
static int give_to_mpi(const struct cpl_comm_state *state, struct cpl_taken_message *m)
{
    int flag = 0,
        result = PMPI_Isend(m->arrival->payload, (int)m->arrival->segment.payload_bytes, MPI_BYTE,
                            state->rank, TAKEN_TAG, state->private_comm, &m->request);
    while (result == MPI_SUCCESS && !flag) {
        result = PMPI_Improbe(state->rank, TAKEN_TAG, state->private_comm, &flag, &m->handle,
                              MPI_STATUS_IGNORE);
        if (!flag)
            cpl_progress_poll();
    }
    return result;
}

int cpl_pt2pt_take_message(struct cpl_comm_state *state, struct cpl_arrival *arrival,
                           MPI_Message *message)
{
    struct cpl_taken_message *m = calloc(1, sizeof *m);
    const struct cpl_segment *segment = &arrival->segment;
    int result = MPI_SUCCESS;
    cpl_pt2pt_free_messages();
    if (!m)
        return MPI_ERR_NO_MEM;
    m->state = state;
    m->arrival = arrival;
    m->request = MPI_REQUEST_NULL;
    while (arrival->awaited)
        cpl_progress_poll();
    m->handle = arrival->message;
    cpl_match_take(&state->line->match, arrival);
    if (!(segment->flags & CPL_SEGMENT_STRAIGHT))
        result = give_to_mpi(state, m);
    if (result != MPI_SUCCESS) {
        free(arrival);
        free(m);
        return result;
    }
    DL_APPEND(cpl_context.requests.taken_messages, m);
    *message = m->handle;
    return MPI_SUCCESS;
}

static struct cpl_taken_message *find(MPI_Message handle)
{
    struct cpl_taken_message *m;
    DL_FOREACH(cpl_context.requests.taken_messages, m)
    if (m->handle == handle && !m->received)
        return m;
    return NULL;
}

bool cpl_pt2pt_has_message(MPI_Message message)
{
    return find(message);
}

struct cpl_comm_state *cpl_pt2pt_forget_message(MPI_Message message, int *source, int *tag,
                                                int64_t *bytes)
{
    struct cpl_taken_message *m = find(message);
    *source = m->arrival->segment.source;
    *tag = m->arrival->segment.tag;
    *bytes = m->arrival->segment.bytes;
    m->received = true;
    return m->state;
}

bool cpl_pt2pt_has_taken(const struct cpl_comm_state *state)
{
    const struct cpl_taken_message *m;
    DL_FOREACH(cpl_context.requests.taken_messages, m)
    if (m->state == state && !m->received)
        return true;
    return false;
}
