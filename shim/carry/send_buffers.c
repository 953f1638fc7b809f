/* The buffers of combined messages (send_buffers.h). */
#include "shim/carry/send_buffers.h"

#include "shim/base/log.h"
#include "shim/state/memory.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SENDING 32   /* messages under way before the rank looks whether they have been sent */
#define MORE_SENDING 16   /* than were found not to be, before it looks again */
#define LEAST_BYTES  1024 /* smallest buffer */
#define WHAT         "a combined message"

/* Places for one more combined message under way, so that sending one needs no memory. */
static void widen(struct cpl_send_buffers *buffers)
{
    if (buffers->n_made < buffers->room)
        return;
    size_t room = buffers->room ? 2 * (size_t)buffers->room : 2 * MOST_SENDING;
    buffers->sending =
        cpl_memory_grow(buffers->sending, room * sizeof(struct cpl_send_buffer *), WHAT);
    buffers->request = cpl_memory_grow(buffers->request, room * sizeof(MPI_Request), WHAT);
    buffers->complete = cpl_memory_grow(buffers->complete, room * sizeof(int), WHAT);
    buffers->room = (int)room;
}

void cpl_send_buffers_spare(struct cpl_send_buffers *buffers, struct cpl_send_buffer *buffer)
{
    buffer->next = buffers->spare;
    buffers->spare = buffer;
}

void cpl_send_buffer_enlarge(struct cpl_send_buffer *buffer, size_t more)
{
    size_t need = buffer->used + more;
    buffer->room = need < LEAST_BYTES ? LEAST_BYTES : 2 * need;
    buffer->bytes = cpl_memory_grow(buffer->bytes, buffer->room, WHAT);
}

/* Takes back the buffers of combined messages that have been sent. */
static void reap(struct cpl_send_buffers *buffers)
{
    int n_complete = 0, n = 0;
    PMPI_Testsome(buffers->n_sending, buffers->request, &n_complete, buffers->complete,
                  MPI_STATUSES_IGNORE);
    for (int k = 0; k < n_complete; k++) { /* MPI_UNDEFINED is negative */
        cpl_send_buffers_spare(buffers, buffers->sending[buffers->complete[k]]);
        buffers->sending[buffers->complete[k]] = NULL;
    }
    for (int k = 0; k < buffers->n_sending; k++) {
        if (!buffers->sending[k])
            continue;
        buffers->sending[n] = buffers->sending[k];
        buffers->request[n++] = buffers->request[k];
    }
    buffers->n_sending = n;
    buffers->reap_at = n + MORE_SENDING;
}

struct cpl_send_buffer *cpl_send_buffers_take(struct cpl_send_buffers *buffers, size_t head,
                                              size_t more)
{
    if (!buffers->spare && buffers->n_sending >= MOST_SENDING &&
        buffers->n_sending >= buffers->reap_at)
        reap(buffers);
    struct cpl_send_buffer *buffer = buffers->spare;
    if (buffer) {
        buffers->spare = buffer->next;
    } else {
        widen(buffers);
        buffer = cpl_memory_need(sizeof *buffer, WHAT);
        buffers->n_made++;
    }
    buffer->used = 0;
    buffer->n_segments = 0;
    cpl_send_buffer_make_room(buffer, head + more);
    buffer->used = head;
    return buffer;
}

bool cpl_send_buffers_send(struct cpl_send_buffers *buffers, struct cpl_send_buffer *buffer,
                           int dest, int tag, MPI_Comm comm)
{
    int k = buffers->n_sending;
    if (PMPI_Isend(buffer->bytes, (int)buffer->used, MPI_BYTE, dest, tag, comm,
                   &buffers->request[k]) != MPI_SUCCESS) {
        cpl_log(CPL_LOG_ERROR, "combined", "a combined message to rank %d cannot be sent", dest);
        cpl_send_buffers_spare(buffers, buffer);
        return false;
    }
    buffers->sending[k] = buffer;
    buffers->n_sending++;
    return true;
}

void cpl_send_buffers_free(struct cpl_send_buffers *buffers)
{
    while (buffers->n_sending > 0)
        reap(buffers);
    while (buffers->spare) {
        struct cpl_send_buffer *buffer = buffers->spare;
        buffers->spare = buffer->next;
        free(buffer->bytes);
        free(buffer);
    }
    free(buffers->sending);
    free(buffers->request);
    free(buffers->complete);
    *buffers = (struct cpl_send_buffers){.n_made = buffers->n_made};
}
