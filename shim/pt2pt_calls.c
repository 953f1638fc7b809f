/* Sends, receives and probes on managed communicators (pt2pt_calls.h). */
#include "pt2pt_calls.h"

#include "comm_state.h"
#include "log.h"
#include "pt2pt_messages.h"
#include "pt2pt_requests.h"
#include "work.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define FIRST_STRAIGHT_TAG 2000
#define N_STRAIGHT_TAGS    20000
#define MOST_RIDING_BYTES  (16 << 10) /* payloads above always go straight */

struct cpl_comm_state *cpl_pt2pt_managed(MPI_Comm comm, const void *buffer, int count,
                                         MPI_Datatype type, int peer, int tag, bool receives,
                                         struct cpl_span *span)
{
    if (cpl_context.n_managed == 0)
        return NULL;
    struct cpl_comm_state *state = cpl_comm_state_get(comm);
    if (!state || state->pt2pt.phase != CPL_PT2PT_MANAGED)
        return NULL;
    bool wild = receives && (peer == MPI_ANY_SOURCE || tag == MPI_ANY_TAG);
    if ((peer < 0 || peer >= state->size) && !(receives && peer == MPI_ANY_SOURCE))
        return NULL;
    if ((tag < 0 && !wild) || count < 0 || !cpl_type_describe(type, &span->type))
        return NULL;
    span->address = (char *)(uintptr_t)buffer;
    span->count = count;
    return state;
}

static bool reserve(struct cpl_batch *batch, size_t bytes)
{
    if (batch->used + bytes <= batch->room)
        return true;
    size_t room = 2 * (batch->used + bytes) + 4096;
    unsigned char *segments = realloc(batch->segments, room);
    if (!segments)
        return false;
    batch->segments = segments;
    batch->room = room;
    return true;
}

static int refuse_memory(struct cpl_comm_state *state)
{
    cpl_log(CPL_LOG_ERROR, "pt2pt", "no memory for a message");
    PMPI_Comm_call_errhandler(state->comm, MPI_ERR_NO_MEM);
    return MPI_ERR_NO_MEM;
}

static struct cpl_synchronous *expect_acknowledgement(struct cpl_pt2pt *p, int dest,
                                                      uint32_t number)
{
    struct cpl_synchronous *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->dest = dest;
    s->number = number;
    DL_APPEND(p->synchronous, s);
    return s;
}

/* A message of the rank to itself needs no ride. */
static int deliver_to_self(struct cpl_comm_state *state, const struct cpl_segment *segment,
                           const struct cpl_span *span)
{
    if (span->type.dense) {
        cpl_match_deliver(&state->pt2pt.match, segment, (const unsigned char *)span->address);
        return MPI_SUCCESS;
    }
    unsigned char *payload = malloc((size_t)segment->ride_bytes + 1);
    if (!payload)
        return refuse_memory(state);
    int result = cpl_span_pack(span, payload);
    cpl_match_deliver(&state->pt2pt.match, segment, payload);
    free(payload);
    return result;
}

/* Packs the segment and its payload behind those that wait to leave. */
static int put_into_batch(struct cpl_comm_state *state, const struct cpl_segment *segment,
                          const struct cpl_span *span)
{
    struct cpl_batch *batch = &state->pt2pt.batch;
    size_t bytes = cpl_segment_bytes(segment);
    int result = MPI_SUCCESS;
    if (!reserve(batch, bytes))
        return refuse_memory(state);
    memcpy(batch->segments + batch->used, segment, sizeof *segment);
    if (segment->ride_bytes)
        result = cpl_span_pack(span, batch->segments + batch->used + sizeof *segment);
    batch->used += bytes;
    return result;
}

/* Whether the batch, whose last message goes to dest, must leave: it is a planned one and complete,
 * or cannot become one. */
static bool must_leave(struct cpl_pt2pt *p, int dest)
{
    bool may_grow = false;
    for (int k = 0; k < p->n_signatures; k++) {
        const struct cpl_signature *s = &p->signature[k];
        if (!s->planned)
            continue;
        if (s->n == p->batch.n && s->hash == p->batch.hash)
            return !s->waits;
        may_grow |= s->n > p->batch.n && cpl_pt2pt_place_of(s, dest) >= 0;
    }
    return !may_grow;
}

/* Notes a message of the batch. */
static int note_message(struct cpl_comm_state *state, int dest, int tag, int64_t bytes)
{
    struct cpl_pt2pt *p = &state->pt2pt;
    cpl_context.n_open_batches += p->batch.n == 0;
    if (!cpl_pt2pt_batch_add(&p->batch, dest, tag, bytes)) {
        cpl_context.n_open_batches -= p->batch.n == 0;
        return refuse_memory(state);
    }
    if (must_leave(p, dest))
        cpl_pt2pt_flush(state);
    return MPI_SUCCESS;
}

