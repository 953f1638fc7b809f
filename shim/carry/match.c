/* The matching engine (match.h). */
#include "shim/carry/match.h"

#include "shim/base/log.h"
#include "shim/state/memory.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define SPARE_BYTES 512 /* memory of waiting payloads up to this size is used again */

bool cpl_match_init(struct cpl_match *match, int size, MPI_Comm private_comm)
{
    *match = (struct cpl_match){.size = size, .private_comm = private_comm};
    match->sources = calloc((size_t)size, sizeof *match->sources);
    return match->sources;
}

static void free_arrivals(struct cpl_arrival *list)
{
    while (list) {
        struct cpl_arrival *next = list->next_of;
        free(list);
        list = next;
    }
}

static void disown(struct cpl_receive *list)
{
    struct cpl_receive *receive;
    DL_FOREACH(list, receive)
    {
        receive->match = NULL;
    }
}

void cpl_match_free(struct cpl_match *match)
{
    struct cpl_arrival *arrival, *next_awaited;
    for (arrival = match->awaited; arrival; arrival = next_awaited) {
        next_awaited = arrival->next_awaited;
        if (arrival->receive) /* it is in no other queue */
            free(arrival);
    }
    for (int i = 0; match->sources && i < match->size; i++) {
        free_arrivals(match->sources[i].early);
        free_arrivals(match->sources[i].unexpected);
        disown(match->sources[i].posted);
    }
    disown(match->posted_any);
    free_arrivals(match->taken);
    free_arrivals(match->spare);
    free(match->sources);
    match->sources = NULL;
}

void cpl_match_status(MPI_Status *status, int source, int tag, int64_t bytes, bool cancelled)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    status->MPI_SOURCE = source;
    status->MPI_TAG = tag;
    PMPI_Status_set_elements_x(status, MPI_BYTE, bytes);
    PMPI_Status_set_cancelled(status, cancelled);
}

void cpl_match_receive_status(const struct cpl_receive *receive, MPI_Status *status)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    int64_t bytes = receive->error == MPI_SUCCESS ? receive->bytes : cpl_truncated_bytes();
    cpl_match_status(status, receive->from, receive->from_tag, bytes, receive->cancelled);
}

static void finish(struct cpl_match *match, struct cpl_receive *receive)
{
    receive->done = true;
    if (receive->span.type.kept)
        cpl_type_release(&receive->span.type);
    if (receive->abandoned)
        match->drop(receive);
}

/* Notes that a straight payload is on its way into the program's buffer, or that its receive
 * failed. */
static void expect_payload(struct cpl_match *match, struct cpl_receive *receive, int error)
{
    receive->error = error;
    if (error == MPI_SUCCESS)
        DL_APPEND(match->straight, receive);
    else
        finish(match, receive);
}

/* A message has been matched: its sender may know. */
static void acknowledge(const struct cpl_match *match, const struct cpl_segment *segment)
{
    MPI_Request request;
    if (segment->flags & CPL_SEGMENT_SYNCHRONOUS &&
        PMPI_Irecv(NULL, 0, MPI_BYTE, segment->source, cpl_synchronous_tag(segment->number),
                   match->private_comm, &request) == MPI_SUCCESS)
        PMPI_Request_free(&request);
}

/* Completes a match of a message and a receive. */
static void found(const struct cpl_match *match, struct cpl_receive *receive,
                  const struct cpl_segment *segment)
{
    int64_t room = cpl_span_bytes(&receive->span);
    receive->from = segment->source;
    receive->from_tag = segment->tag;
    receive->bytes = segment->bytes < room ? segment->bytes : room;
    acknowledge(match, segment);
}

static void take_payload(struct cpl_match *match, struct cpl_receive *receive,
                         const struct cpl_segment *segment, const unsigned char *payload)
{
    receive->error = cpl_span_unpack(&receive->span, payload, segment->bytes);
    finish(match, receive);
}

static bool fits(int source, int tag, const struct cpl_segment *segment)
{
    return (source == MPI_ANY_SOURCE || source == segment->source) &&
           (tag == MPI_ANY_TAG || tag == segment->tag);
}

static struct cpl_arrival *store(struct cpl_match *match, const struct cpl_segment *segment,
                                 const unsigned char *payload)
{
    size_t room = segment->payload_bytes < SPARE_BYTES ? SPARE_BYTES : segment->payload_bytes;
    struct cpl_arrival *arrival = match->spare;
    if (arrival && room == SPARE_BYTES)
        match->spare = arrival->next_of;
    else
        arrival = cpl_memory_need(sizeof *arrival + room, "a message that came before its receive");
    arrival->room = room;
    arrival->awaited = false;
    arrival->message = MPI_MESSAGE_NULL;
    arrival->receive = NULL;
    arrival->segment = *segment;
    if (segment->payload_bytes)
        memcpy(arrival->payload, payload, segment->payload_bytes);
    return arrival;
}

