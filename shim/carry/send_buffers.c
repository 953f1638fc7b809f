/* The buffers of combined messages (combined.h). */
#include "shim/carry/combined.h"

#include "shim/base/log.h"
#include "shim/state/memory.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SENDING 32   /* messages under way before the rank looks whether they have been sent */
#define MORE_SENDING 16   /* than were found not to be, before it looks again */
#define LEAST_BYTES  1024 /* smallest buffer */
#define WHAT         "a combined message"

/* Places for one more buffer, so that sending one needs no memory. */
static void widen(struct cpl_send_buffers *buffers)
{
    if (buffers->n_made < buffers->room)
        return;
    size_t room = buffers->room ? 2 * (size_t)buffers->room : 2 * MOST_SENDING;
    buffers->made = cpl_memory_grow(buffers->made, room * sizeof(struct cpl_send_buffer *), WHAT);
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
    int n_complete = 0;
    PMPI_Testsome(buffers->n_made, buffers->request, &n_complete, buffers->complete,
                  MPI_STATUSES_IGNORE);
    for (int k = 0; k < n_complete; k++) { /* MPI_UNDEFINED is negative */
        cpl_send_buffers_spare(buffers, buffers->made[buffers->complete[k]]);
        buffers->n_sending--;
    }
    buffers->reap_at = buffers->n_sending + MORE_SENDING;
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
        buffer->number = buffers->n_made++;
        buffers->made[buffer->number] = buffer;
        buffers->request[buffer->number] = MPI_REQUEST_NULL;
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
    if (PMPI_Isend(buffer->bytes, (int)buffer->used, MPI_BYTE, dest, tag, comm,
                   &buffers->request[buffer->number]) != MPI_SUCCESS) {
        cpl_log(CPL_LOG_ERROR, "combined", "a combined message to rank %d cannot be sent", dest);
        buffers->request[buffer->number] = MPI_REQUEST_NULL;
        cpl_send_buffers_spare(buffers, buffer);
        return false;
    }
    buffers->n_sending++;
    return true;
}

void cpl_send_buffers_free(struct cpl_send_buffers *buffers)
{
    while (buffers->n_sending > 0)
        reap(buffers);
    for (int k = 0; k < buffers->n_made; k++) {
        free(buffers->made[k]->bytes);
        free(buffers->made[k]);
    }
    free(buffers->made);
    free(buffers->request);
    free(buffers->complete);
    *buffers = (struct cpl_send_buffers){.n_made = 0};
}