bool cpl_pt2pt_goes_straight(int64_t bytes)
{
    int64_t limit = cpl_context.settings.size_limit;
    return bytes > (limit < MOST_RIDING_BYTES ? limit : MOST_RIDING_BYTES);
}

int cpl_pt2pt_send_straight(struct cpl_comm_state *state, const struct cpl_span *span,
                            struct cpl_segment *segment, MPI_Request *request)
{
    struct cpl_pt2pt *p = &state->pt2pt;
    segment->flags |= CPL_SEGMENT_STRAIGHT;
    segment->straight_tag = FIRST_STRAIGHT_TAG + p->next_straight;
    p->next_straight = (p->next_straight + 1) % N_STRAIGHT_TAGS;
    return PMPI_Isend_c(span->address, span->count, span->type.handle, segment->dest,
                        segment->straight_tag, state->private_comm, request);
}

int cpl_pt2pt_send(struct cpl_comm_state *state, const struct cpl_span *span, int dest, int tag,
                   enum cpl_send_mode mode, struct cpl_sending *sending)
{
    struct cpl_pt2pt *p = &state->pt2pt;
    int64_t bytes = cpl_span_bytes(span);
    bool self = dest == state->rank;
    struct cpl_segment segment = {.source = state->rank,
                                  .dest = dest,
                                  .tag = tag,
                                  .number = p->next_number[dest]++,
                                  .slot = CPL_NO_SLOT,
                                  .bytes = bytes};
    int result = MPI_SUCCESS;
    cpl_work_managed();
    *sending = (struct cpl_sending){MPI_REQUEST_NULL, NULL};
    if (cpl_pt2pt_goes_straight(bytes) && !(self && bytes < INT_MAX))
        result = cpl_pt2pt_send_straight(state, span, &segment, &sending->inner);
    else
        segment.ride_bytes = (uint32_t)bytes;
    if (result != MPI_SUCCESS)
        return result;
    if (mode == CPL_SEND_SYNCHRONOUS) {
        segment.flags |= CPL_SEGMENT_SYNCHRONOUS;
        sending->synchronous = expect_acknowledgement(p, dest, segment.number);
        if (!sending->synchronous)
            return refuse_memory(state);
    }
    bool follows = cpl_pt2pt_follows(p, dest, tag);
    if (self)
        result = deliver_to_self(state, &segment, span);
    else if (!follows)
        result = put_into_batch(state, &segment, span);
    if (follows) {
        int followed = cpl_pt2pt_follow(p, &segment, span);
        return result == MPI_SUCCESS ? followed : result;
    }
    int noted = note_message(state, dest, tag, bytes);
    return result == MPI_SUCCESS ? noted : result;
}

bool cpl_pt2pt_send_done(struct cpl_sending *sending)
{
    int flag = 1;
    if (sending->inner != MPI_REQUEST_NULL)
        PMPI_Test(&sending->inner, &flag, MPI_STATUS_IGNORE);
    return flag && (!sending->synchronous || sending->synchronous->done);
}

int cpl_pt2pt_finish_send(struct cpl_sending *sending)
{
    if (sending->inner == MPI_REQUEST_NULL && !sending->synchronous)
        return MPI_SUCCESS;
    cpl_pt2pt_leave();
    while (!cpl_pt2pt_send_done(sending))
        cpl_pt2pt_poll();
    free(sending->synchronous);
    sending->synchronous = NULL;
    return MPI_SUCCESS;
}

void cpl_pt2pt_forget_send(struct cpl_sending *sending)
{
    struct cpl_synchronous *s = sending->synchronous;
    if (sending->inner != MPI_REQUEST_NULL)
        PMPI_Request_free(&sending->inner);
    sending->synchronous = NULL;
    if (!s)
        return;
    s->abandoned = true; /* the acknowledgement, if it is still to come, ends it */
    if (s->done)
        free(s);
}

int cpl_pt2pt_request_send(struct cpl_comm_state *state, struct cpl_sending *sending,
                           MPI_Request *request)
{
    if (!sending->synchronous) { /* a straight payload's request is MPI's own */
        *request = sending->inner;
        if (sending->inner == MPI_REQUEST_NULL)
            *request = cpl_request_complete_send();
        return *request == MPI_REQUEST_NULL ? refuse_memory(state) : MPI_SUCCESS;
    }
    struct cpl_request *made = cpl_request_make(state->comm, false);
    if (!made) {
        cpl_pt2pt_forget_send(sending);
        return refuse_memory(state);
    }
    made->sending = *sending;
    *request = made->handle;
    return MPI_SUCCESS;
}

