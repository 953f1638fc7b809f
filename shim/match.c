/* The matching engine (match.h). */
#include "match.h"

#include "log.h"
#include "pt2pt_failed.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

bool cpl_match_init(struct cpl_match *match, int size, MPI_Comm comm, MPI_Comm private_comm)
{
    *match = (struct cpl_match){.size = size, .comm = comm, .private_comm = private_comm};
    match->expected = calloc((size_t)size, sizeof *match->expected);
    match->early = calloc((size_t)size, sizeof(struct cpl_arrival *));
    return match->expected && match->early;
}

static void free_arrivals(struct cpl_arrival **list)
{
    struct cpl_arrival *arrival, *next;
    DL_FOREACH_SAFE(*list, arrival, next)
    free(arrival);
    *list = NULL;
}

void cpl_match_free(struct cpl_match *match)
{
    for (int i = 0; match->early && i < match->size; i++)
        free_arrivals(&match->early[i]);
    free_arrivals(&match->unexpected);
    free(match->early);
    free(match->expected);
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

static void finish(struct cpl_receive *receive)
{
    receive->done = true;
    cpl_type_release(&receive->span.type);
    if (receive->request != MPI_REQUEST_NULL) {
        if (receive->error != MPI_SUCCESS)
            cpl_failed_add(receive->request, receive->match->comm, receive->error);
        PMPI_Grequest_complete(receive->request);
    } else if (receive->abandoned) {
        free(receive);
    }
}

/* The payload comes as a message of its own, straight into the program's buffer. */
static void receive_straight(struct cpl_match *match, struct cpl_receive *receive,
                             const struct cpl_segment *segment)
{
    const struct cpl_span *span = &receive->span;
    int error = PMPI_Irecv_c(span->address, span->count, span->type.handle, segment->source,
                             segment->straight_tag, match->private_comm, &receive->inner);
    if (error != MPI_SUCCESS) {
        receive->error = error;
        finish(receive);
        return;
    }
    DL_APPEND(match->straight, receive);
}

/* A message and a receive have found each other. */
static void complete(struct cpl_match *match, struct cpl_receive *receive,
                     const struct cpl_segment *segment, const unsigned char *payload)
{
    int64_t room = cpl_span_bytes(&receive->span);
    receive->from = segment->source;
    receive->from_tag = segment->tag;
    receive->bytes = segment->bytes < room ? segment->bytes : room;
    if (segment->flags & CPL_SEGMENT_SYNCHRONOUS)
        match->acknowledge(match->context, segment);
    if (segment->flags & CPL_SEGMENT_STRAIGHT) {
        receive_straight(match, receive, segment);
        return;
    }
    receive->error = cpl_span_unpack(&receive->span, payload, segment->bytes);
    finish(receive);
}

static bool fits(int source, int tag, const struct cpl_segment *segment)
{
    return (source == MPI_ANY_SOURCE || source == segment->source) &&
           (tag == MPI_ANY_TAG || tag == segment->tag);
}

static struct cpl_arrival *store(const struct cpl_segment *segment, const unsigned char *payload)
{
    struct cpl_arrival *arrival = malloc(sizeof *arrival + segment->ride_bytes);
    if (!arrival) {
        cpl_log(CPL_LOG_ERROR, "match", "no memory for a message of %lld bytes from rank %d",
                (long long)segment->bytes, segment->source);
        return NULL;
    }
    arrival->segment = *segment;
    if (segment->ride_bytes)
        memcpy(arrival->payload, payload, segment->ride_bytes);
    return arrival;
}

/* A message whose turn it is. Returns false when memory ran out. */
static bool match_message(struct cpl_match *match, const struct cpl_segment *segment,
                          const unsigned char *payload)
{
    struct cpl_receive *receive;
    DL_FOREACH(match->posted, receive)
    {
        if (!fits(receive->source, receive->tag, segment))
            continue;
        DL_DELETE(match->posted, receive);
        complete(match, receive, segment, payload);
        return true;
    }
    struct cpl_arrival *arrival = store(segment, payload);
    if (arrival)
        DL_APPEND(match->unexpected, arrival);
    return arrival;
}

/* Messages of a source whose turn has come with the one before. */
static bool match_early(struct cpl_match *match, int source)
{
    bool found = true, done = true;
    while (found) {
        struct cpl_arrival *arrival;
        found = false;
        DL_FOREACH(match->early[source], arrival)
        {
            if (arrival->segment.number != match->expected[source])
                continue;
            found = true;
            break;
        }
        if (!found)
            break;
        DL_DELETE(match->early[source], arrival);
        match->expected[source]++;
        done &= match_message(match, &arrival->segment, arrival->payload);
        free(arrival);
    }
    return done;
}

bool cpl_match_deliver(struct cpl_match *match, const struct cpl_segment *segment,
                       const unsigned char *payload)
{
    int source = segment->source;
    if (segment->number != match->expected[source]) {
        struct cpl_arrival *arrival = store(segment, payload);
        if (arrival)
            DL_APPEND(match->early[source], arrival);
        return arrival;
    }
    match->expected[source]++;
    bool done = match_message(match, segment, payload);
    return !match->early[source] ? done : match_early(match, source) && done;
}

struct cpl_arrival *cpl_match_probe(const struct cpl_match *match, int source, int tag)
{
    struct cpl_arrival *arrival;
    DL_FOREACH(match->unexpected, arrival)
    if (fits(source, tag, &arrival->segment))
        return arrival;
    return NULL;
}

void cpl_match_take(struct cpl_match *match, struct cpl_arrival *arrival)
{
    DL_DELETE(match->unexpected, arrival);
    if (arrival->segment.flags & CPL_SEGMENT_SYNCHRONOUS)
        match->acknowledge(match->context, &arrival->segment);
}

void cpl_match_post(struct cpl_match *match, struct cpl_receive *receive)
{
    struct cpl_arrival *arrival = cpl_match_probe(match, receive->source, receive->tag);
    receive->match = match;
    if (!arrival) {
        /* The program may free its datatype before the message comes. */
        cpl_type_keep(&receive->span.type);
        DL_APPEND(match->posted, receive);
        return;
    }
    DL_DELETE(match->unexpected, arrival);
    complete(match, receive, &arrival->segment, arrival->payload);
    free(arrival);
}

bool cpl_match_cancel(struct cpl_match *match, struct cpl_receive *receive)
{
    struct cpl_receive *posted;
    DL_FOREACH(match->posted, posted)
    {
        if (posted != receive)
            continue;
        DL_DELETE(match->posted, receive);
        receive->cancelled = true;
        receive->from = MPI_ANY_SOURCE;
        receive->from_tag = MPI_ANY_TAG;
        finish(receive);
        return true;
    }
    return false;
}

int cpl_match_poll(struct cpl_match *match)
{
    struct cpl_receive *receive, *next;
    int n = 0;
    DL_FOREACH_SAFE(match->straight, receive, next)
    {
        MPI_Status status;
        int flag = 0;
        int error = PMPI_Test(&receive->inner, &flag, &status);
        if (error == MPI_SUCCESS && !flag)
            continue;
        receive->error = error;
        DL_DELETE(match->straight, receive);
        finish(receive);
        n++;
    }
    return n;
}
