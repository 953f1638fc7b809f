/* The buffers of rides (rides.h): filled with segments, given to MPI, and used again when MPI has
 * sent them.
 *
 * Order of calls: a zeroed struct, take, append, send or spare, cpl_flights_free. Memory is waited
 * for (state/memory.h), since others wait for what rides. Cost: nothing is allocated once there are
 * as many buffers, and of such a size, as are needed at a time; whether rides have been sent is
 * looked at only when no buffer is left. Thread rule: one thread. */
#ifndef CARPOOL_FLIGHTS_H
#define CARPOOL_FLIGHTS_H

#include "shim/carry/match.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A ride that is being filled or sent. */
struct cpl_flight {
    struct cpl_flight *next; /* spare */
    size_t used, room;
    uint32_t n_segments;
    unsigned char *bytes; /* begins with room for a header */
};

struct cpl_flights {
    struct cpl_flight *spare;   /* not in use */
    int n_made, room;           /* buffers made; places in the three arrays below */
    int n_flying, reap_at;      /* that MPI is sending; at how many to look at them again */
    struct cpl_flight **flying; /* these */
    MPI_Request *request;       /* theirs */
    int *landed;
};

/* An empty ride with room for a header of `head` bytes and `more` behind it. */
struct cpl_flight *cpl_flights_take(struct cpl_flights *flights, size_t head, size_t more);

/* A ride that is not to be sent. */
void cpl_flights_spare(struct cpl_flights *flights, struct cpl_flight *flight);

/* Makes room for more bytes behind those that are used. */
void cpl_flight_enlarge(struct cpl_flight *flight, size_t more);
static inline void cpl_flight_make_room(struct cpl_flight *flight, size_t more)
{
    if (flight->used + more > flight->room)
        cpl_flight_enlarge(flight, more);
}

/* Appends a segment. Returns where its payload belongs. */
static inline unsigned char *cpl_flight_append(struct cpl_flight *flight,
                                               const struct cpl_segment *segment)
{
    size_t bytes = cpl_segment_bytes(segment);
    cpl_flight_make_room(flight, bytes);
    unsigned char *at = flight->bytes + flight->used;
    flight->used += bytes;
    flight->n_segments++;
    memcpy(at, segment, sizeof *segment);
    if (segment->payload_bytes % 8) /* nothing that was here before travels in the padding */
        memset(flight->bytes + flight->used - 8, 0, 8);
    return at + sizeof *segment;
}

/* Gives a ride to MPI. Returns false when MPI refuses it: it is lost, and the log says so. */
bool cpl_flights_send(struct cpl_flights *flights, struct cpl_flight *flight, int dest, int tag,
                      MPI_Comm comm);

/* Waits until all rides have been sent; frees all. */
void cpl_flights_free(struct cpl_flights *flights);

#endif
