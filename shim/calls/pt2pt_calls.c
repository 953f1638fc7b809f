/* Sends, receives and probes on managed communicators (pt2pt_calls.h). */
#include "shim/calls/pt2pt_calls.h"
#include "shim/wait/progress.h"

#include "shim/base/work.h"
#include "shim/carry/line.h"
#include "shim/state/memory.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct cpl_comm_state *cpl_pt2pt_managed(MPI_Comm comm, const void *buffer, MPI_Count count,
                                         MPI_Datatype type, int peer, int tag, bool receives,
                                         struct cpl_span *span)
{
    struct cpl_comm_state *state = cpl_pt2pt_managed_state(comm);
    return state && cpl_is_rank(peer, state->size, receives) &&
                   cpl_describe(buffer, count, type, tag, receives, span)
               ? state
               : NULL;
}

static void reserve(struct cpl_batch *batch, size_t bytes)
{
    int tries = 0;
    while (!cpl_pt2pt_batch_reserve(batch))
        cpl_memory_wait(&tries, "messages");
    if (batch->used + bytes <= batch->room)
        return;
    batch->room = 2 * (batch->used + bytes) + 4096;
    batch->segments = cpl_memory_grow(batch->segments, batch->room, "messages");
}

/* A message of the rank to itself needs no combined message. */
static int deliver_to_self(struct cpl_comm_state *state, const struct cpl_segment *segment,
                           const struct cpl_span *span)
{
    unsigned char *packed = NULL;
    int result = MPI_SUCCESS;
    if (!span->type.dense) {
        packed = cpl_memory_need((size_t)segment->payload_bytes + 1, "a message");
        result = cpl_span_pack(span, packed);
    }
    if (result == MPI_SUCCESS)
        cpl_match_deliver(&state->line->match, segment,
                          packed ? packed : (const unsigned char *)span->address);
    free(packed);
    return result;
}

/* Whether the batch, whose last message goes to dest, must be sent: it is planned and complete, or
 * cannot become a planned one. */
static bool must_leave(struct cpl_pt2pt *p, int dest)
{
    bool may_grow = false;
    for (int k = 0; k < p->learned.n_signatures; k++) {
        const struct cpl_signature *s = &p->learned.signature[k];
        if (!s->planned)
            continue;
        if (s->n == p->batch.n && s->hash == p->batch.hash)
            return !s->waits;
        may_grow |= s->n > p->batch.n && cpl_pt2pt_place_of(s, dest) >= 0;
    }
    return !may_grow;
}

/* Does all that can fail before a message gets its number: sends a straight payload, makes room in
 * the batch. */
static int prepare(struct cpl_comm_state *state, const struct cpl_span *span,
                   enum cpl_send_mode mode, bool follows, const struct cpl_segment *segment,
                   struct cpl_sending *sending)
{
    struct cpl_pt2pt *p = state->pt2pt;
    if (mode == CPL_SEND_BUFFERED && !cpl_buffered_has_room(segment->bytes))
        return MPI_ERR_BUFFER;
    if (!follows)
        reserve(&p->batch, cpl_segment_bytes(segment));
    if (!(segment->flags & CPL_SEGMENT_STRAIGHT))
        return MPI_SUCCESS;
    if (mode == CPL_SEND_BUFFERED || mode == CPL_SEND_COPIED)
        return cpl_buffered_send(span, segment->dest, CPL_STRAIGHT_TAG, state->private_comm,
                                 mode == CPL_SEND_BUFFERED ? state->comm : MPI_COMM_NULL);
    return PMPI_Isend_c(span->address, span->count, span->type.handle, segment->dest,
                        CPL_STRAIGHT_TAG, state->private_comm, &sending->inner);
}

/* Puts the message into its combined message or into the batch, which has room. */
static int put(struct cpl_comm_state *state, const struct cpl_span *span, bool follows,
               const struct cpl_segment *segment)
{
    struct cpl_pt2pt *p = state->pt2pt;
    struct cpl_batch *batch = &p->batch;
    int result = MPI_SUCCESS;
    if (segment->dest == state->rank) {
        result = deliver_to_self(state, segment, span);
    } else if (!follows) {
        unsigned char *to = batch->segments + batch->used;
        memcpy(to, segment, sizeof *segment);
        if (segment->payload_bytes)
            result = cpl_span_pack(span, to + sizeof *segment);
        batch->used += result == MPI_SUCCESS ? cpl_segment_bytes(segment) : 0;
    }
    if (result != MPI_SUCCESS)
        return result;
    if (follows)
        return cpl_pt2pt_follow(p, segment, span);
    cpl_context.busy.n_open_batches += batch->n == 0;
    cpl_pt2pt_batch_add(batch, segment->dest, segment->tag, segment->bytes);
    if (must_leave(p, segment->dest))
        cpl_pt2pt_flush(state);
    return MPI_SUCCESS;
}

