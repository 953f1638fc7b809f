/* Either end of an edge of a slice (executor.h): where its messages lie, and how long they may be.
 * What MPI carries lies in a buffer of the end's; what a lane carries (lane.h) lies in the lane.
 *
 * A message is a header of CPL_END_HEADER bytes, perhaps a table of lengths, and the payloads.
 * `room` is the bytes of payload that fit, the same at both ends. Payloads beyond that travel in a
 * message of their own, always by MPI; where MPI carries the edge, both ends then enlarge the room
 * alike. Thread rule: one thread. */
#ifndef CARPOOL_ENDS_H
#define CARPOOL_ENDS_H

#include "planner/rank_plan.h"
#include "shim/carry/lanes.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#define CPL_END_HEADER 8 /* bytes */

struct cpl_end {
    struct cpl_lane lane; /* not open: MPI carries the edge */
    unsigned char *buffer;
    int32_t n_segments;
    int64_t room;                 /* bytes of payload that fit */
    int64_t buffered;             /* bytes of payload that fit in the buffer */
    int64_t bytes;                /* of payload in the present message */
    const unsigned char *payload; /* in-edge: the payloads that have come */
    bool used;                    /* a table of lengths has passed */
    bool awaits_payload; /* in-edge: the first message came, the payloads are still to come */
};

static inline int64_t cpl_end_table_bytes(const struct cpl_end *end)
{
    return (int64_t)sizeof(uint32_t) * end->n_segments;
}

/* Bytes of the longest message with so many of payload. */
static inline int64_t cpl_end_message_bytes(const struct cpl_end *end, int64_t room)
{
    return CPL_END_HEADER + room + cpl_end_table_bytes(end);
}

/* Makes an end, with a buffer, of an edge that will carry about `volume` bytes of payload. Returns
 * false when memory ran out; free it in any case. */
bool cpl_end_make(struct cpl_end *end, int64_t volume, int32_t n_segments);
void cpl_end_free(struct cpl_end *end);

/* Makes the buffer large enough for payloads that exceed the room, and for the table before them;
 * waits for memory (state/memory.h), since others wait for the message. Returns false when it is
 * larger than MPI can count, which the log tells. */
bool cpl_end_enlarge(struct cpl_end *end, int64_t bytes);

/* Opens lanes for the edges of a slice inside the node: out and in are its ends. Collective, as
 * cpl_lanes_open. */
void cpl_ends_open_lanes(const struct cpl_rank_plan *slice, struct cpl_end *out, struct cpl_end *in,
                         MPI_Comm comm, struct cpl_lanes *lanes);

#endif
