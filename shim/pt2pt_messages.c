/* Matched probes (pt2pt_messages.h). */
#include "pt2pt_messages.h"

#include "comm_state.h"

#include <stdlib.h>
#include <utlist.h>

/* A handle that the program has not received yet, or whose payload MPI is still sending. */
struct cpl_taken_message {
    struct cpl_taken_message *prev, *next;
    MPI_Message handle;
    int source, tag;
    bool received;
    MPI_Request request; /* of the payload on its way from this rank to itself */
    struct cpl_arrival *arrival;
};

static void reap(void)
{
    struct cpl_taken_message *m, *next;
    DL_FOREACH_SAFE(cpl_context.taken_messages, m, next)
    {
        int flag = 1;
        if (m->request != MPI_REQUEST_NULL)
            PMPI_Test(&m->request, &flag, MPI_STATUS_IGNORE);
        if (!flag || !m->received)
            continue;
        DL_DELETE(cpl_context.taken_messages, m);
        free(m->arrival);
        free(m);
    }
}

int cpl_pt2pt_take_message(struct cpl_comm_state *state, struct cpl_arrival *arrival,
                           MPI_Message *message)
{
    struct cpl_taken_message *m = calloc(1, sizeof *m);
    const struct cpl_segment *segment = &arrival->segment;
    int result = MPI_SUCCESS;
    reap();
    if (!m)
        return MPI_ERR_NO_MEM;
    m->source = segment->source;
    m->tag = segment->tag;
    m->arrival = arrival;
    m->request = MPI_REQUEST_NULL;
    int from = segment->source, tag = segment->straight_tag;
    if (!(segment->flags & CPL_SEGMENT_STRAIGHT)) {
        from = state->rank;
        tag = 1;
        result = PMPI_Isend(arrival->payload, (int)segment->ride_bytes, MPI_BYTE, from, tag,
                            state->private_comm, &m->request);
    }
    cpl_match_take(&state->pt2pt.match, arrival);
    for (int flag = 0; result == MPI_SUCCESS && !flag;) {
        result = PMPI_Improbe(from, tag, state->private_comm, &flag, &m->handle, MPI_STATUS_IGNORE);
        if (!flag)
            cpl_pt2pt_poll();
    }
    if (result != MPI_SUCCESS) {
        free(m);
        return result;
    }
    DL_APPEND(cpl_context.taken_messages, m);
    *message = m->handle;
    return MPI_SUCCESS;
}

bool cpl_pt2pt_has_message(MPI_Message message)
{
    struct cpl_taken_message *m;
    DL_FOREACH(cpl_context.taken_messages, m)
    if (m->handle == message && !m->received)
        return true;
    return false;
}

bool cpl_pt2pt_forget_message(MPI_Message message, int *source, int *tag)
{
    struct cpl_taken_message *m;
    DL_FOREACH(cpl_context.taken_messages, m)
    {
        if (m->handle != message || m->received)
            continue;
        *source = m->source;
        *tag = m->tag;
        m->received = true;
        return true;
    }
    return false;
}

void cpl_pt2pt_free_messages(void)
{
    reap();
}
