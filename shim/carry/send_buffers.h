/* The buffers of combined messages (combined.h): filled with segments, given to MPI, and used again
 * when MPI has sent them.
 *
 * Order of calls: a zeroed struct, take, append, send or spare, cpl_send_buffers_free. Memory is
 * waited for (state/memory.h), since others wait for what rides. Cost: nothing is allocated once
 * there are as many buffers, and of such a size, as are needed at a time; whether combined messages
 * have been sent is looked at only when no buffer is left. Thread rule: one thread. */
#ifndef CARPOOL_SEND_BUFFERS_H
#define CARPOOL_SEND_BUFFERS_H

#include "shim/carry/match.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A combined message that is being filled or sent. */
struct cpl_send_buffer {
    struct cpl_send_buffer *next; /* spare */
    int number;                   /* its place in the arrays below */
    size_t used, room;
    uint32_t n_segments;
    unsigned char *bytes; /* begins with room for a header */
};

struct cpl_send_buffers {
    struct cpl_send_buffer *spare; /* not in use */
    int n_made, room;              /* buffers made; places in the three arrays below */
    int n_sending, reap_at;        /* that MPI is sending; at how many to look at them again */
    struct cpl_send_buffer **made;
    MPI_Request *request; /* theirs; MPI_REQUEST_NULL: MPI is not sending it */
    int *complete;
};

/* An empty combined message with room for a header of `head` bytes and `more` behind it. */
struct cpl_send_buffer *cpl_send_buffers_take(struct cpl_send_buffers *buffers, size_t head,
                                              size_t more);

/* A combined message that is not to be sent. */
void cpl_send_buffers_spare(struct cpl_send_buffers *buffers, struct cpl_send_buffer *buffer);

/* Makes room for more bytes behind those that are used. */
void cpl_send_buffer_enlarge(struct cpl_send_buffer *buffer, size_t more);
static inline void cpl_send_buffer_make_room(struct cpl_send_buffer *buffer, size_t more)
{
    if (buffer->used + more > buffer->room)
        cpl_send_buffer_enlarge(buffer, more);
}

/* Appends a segment. Returns where its payload belongs. */
static inline unsigned char *cpl_send_buffer_append(struct cpl_send_buffer *buffer,
                                                    const struct cpl_segment *segment)
{
    size_t bytes = cpl_segment_bytes(segment);
    cpl_send_buffer_make_room(buffer, bytes);
    unsigned char *at = buffer->bytes + buffer->used;
    buffer->used += bytes;
    buffer->n_segments++;
    memcpy(at, segment, sizeof *segment);
    if (segment->payload_bytes % 8) /* nothing that was here before travels in the padding */
        memset(buffer->bytes + buffer->used - 8, 0, 8);
    return at + sizeof *segment;
}

/* Gives a combined message to MPI. Returns false when MPI refuses it: it is lost, and the log says
 * so. */
bool cpl_send_buffers_send(struct cpl_send_buffers *buffers, struct cpl_send_buffer *buffer,
                           int dest, int tag, MPI_Comm comm);

/* Waits until all combined messages have been sent; frees all. */
void cpl_send_buffers_free(struct cpl_send_buffers *buffers);

#endif
