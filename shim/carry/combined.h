/* Combined messages: segments on their way on a managed communicator's private communicator,
 * combined and forwarded by plans (doc/point-to-point.md).
 *
 * A combined message is one message, by a lane or by MPI: a header (plan, instance, wave), then
 * segments. An intermediate holds segments while the plan says that more are coming, for a bounded
 * time; what is unexpected goes straight to its destination.
 *
 * Cost: nothing is allocated once there are as many buffers as combined messages under way; a poll
 * looks at lanes, or at a posted receive; a segment is placed by its slot, a combined message by a
 * binary search among the plan's in-edges. Thread rule: one thread. */
#ifndef CARPOOL_COMBINED_H
#define CARPOOL_COMBINED_H

#include "shim/carry/lanes.h"
#include "shim/carry/match.h"
#include "shim/carry/relay.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CPL_MAX_COMBINED_PLANS 16
#define CPL_NO_PLAN            (-1)
#define CPL_COMBINED_RECEIVES  8
#define CPL_COMBINED_BYTES     (48 << 10) /* the most that one message carries, with its header */

/* ---- send_buffers.c: buffers, used again when MPI has sent them, which is looked at only when
 * none is left. From a zeroed struct on: take, append, send or spare, cpl_send_buffers_free. Memory
 * is waited for (state/memory.h). ---- */

/* A combined message that is being filled or sent. */
struct cpl_send_buffer {
    struct cpl_send_buffer *prev, *next; /* of those that MPI is sending; next: of the spare ones */
    MPI_Request request;                 /* MPI is sending it */
    size_t used, room;
    uint32_t n_segments;
    unsigned char *bytes; /* begins with room for a header */
};

struct cpl_send_buffers {
    struct cpl_send_buffer *spare;   /* not in use */
    struct cpl_send_buffer *sending; /* that MPI is sending, the oldest first */
    int n_sending, reap_at;          /* how many; at how many to look at them again */
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

/* Gives a combined message to MPI. False: MPI refuses it; it is lost, and the log says so. */
bool cpl_send_buffers_send(struct cpl_send_buffers *buffers, struct cpl_send_buffer *buffer,
                           int dest, int tag, MPI_Comm comm);

/* Waits until all combined messages have been sent; frees all. */
void cpl_send_buffers_free(struct cpl_send_buffers *buffers);

/* ---- combined.c ---- */

struct cpl_combined_plan;

/* What a plan has done on this rank. */
struct cpl_combined_counts {
    int64_t forwarded; /* bytes of payload forwarded for others */
    int64_t sent;      /* out-edges that have left */
    int64_t late;      /* of these, by the end of the hold time */
};

/* Posted receives of combined messages. */
struct cpl_combined_receives {
    MPI_Request request[CPL_COMBINED_RECEIVES];
    unsigned char *buffer; /* theirs; NULL: none is posted */
    int next;              /* the one that was posted first, mostly */
    unsigned n_looks;      /* at them */
    bool rare;             /* all combined messages of plans that come here come by lanes */
    int looks, pause;      /* at lanes, before the next one at these: still, and in all */
    int n_busy;            /* looks since that one that have found something */
};

struct cpl_combined {
    MPI_Comm comm; /* the private communicator */
    int rank;
    double hold_seconds;
    uint32_t n_aligned; /* how often the plans' instances have been aligned */
    int n_plans;
    struct cpl_combined_plan *plan[CPL_MAX_COMBINED_PLANS];
    struct cpl_send_buffers buffers;
    struct cpl_lanes lanes; /* out: to all ranks; in: those that were opened */
    int64_t sent, received; /* combined messages, for draining */
    int n_holding;          /* out-edges that hold segments */
    struct cpl_combined_receives receives;
    /* Called for segments that have come for this rank. */
    void (*deliver)(void *context, const struct cpl_segment *segment, const unsigned char *payload);
    /* Called for a reduction's message that has come, without the header. */
    void (*reduction)(void *context, uint32_t number, int32_t step, const unsigned char *bytes,
                      size_t n);
    void *context;
};

/* Starts receiving on a private communicator; the caller has set the functions and context. Returns
 * false when memory ran out. */
bool cpl_combined_init(struct cpl_combined *combined, MPI_Comm comm, double hold_seconds);

/* Takes over a slice's words. Returns the plan's number, the same on all ranks when all add in the
 * same order; CPL_NO_PLAN when memory ran out. */
int cpl_combined_add_plan(struct cpl_combined *combined, int32_t *words, int32_t n_words);

/* What a plan has done so far. Local. */
struct cpl_combined_counts cpl_combined_counts(const struct cpl_combined *combined, int plan);

/* Once all plans are added opens one lane to each rank of the node that an edge leads to, one from
 * each that an edge comes from. A combined message that finds its lane full, or is too long for it,
 * goes by MPI: segments are numbered, so it needs no order. able: false when this rank has not got
 * all plans. Collective over the private communicator. */
void cpl_combined_open_lanes(struct cpl_combined *combined, MPI_Comm comm, bool able);

/* Begins the plan's next instance; then put each segment of payload k (that for the k-th
 * destination of this rank), then end. */
void cpl_combined_begin(struct cpl_combined *combined, int plan);
void cpl_combined_end(struct cpl_combined *combined, int plan);

/* Puts a segment with its payload from memory, or where there is a span from the program's buffer,
 * which it describes. Returns MPI_SUCCESS or the error of packing it: then it is not sent. only: it
 * is the payload's only one, so it may leave at once. */
int cpl_combined_put(struct cpl_combined *combined, int plan, int32_t k,
                     const struct cpl_segment *segment, const unsigned char *payload,
                     const struct cpl_span *span, bool only);

/* All ranks come to the same place of the program and have ended their instances: the numbers of
 * the next ones begin alike, however many each rank has made. Every rank calls it as often. */
void cpl_combined_align(struct cpl_combined *combined);

/* Ends an instance that turned out to be another batch's: it does not count. */
void cpl_combined_abandon(struct cpl_combined *combined, int plan);

/* Sends segments straight to their destinations, as they lie in memory (each with its payload
 * padded to 8 bytes). */
void cpl_combined_send(struct cpl_combined *combined, const unsigned char *segments, size_t bytes);

/* A message with room for so many bytes of segments; of a reduction (embed.h): open it, append to
 * it up to CPL_COMBINED_BYTES, send it. */
struct cpl_send_buffer *cpl_combined_open(struct cpl_combined *combined, size_t bytes);
void cpl_combined_send_reduction(struct cpl_combined *combined, struct cpl_send_buffer *buffer,
                                 int dest, uint32_t number, int32_t step);

/* Receives, forwards, delivers, sends what has been held too long. Returns whether anything
 * happened. */
bool cpl_combined_poll(struct cpl_combined *combined);

/* Sends what has been held too long, or all that is held. */
void cpl_combined_release(struct cpl_combined *combined, bool all);

/* Stops receiving, and is as before cpl_combined_init; nothing may be under way any more. */
void cpl_combined_free(struct cpl_combined *combined);

#endif