static void discard(struct cpl_match *match, struct cpl_arrival *arrival)
{
    if (arrival->room > SPARE_BYTES) {
        free(arrival);
        return;
    }
    arrival->next_of = match->spare;
    match->spare = arrival;
}

/* Gives a receive a message that has waited, and its payload. */
static void receive_arrival(struct cpl_match *match, struct cpl_receive *receive,
                            struct cpl_arrival *arrival)
{
    const struct cpl_span *span = &receive->span;
    if (arrival->segment.flags & CPL_SEGMENT_STRAIGHT)
        expect_payload(match, receive,
                       PMPI_Imrecv_c(span->address, span->count, span->type.handle,
                                     &arrival->message, &receive->inner));
    else
        take_payload(match, receive, &arrival->segment, arrival->payload);
    discard(match, arrival);
}

/* ---- the queues ---- */

static inline struct cpl_receive **queue_of(struct cpl_match *match,
                                            const struct cpl_receive *receive)
{
    return receive->source == MPI_ANY_SOURCE ? &match->posted_any
                                             : &match->sources[receive->source].posted;
}

static inline void dequeue_receive(struct cpl_match *match, struct cpl_receive *receive)
{
    struct cpl_receive **queue = queue_of(match, receive);
    receive->posted = false;
    DL_DELETE(*queue, receive);
}

static void dequeue_arrival(struct cpl_match *match, struct cpl_arrival *arrival)
{
    struct cpl_match_source *source = &match->sources[arrival->segment.source];
    DL_DELETE(match->unexpected, arrival);
    DL_DELETE2(source->unexpected, arrival, prev_of, next_of);
}

static struct cpl_receive *first_fitting(struct cpl_receive *queue,
                                         const struct cpl_segment *segment)
{
    while (queue && !fits(queue->source, queue->tag, segment))
        queue = queue->next;
    return queue;
}

/* The first posted receive that fits. */
static struct cpl_receive *find_receive(const struct cpl_match *match,
                                        const struct cpl_segment *segment)
{
    struct cpl_receive *named = first_fitting(match->sources[segment->source].posted, segment);
    struct cpl_receive *any = first_fitting(match->posted_any, segment);
    if (!named || !any)
        return named ? named : any;
    return named->posted_number < any->posted_number ? named : any;
}

struct cpl_arrival *cpl_match_probe(const struct cpl_match *match, int source, int tag)
{
    const bool any = source == MPI_ANY_SOURCE;
    struct cpl_arrival *arrival = any ? match->unexpected : match->sources[source].unexpected;
    while (arrival && !fits(source, tag, &arrival->segment))
        arrival = any ? arrival->next : arrival->next_of;
    return arrival;
}

/* ---- matching ---- */

/* Takes straight payloads out of MPI's queue, those of a source in the order in which they were
 * sent. Returns how many. */
