/* The matching engine of one managed communicator (doc/point-to-point.md): puts messages in the
 * order in which they were sent and matches them with receives by MPI's rules.
 *
 * Messages come in as segments, in any order between sources; per source they are numbered. A
 * receive takes the oldest message that fits, a message the oldest receive. Both wait in queues by
 * source: O(1) where the messages of a source come in order and their tags in the order in which
 * receives were posted, whatever other sources do; else, and with MPI_ANY_SOURCE, the length of the
 * queues concerned. Small messages that must wait are kept in memory that is used again. */
#ifndef CARPOOL_MATCH_H
#define CARPOOL_MATCH_H

#include "shim/state/datatype.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CPL_SEGMENT_STRAIGHT = 1,     /* the payload follows as an MPI message of its own */
    CPL_SEGMENT_SYNCHRONOUS = 2,  /* the sender wants to know when it is matched */
    CPL_SEGMENT_ACKNOWLEDGES = 4, /* tells that message `number` was matched; not a message */
    CPL_SEGMENT_NEIGHBOR = 8      /* of a neighborhood collective (neighbor_embed.h) */
};

#define CPL_NO_SLOT INT32_MIN

/* Tags of payloads that go straight, on the private communicator: of messages, and of neighborhood
 * collectives. Payloads of one source come in the order of their segments' numbers; those whose
 * segments wait for a receive are taken out of MPI's queue in that order (MPI_Improbe), so that one
 * tag does for any number of them. */
#define CPL_STRAIGHT_TAG 2000
#define CPL_RIDER_TAG    2001

/* A message as it travels: this, then ride_bytes of payload, padded to 8. */
struct cpl_segment {
    int32_t source;
    int32_t dest;
    int32_t tag;
    uint32_t number; /* of the source's messages to dest on this communicator */
    uint32_t flags;
    int32_t slot;        /* place in the ride's edge; CPL_NO_SLOT: it does not go by a plan */
    uint32_t ride_bytes; /* of payload that ride with it */
    int32_t unused;      /* always 0 */
    int64_t bytes;       /* of the whole message */
};

/* Bytes that a segment takes as it travels. */
static inline size_t cpl_segment_bytes(const struct cpl_segment *segment)
{
    return sizeof *segment + (segment->ride_bytes + 7) / 8 * 8;
}

/* A receive that the program has posted. */
struct cpl_receive {
    struct cpl_receive *prev, *next; /* in a posted queue or the straight list */
    uint64_t order;                  /* of posting */
    int source, tag;                 /* as posted */
    struct cpl_span span;
    bool posted; /* in a queue: no message has been found yet */
    bool done, cancelled;
    bool abandoned; /* nobody waits for it any more */
    int from, from_tag;
    int64_t bytes;
    int error;
    MPI_Request inner;       /* of a straight payload */
    struct cpl_match *match; /* NULL: its communicator is no longer managed */
};

/* A message that no receive has taken yet. */
struct cpl_arrival {
    struct cpl_arrival *prev, *next;       /* among all unexpected; next: spare */
    struct cpl_arrival *prev_of, *next_of; /* among its source's: unexpected or early */
    struct cpl_arrival *prev_awaited, *next_awaited;
    bool awaited;                /* its payload goes straight, and MPI has not given it out yet */
    MPI_Message message;         /* then that */
    struct cpl_receive *receive; /* that has taken the message while its payload was awaited */
    struct cpl_segment segment;
    size_t room;
    unsigned char payload[];
};

/* What has to do with one source. */
struct cpl_match_source {
    uint32_t expected;              /* number of its next message */
    struct cpl_arrival *early;      /* that came before their turn */
    struct cpl_arrival *unexpected; /* in the order of their numbers */
    struct cpl_receive *posted;     /* that name it, in order */
    int n_awaited;                  /* straight payloads */
};

struct cpl_match {
    int size;
    MPI_Comm private_comm; /* straight payloads come here */
    int straight_tag;
    struct cpl_match_source *sources;
    struct cpl_receive *posted_any; /* with MPI_ANY_SOURCE, in order */
    struct cpl_receive *straight;   /* matched, payload under way */
    struct cpl_arrival *unexpected; /* of all sources, in the order in which their turn came */
    struct cpl_arrival *awaited;    /* straight payloads, in the order in which their turn came */
    struct cpl_arrival *spare;
    uint64_t n_posted;   /* receives so far */
    int n_open, n_early; /* receives in the posted queues, messages before their turn */
    /* Called when a synchronous message has been matched. */
    void (*acknowledge)(void *context, const struct cpl_segment *segment);
    /* Called when an abandoned receive is done: it is the owner's to free. */
    void (*drop)(void *context, struct cpl_receive *receive);
    void *context;
};

/* Returns false when memory ran out. acknowledge, drop and context are set by the caller. */
bool cpl_match_init(struct cpl_match *match, int size, MPI_Comm private_comm, int straight_tag);

/* Frees queues; receives that are still posted belong to no queue from then on. */
void cpl_match_free(struct cpl_match *match);

/* A message has come; payload is copied. */
void cpl_match_deliver(struct cpl_match *match, const struct cpl_segment *segment,
                       const unsigned char *payload);

/* Posts a receive, whose source, tag and span are set; it may be done at once. */
void cpl_match_post(struct cpl_match *match, struct cpl_receive *receive);

/* The oldest message that fits and that no receive has taken; NULL: none. */
struct cpl_arrival *cpl_match_probe(const struct cpl_match *match, int source, int tag);

/* Takes a message out of the queue for the caller, who frees it (free); its payload must not be
 * awaited any more. */
void cpl_match_take(struct cpl_match *match, struct cpl_arrival *arrival);

/* A receive takes a message that MPI gave out (MPI_Improbe): its span, from, from_tag and bytes are
 * set. */
void cpl_match_receive_taken(struct cpl_match *match, struct cpl_receive *receive,
                             MPI_Message *message);

/* Takes a posted receive back. Returns false when it has been matched already. */
bool cpl_match_cancel(struct cpl_receive *receive);

/* Whether no receive is open and no message waits. */
bool cpl_match_is_idle(const struct cpl_match *match);

/* Whether straight payloads are to come; looks whether they have: returns how many. */
static inline bool cpl_match_has_straight(const struct cpl_match *match)
{
    return match->straight || match->awaited;
}
int cpl_match_poll(struct cpl_match *match);

/* Fills a status (which may be MPI_STATUS_IGNORE) as a receive's. */
void cpl_match_status(MPI_Status *status, int source, int tag, int64_t bytes, bool cancelled);

#endif