int cpl_pt2pt_send(struct cpl_comm_state *state, const struct cpl_span *span, int dest, int tag,
                   enum cpl_send_mode mode, struct cpl_sending *sending)
{
    struct cpl_pt2pt *p = state->pt2pt;
    int64_t bytes = cpl_span_bytes(span);
    bool straight = cpl_goes_straight(bytes) && !(dest == state->rank && bytes < INT_MAX);
    struct cpl_segment segment = {.source = state->rank,
                                  .dest = dest,
                                  .tag = tag,
                                  .number = p->line->next_number[dest],
                                  .flags = straight ? CPL_SEGMENT_STRAIGHT : 0,
                                  .slot = CPL_NO_SLOT,
                                  .payload_bytes = straight ? 0 : (uint32_t)bytes,
                                  .bytes = bytes};
    segment.flags |= mode == CPL_SEND_SYNCHRONOUS ? CPL_SEGMENT_SYNCHRONOUS : 0;
    cpl_work_managed();
    *sending = CPL_SENT;
    bool follows = cpl_pt2pt_follows(p, dest, tag);
    int result = prepare(state, span, mode, follows, &segment, sending);
    if (result == MPI_SUCCESS)
        result = put(state, span, follows, &segment);
    p->line->next_number[dest] += result == MPI_SUCCESS;
    if (result == MPI_SUCCESS && mode == CPL_SEND_SYNCHRONOUS)
        result = PMPI_Issend(NULL, 0, MPI_BYTE, dest, cpl_synchronous_tag(segment.number),
                             state->private_comm, &sending->matched);
    return cpl_raise(state->comm, result);
}

int cpl_pt2pt_send_and_wait(struct cpl_comm_state *state, const struct cpl_span *span, int dest,
                            int tag, enum cpl_send_mode mode)
{
    struct cpl_sending sending;
    int result = cpl_pt2pt_send(state, span, dest, tag, mode, &sending);
    if (result != MPI_SUCCESS ||
        (sending.inner == MPI_REQUEST_NULL && sending.matched == MPI_REQUEST_NULL))
        return result;
    cpl_progress_leave();
    while (!cpl_sending_is_done(&sending))
        cpl_progress_poll();
    return MPI_SUCCESS;
}

int cpl_pt2pt_isend(struct cpl_comm_state *state, const struct cpl_span *span, int dest, int tag,
                    enum cpl_send_mode mode, MPI_Request *request)
{
    struct cpl_sending sending;
    int result = cpl_pt2pt_send(state, span, dest, tag, mode, &sending);
    if (result != MPI_SUCCESS)
        return result;
    if (sending.matched == MPI_REQUEST_NULL) { /* a straight payload's request is MPI's own */
        *request = sending.inner == MPI_REQUEST_NULL ? cpl_request_complete_send() : sending.inner;
        return MPI_SUCCESS;
    }
    struct cpl_request *made = cpl_request_make(state->comm, false);
    made->sending = sending;
    *request = made->handle;
    return MPI_SUCCESS;
}

void cpl_pt2pt_post(struct cpl_comm_state *state, struct cpl_receive *receive,
                    const struct cpl_span *span, int source, int tag)
{
    cpl_work_managed();
    receive->source = source; /* what is known of its message comes with that */
    receive->tag = tag;
    receive->span = *span;
    receive->posted = receive->done = receive->cancelled = receive->abandoned = false;
    receive->error = MPI_SUCCESS;
    receive->inner = MPI_REQUEST_NULL;
    cpl_match_post(&state->line->match, receive);
}

int cpl_pt2pt_recv(struct cpl_comm_state *state, const struct cpl_span *span, int source, int tag,
                   MPI_Status *status)
{
    struct cpl_receive receive;
    cpl_pt2pt_post(state, &receive, span, source, tag);
    cpl_progress_leave();
    while (!receive.done)
        cpl_progress_await();
    cpl_match_receive_status(&receive, status);
    return cpl_raise(state->comm, receive.error);
}

bool cpl_pt2pt_null(MPI_Comm comm, const void *buffer, MPI_Count count, MPI_Datatype type, int peer,
                    int tag, bool receives, MPI_Request *request)
{
    struct cpl_span span;
    if (peer != MPI_PROC_NULL || !cpl_pt2pt_managed_state(comm) || !request ||
        !cpl_describe(buffer, count, type, tag, receives, &span))
        return false;
    struct cpl_request *made = cpl_request_make(comm, receives);
    cpl_request_end_null(made);
    *request = made->handle;
    return true;
}

int cpl_pt2pt_irecv(struct cpl_comm_state *state, const struct cpl_span *span, int source, int tag,
                    MPI_Request *request)
{
    struct cpl_request *made = cpl_request_make(state->comm, true);
    *request = made->handle;
    cpl_pt2pt_post(state, &made->receive, span, source, tag);
    return MPI_SUCCESS;
}

int cpl_pt2pt_probe(struct cpl_comm_state *state, int source, int tag, int *flag,
                    MPI_Message *message, MPI_Status *status)
{
    struct cpl_arrival *arrival;
    cpl_progress_leave();
    do {
        cpl_progress_poll();
        arrival = cpl_match_probe(&state->line->match, source, tag);
    } while (!arrival && !flag);
    if (flag)
        *flag = arrival != NULL;
    if (!arrival)
        return MPI_SUCCESS;
    cpl_match_status(status, arrival->segment.source, arrival->segment.tag, arrival->segment.bytes,
                     false);
    return message ? cpl_raise(state->comm, cpl_line_take_message(state, arrival, message))
                   : MPI_SUCCESS;
}

int cpl_pt2pt_imrecv(const struct cpl_span *span, MPI_Message *message, MPI_Request *request)
{
    struct cpl_request *made = cpl_request_make(MPI_COMM_WORLD, true);
    made->receive = (struct cpl_receive){.span = *span, .inner = MPI_REQUEST_NULL};
    made->comm = cpl_line_receive_message(message, &made->receive);
    *request = made->handle;
    return MPI_SUCCESS;
}