static int poll_awaited(struct cpl_match *match)
{
    struct cpl_arrival *arrival;
    int n = 0;
    for (; (arrival = match->awaited); n++) {
        int flag = 0;
        if (PMPI_Improbe(arrival->segment.source, CPL_STRAIGHT_TAG, match->private_comm, &flag,
                         &arrival->message, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
            !flag)
            break;
        DL_DELETE2(match->awaited, arrival, prev_awaited, next_awaited);
        match->sources[arrival->segment.source].n_awaited--;
        arrival->awaited = false;
        if (arrival->receive)
            receive_arrival(match, arrival->receive, arrival);
    }
    return n;
}

/* Keeps a message whose turn it is, for a receive that may be there, until its payload's turn. */
static void keep_message(struct cpl_match *match, const struct cpl_segment *segment,
                         const unsigned char *payload, struct cpl_receive *receive)
{
    struct cpl_match_source *source = &match->sources[segment->source];
    struct cpl_arrival *arrival = store(match, segment, payload);
    arrival->receive = receive;
    if (receive) {
        found(match, receive, segment);
    } else {
        DL_APPEND(match->unexpected, arrival);
        DL_APPEND2(source->unexpected, arrival, prev_of, next_of);
    }
    if (segment->flags & CPL_SEGMENT_STRAIGHT) {
        arrival->awaited = true;
        source->n_awaited++;
        DL_APPEND2(match->awaited, arrival, prev_awaited, next_awaited);
        poll_awaited(match);
    }
}

/* Matches a message whose turn it is. */
static void match_message(struct cpl_match *match, const struct cpl_segment *segment,
                          const unsigned char *payload)
{
    struct cpl_receive *receive = find_receive(match, segment);
    bool straight = segment->flags & CPL_SEGMENT_STRAIGHT;
    if (receive)
        dequeue_receive(match, receive);
    if (!receive || (straight && match->sources[segment->source].n_awaited > 0)) {
        keep_message(match, segment, payload, receive);
        return;
    }
    found(match, receive, segment);
    const struct cpl_span *span = &receive->span;
    if (straight) /* into the program's buffer */
        expect_payload(match, receive,
                       PMPI_Irecv_c(span->address, span->count, span->type.handle, segment->source,
                                    CPL_STRAIGHT_TAG, match->private_comm, &receive->inner));
    else
        take_payload(match, receive, segment, payload);
}

/* Matches early messages of a source whose turn has now come. */
static void match_early(struct cpl_match *match, struct cpl_match_source *source)
{
    for (struct cpl_arrival *arrival = source->early; arrival;) {
        if (arrival->segment.number != source->expected) {
            arrival = arrival->next_of;
            continue;
        }
        DL_DELETE2(source->early, arrival, prev_of, next_of);
        source->expected++;
        match_message(match, &arrival->segment, arrival->payload);
        discard(match, arrival);
        arrival = source->early; /* from the beginning */
    }
}

void cpl_match_deliver(struct cpl_match *match, const struct cpl_segment *segment,
                       const unsigned char *payload)
{
    struct cpl_match_source *source = &match->sources[segment->source];
    if (segment->number != source->expected) {
        struct cpl_arrival *arrival = store(match, segment, payload);
        DL_APPEND2(source->early, arrival, prev_of, next_of);
        return;
    }
    source->expected++;
    match_message(match, segment, payload);
    if (source->early)
        match_early(match, source);
}

void cpl_match_take(struct cpl_match *match, struct cpl_arrival *arrival)
{
    dequeue_arrival(match, arrival);
    DL_APPEND2(match->taken, arrival, prev_of, next_of);
    acknowledge(match, &arrival->segment);
    arrival->segment.flags &= ~(uint32_t)CPL_SEGMENT_SYNCHRONOUS;
}

void cpl_match_receive_taken(struct cpl_match *match, struct cpl_receive *receive,
                             struct cpl_arrival *arrival)
{
    DL_DELETE2(match->taken, arrival, prev_of, next_of);
    receive->match = match;
    found(match, receive, &arrival->segment);
    receive_arrival(match, receive, arrival);
}

void cpl_match_post(struct cpl_match *match, struct cpl_receive *receive)
{
    struct cpl_arrival *arrival =
        match->unexpected ? cpl_match_probe(match, receive->source, receive->tag) : NULL;
    receive->match = match;
    if (!arrival) {
        /* The program may free its datatype before the message comes. */
        cpl_type_keep(&receive->span.type);
        struct cpl_receive **queue = queue_of(match, receive);
        receive->posted = true;
        receive->posted_number = match->n_posted++;
        DL_APPEND(*queue, receive);
        return;
    }
    dequeue_arrival(match, arrival);
    found(match, receive, &arrival->segment);
    if (arrival->awaited) {
        arrival->receive = receive;
        cpl_type_keep(&receive->span.type);
    } else {
        receive_arrival(match, receive, arrival);
    }
}

bool cpl_match_cancel(struct cpl_receive *receive)
{
    if (!receive->posted)
        return false;
    if (receive->match)
        dequeue_receive(receive->match, receive);
    receive->posted = false;
    receive->cancelled = true;
    receive->from = MPI_ANY_SOURCE;
    receive->from_tag = MPI_ANY_TAG;
    receive->done = true;
    cpl_type_release(&receive->span.type);
    return true;
}

bool cpl_match_is_idle(const struct cpl_match *match)
{
    bool idle =
        !match->posted_any && !match->unexpected && !match->taken && !cpl_match_has_straight(match);
    for (int i = 0; i < match->size && idle; i++)
        idle = !match->sources[i].posted && !match->sources[i].early;
    return idle;
}

int cpl_match_poll(struct cpl_match *match)
{
    struct cpl_receive *receive, *next;
    int n = poll_awaited(match);
    DL_FOREACH_SAFE(match->straight, receive, next)
    {
        MPI_Status status;
        int flag = 0;
        int error = PMPI_Test(&receive->inner, &flag, &status);
        if (error == MPI_SUCCESS && !flag)
            continue;
        receive->error = error;
        DL_DELETE(match->straight, receive);
        finish(match, receive);
        n++;
    }
    return n;
}