void cpl_pt2pt_post(struct cpl_comm_state *state, struct cpl_receive *receive,
                    const struct cpl_span *span, int source, int tag)
{
    cpl_work_managed();
    *receive = (struct cpl_receive){
        .source = source, .tag = tag, .span = *span, .inner = MPI_REQUEST_NULL};
    cpl_match_post(&state->pt2pt.match, receive);
}

static int raise_error(const struct cpl_comm_state *state, int error)
{
    if (error != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(state->comm, error);
    return error;
}

int cpl_pt2pt_finish_receive(const struct cpl_comm_state *state, struct cpl_receive *receive,
                             MPI_Status *status)
{
    cpl_pt2pt_leave();
    while (!receive->done)
        cpl_pt2pt_poll();
    cpl_match_status(status, receive->from, receive->from_tag, receive->bytes, receive->cancelled);
    return raise_error(state, receive->error);
}

int cpl_pt2pt_irecv(struct cpl_comm_state *state, const struct cpl_span *span, int source, int tag,
                    MPI_Request *request)
{
    struct cpl_request *made = cpl_request_make(state->comm, true);
    if (!made)
        return refuse_memory(state);
    *request = made->handle;
    cpl_pt2pt_post(state, &made->receive, span, source, tag);
    return MPI_SUCCESS;
}

/* The message that fits, after having looked for new ones; waits for it when flag is NULL. */
static struct cpl_arrival *find_message(struct cpl_comm_state *state, int source, int tag,
                                        const int *flag)
{
    struct cpl_arrival *arrival;
    cpl_pt2pt_leave();
    do {
        cpl_pt2pt_poll();
        arrival = cpl_match_probe(&state->pt2pt.match, source, tag);
    } while (!arrival && !flag);
    return arrival;
}

int cpl_pt2pt_probe(struct cpl_comm_state *state, int source, int tag, int *flag,
                    MPI_Status *status)
{
    const struct cpl_arrival *arrival = find_message(state, source, tag, flag);
    if (flag)
        *flag = arrival != NULL;
    if (arrival)
        cpl_match_status(status, arrival->segment.source, arrival->segment.tag,
                         arrival->segment.bytes, false);
    return MPI_SUCCESS;
}

int cpl_pt2pt_mprobe(struct cpl_comm_state *state, int source, int tag, int *flag,
                     MPI_Message *message, MPI_Status *status)
{
    struct cpl_arrival *arrival = find_message(state, source, tag, flag);
    if (flag)
        *flag = arrival != NULL;
    if (!arrival)
        return MPI_SUCCESS;
    cpl_match_status(status, arrival->segment.source, arrival->segment.tag, arrival->segment.bytes,
                     false);
    return raise_error(state, cpl_pt2pt_take_message(state, arrival, message));
}

int cpl_pt2pt_mrecv(const struct cpl_span *span, MPI_Message *message, MPI_Status *status)
{
    MPI_Request request;
    MPI_Status own;
    MPI_Count bytes = 0;
    int source, tag;
    if (!cpl_pt2pt_forget_message(*message, &source, &tag))
        return MPI_ERR_REQUEST;
    int result = PMPI_Imrecv_c(span->address, span->count, span->type.handle, message, &request);
    if (result == MPI_SUCCESS)
        result = cpl_pt2pt_wait(&request, &own);
    if (result == MPI_SUCCESS)
        PMPI_Get_elements_x(&own, MPI_BYTE, &bytes);
    cpl_match_status(status, source, tag, bytes, false);
    return result;
}

int cpl_pt2pt_completed(const MPI_Status *status, MPI_Request *request)
{
    struct cpl_request *made = cpl_request_make(MPI_COMM_WORLD, true);
    MPI_Count bytes = 0;
    if (!made)
        return MPI_ERR_NO_MEM;
    PMPI_Get_elements_x(status, MPI_BYTE, &bytes);
    made->receive = (struct cpl_receive){
        .from = status->MPI_SOURCE, .from_tag = status->MPI_TAG, .bytes = bytes, .done = true};
    *request = made->handle;
    return MPI_SUCCESS;
}

int cpl_pt2pt_imrecv(const struct cpl_span *span, MPI_Message *message, MPI_Request *request)
{
    MPI_Status status;
    int result = cpl_pt2pt_mrecv(span, message, &status);
    return result == MPI_SUCCESS ? cpl_pt2pt_completed(&status, request) : result;
}
