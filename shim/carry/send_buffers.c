/* The buffers of combined messages (combined.h). */
#include "shim/carry/combined.h"

#include "shim/base/log.h"
#include "shim/state/memory.h"

#include <stdlib.h>
#include <utlist.h>

#define MOST_SENDING 32   /* messages under way before the rank looks whether they have been sent */
#define MORE_SENDING 16   /* than were found not to be, before it looks again */
#define LEAST_BYTES  1024 /* smallest buffer */
#define WHAT         "a combined message"

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

/* Takes back the buffers of combined messages that have been sent. MPI is asked about many in one
 * call, since each call makes all of MPI go on. */
static void reap(struct cpl_send_buffers *buffers)
{
    struct cpl_send_buffer *asked[MOST_SENDING], *next = buffers->sending;
    MPI_Request request[MOST_SENDING];
    int sent[MOST_SENDING];
    while (next) {
        int n = 0, n_sent = 0;
        for (; next && n < MOST_SENDING; next = next->next) {
            asked[n] = next;
            request[n++] = next->request;
        }
        PMPI_Testsome(n, request, &n_sent, sent, MPI_STATUSES_IGNORE);
        for (int k = 0; k < n_sent; k++) {
            DL_DELETE(buffers->sending, asked[sent[k]]);
            cpl_send_buffers_spare(buffers, asked[sent[k]]);
            buffers->n_sending--;
        }
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
    if (buffer)
        buffers->spare = buffer->next;
    else
        buffer = cpl_memory_need(sizeof *buffer, WHAT);
    buffer->used = 0;
    buffer->n_segments = 0;
    cpl_send_buffer_make_room(buffer, head + more);
    buffer->used = head;
    return buffer;
}

bool cpl_send_buffers_send(struct cpl_send_buffers *buffers, struct cpl_send_buffer *buffer,
                           int dest, int tag, MPI_Comm comm)
{
    if (PMPI_Isend(buffer->bytes, (int)buffer->used, MPI_BYTE, dest, tag, comm, &buffer->request) !=
        MPI_SUCCESS) {
        cpl_log(CPL_LOG_ERROR, "combined", "a combined message to rank %d cannot be sent", dest);
        cpl_send_buffers_spare(buffers, buffer);
        return false;
    }
    DL_APPEND(buffers->sending, buffer);
    buffers->n_sending++;
    return true;
}

void cpl_send_buffers_free(struct cpl_send_buffers *buffers)
{
    while (buffers->sending)
        reap(buffers);
    for (struct cpl_send_buffer *buffer; (buffer = buffers->spare);) {
        buffers->spare = buffer->next;
        free(buffer->bytes);
        free(buffer);
    }
    *buffers = (struct cpl_send_buffers){.spare = NULL};
}
