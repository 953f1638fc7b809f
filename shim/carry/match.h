/* The matching engine of one managed communicator (doc/point-to-point.md): puts messages in the
 * order in which they were sent and matches them with receives by MPI's rules.
 *
 * A receive takes the oldest message that fits, a message the oldest receive. Both wait in queues
 * by source. Cost: O(1) where the messages of a source come in order and their tags in the order in
 * which receives were posted; otherwise, and with MPI_ANY_SOURCE, the length of the queues. Memory
 * of small messages that had to wait is used again. */
#ifndef CARPOOL_MATCH_H
#define CARPOOL_MATCH_H

#include "shim/state/datatype.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CPL_SEGMENT_STRAIGHT = 1,   /* the payload follows as an MPI message of its own */
    CPL_SEGMENT_SYNCHRONOUS = 2 /* so does an empty synchronous one, received once it is matched */
};

#define CPL_NO_SLOT INT32_MIN

/* Tag of payloads that go straight, on the private communicator. They come in the order of their
 * segments' numbers, and are taken out of MPI's queue in that order, so one tag is enough. */
#define CPL_STRAIGHT_TAG 2000

/* Tag of the empty message that tells a sender, by MPI, that its synchronous message of a number
 * was matched. They are matched in any order. */
static inline int cpl_synchronous_tag(uint32_t number)
{
    return 16384 + (int)(number % 16384);
}

/* The head of a segment; payload_bytes bytes follow, padded to a multiple of 8. */
struct cpl_segment {
    int32_t source;
    int32_t dest;
    int32_t tag;
    uint32_t number; /* among the messages from source to dest on this communicator */
    uint32_t flags;
    int32_t slot; /* in the combined message's edge; CPL_NO_SLOT: it does not go by a plan */
    uint32_t payload_bytes;
    int32_t unused; /* always 0 */
    int64_t bytes;  /* bytes of the whole message */
};

/* Bytes that a segment takes as it travels. */
static inline size_t cpl_segment_bytes(const struct cpl_segment *segment)
{
    return sizeof *segment + (segment->payload_bytes + 7) / 8 * 8;
}

/* A receive that the program has posted. */
struct cpl_receive {
    struct cpl_receive *prev, *next; /* in a posted queue or the straight list */
    uint64_t posted_number;          /* number in the order of posting */
    int source, tag;                 /* source and tag as posted */
    struct cpl_span span;
    bool posted; /* it is in a queue: no message has matched yet */
    bool done, cancelled;
    bool abandoned; /* nobody waits for the receive any more */
    int from, from_tag;
    int64_t bytes;
    int error;
    MPI_Request inner;       /* MPI's request for a straight payload */
    struct cpl_match *match; /* NULL: the communicator is no longer managed */
};

/* A message that no receive has taken yet. */
struct cpl_arrival {
    struct cpl_arrival *prev, *next; /* among all unexpected messages */
    struct cpl_arrival *prev_of,
        *next_of; /* of its source: unexpected or early; or taken or spare */
    struct cpl_arrival *prev_awaited, *next_awaited;
    bool awaited;        /* its payload goes straight and has not been taken out of MPI's queue */
    MPI_Message message; /* handle of a straight payload that was taken out, or of a message */
    struct cpl_receive *receive; /* that took the message while its payload was awaited */
    struct cpl_segment segment;
    size_t room;
    unsigned char payload[];
};

/* Messages and receives of one source. */
struct cpl_match_source {
    uint32_t expected;              /* number of the source's next message */
    struct cpl_arrival *early;      /* messages that came before their turn */
    struct cpl_arrival *unexpected; /* messages without a receive, in the order of their numbers */
    struct cpl_receive *posted;     /* receives that name the source, in the order of posting */
    int n_awaited;                  /* number of straight payloads that are awaited */
};

struct cpl_match {
    int size;
    MPI_Comm private_comm; /* communicator of straight payloads and acknowledgements */
    struct cpl_match_source *sources;
    struct cpl_receive *posted_any; /* receives with MPI_ANY_SOURCE, in the order of posting */
    struct cpl_receive *straight;   /* matched, their straight payloads are under way */
    struct cpl_arrival *unexpected; /* messages of all sources without a receive, and */
    struct cpl_arrival *awaited;    /* those with awaited payloads, as their turns came */
    struct cpl_arrival *taken;      /* those that the program has a handle of (line.h) */
    struct cpl_arrival *spare;
    uint64_t n_posted; /* receives posted so far */
    /* Called when an abandoned receive is done; the owner frees it. */
    void (*drop)(struct cpl_receive *receive);
};

/* Returns false when memory ran out. The caller sets drop. */
bool cpl_match_init(struct cpl_match *match, int size, MPI_Comm private_comm);

/* Frees queues; receives that are still posted then belong to no queue. */
void cpl_match_free(struct cpl_match *match);

/* Takes a message that has come; copies its payload. */
void cpl_match_deliver(struct cpl_match *match, const struct cpl_segment *segment,
                       const unsigned char *payload);

/* Posts a receive, whose source, tag and span are set; it may be done at once. */
void cpl_match_post(struct cpl_match *match, struct cpl_receive *receive);

/* The oldest fitting message that no receive has taken; NULL: none. */
struct cpl_arrival *cpl_match_probe(const struct cpl_match *match, int source, int tag);

/* Takes a message out of the queue, for a receive that comes later. */
void cpl_match_take(struct cpl_match *match, struct cpl_arrival *arrival);

/* Gives a receive, whose span is set, a message that was taken out and whose payload has come. */
void cpl_match_receive_taken(struct cpl_match *match, struct cpl_receive *receive,
                             struct cpl_arrival *arrival);

/* Cancels a posted receive. Returns false when it has been matched already. */
bool cpl_match_cancel(struct cpl_receive *receive);

/* Whether no receive is open and no message waits. */
bool cpl_match_is_idle(const struct cpl_match *match);

/* Whether straight payloads are still to come; looks, and returns how many have come. */
static inline bool cpl_match_has_straight(const struct cpl_match *match)
{
    return match->straight || match->awaited;
}
int cpl_match_poll(struct cpl_match *match);

/* Fills the status of a receive; status may be MPI_STATUS_IGNORE. */
void cpl_match_status(MPI_Status *status, int source, int tag, int64_t bytes, bool cancelled);

/* Fills the status, which may be ignored, of a receive that is over. Not on the helper thread. */
void cpl_match_receive_status(const struct cpl_receive *receive, MPI_Status *status);

#endif
