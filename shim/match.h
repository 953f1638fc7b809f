/* The matching engine of one managed communicator (doc/point-to-point.md): puts messages in the
 * order in which they were sent and matches them with receives by MPI's rules.
 *
 * Messages come in as segments, in any order between sources; per source they are numbered. A
 * receive takes the oldest message that fits, a message the oldest receive. Cost: O(1) for messages
 * in order and receives in the order of posting, else the length of the queues. */
#ifndef CARPOOL_MATCH_H
#define CARPOOL_MATCH_H

#include "datatype.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    CPL_SEGMENT_STRAIGHT = 1,    /* the payload follows as an MPI message of its own */
    CPL_SEGMENT_SYNCHRONOUS = 2, /* the sender wants to know when it is matched */
    CPL_SEGMENT_ACKNOWLEDGES = 4 /* tells that message `number` was matched; not a message */
};

#define CPL_NO_SLOT INT32_MIN

/* A message as it travels: this, then ride_bytes of payload, padded to 8. */
struct cpl_segment {
    int32_t source;
    int32_t dest;
    int32_t tag;
    uint32_t number; /* of the source's messages to dest on this communicator */
    uint32_t flags;
    int32_t slot;        /* place in the ride's edge; CPL_NO_SLOT: it does not go by a plan */
    uint32_t ride_bytes; /* of payload that ride with it */
    int32_t straight_tag;
    int64_t bytes; /* of the whole message */
};

/* A receive that the program has posted. */
struct cpl_receive {
    struct cpl_receive *prev, *next; /* in the posted or the straight list */
    int source, tag;                 /* as posted */
    struct cpl_span span;
    bool done, cancelled;
    bool abandoned; /* nobody waits for it any more: to be freed when done */
    int from, from_tag;
    int64_t bytes;
    int error;
    MPI_Request request; /* generalized, completed with it; MPI_REQUEST_NULL: none */
    MPI_Request inner;   /* of a straight payload */
    struct cpl_match *match;
};

/* A message that no receive has taken yet. */
struct cpl_arrival {
    struct cpl_arrival *prev, *next;
    struct cpl_segment segment;
    unsigned char payload[];
};

struct cpl_match {
    int size;
    MPI_Comm comm;              /* the program's, for its error handler */
    MPI_Comm private_comm;      /* straight payloads come here */
    uint32_t *expected;         /* per source: number of its next message */
    struct cpl_arrival **early; /* per source: messages that came before their turn */
    struct cpl_receive *posted;
    struct cpl_receive *straight; /* matched, payload under way */
    struct cpl_arrival *unexpected;
    /* Called when a synchronous message has been matched. */
    void (*acknowledge)(void *context, const struct cpl_segment *segment);
    void *context;
};

/* Returns false when memory ran out. acknowledge and context are set by the caller. */
bool cpl_match_init(struct cpl_match *match, int size, MPI_Comm comm, MPI_Comm private_comm);

/* Frees queues; receives that are still posted stay the owner's of their requests. */
void cpl_match_free(struct cpl_match *match);

/* A message has come; payload is copied. Returns false when memory ran out: it is lost. */
bool cpl_match_deliver(struct cpl_match *match, const struct cpl_segment *segment,
                       const unsigned char *payload);

/* Posts a receive, whose source, tag and span are set; it may be done at once. */
void cpl_match_post(struct cpl_match *match, struct cpl_receive *receive);

/* The oldest message that fits and that no receive has taken; NULL: none. */
struct cpl_arrival *cpl_match_probe(const struct cpl_match *match, int source, int tag);

/* Takes a message out of the queue for the caller, who frees it; its payload must have come with
 * it. */
void cpl_match_take(struct cpl_match *match, struct cpl_arrival *arrival);

/* Takes a posted receive back. Returns false when it has been matched already. */
bool cpl_match_cancel(struct cpl_match *match, struct cpl_receive *receive);

/* Looks whether straight payloads have come. Returns how many. */
int cpl_match_poll(struct cpl_match *match);

/* Fills a status (which may be MPI_STATUS_IGNORE) as a receive's. */
void cpl_match_status(MPI_Status *status, int source, int tag, int64_t bytes, bool cancelled);

#endif
