/* Rides: segments on their way on a managed communicator's private communicator, combined and
 * forwarded by plans (doc/point-to-point.md).
 *
 * A ride is one message, by a lane (ride_lanes.h) or by MPI: a header (plan, instance, wave), then
 * segments. A plan is only policy: an intermediate holds segments while the plan says that more are
 * coming, and for a bounded time; what is unexpected goes straight to its destination.
 *
 * Cost: buffers of rides that have been sent are used again, so that nothing is allocated once
 * there are as many as are under way at a time; a poll is one look at all posted receives; a
 * segment is placed by its slot, a ride by a binary search among the plan's in-edges. Thread rule:
 * one thread. */
#ifndef CARPOOL_RIDES_H
#define CARPOOL_RIDES_H

#include "shim/carry/flights.h"
#include "shim/carry/match.h"
#include "shim/carry/relay.h"
#include "shim/carry/ride_lanes.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPL_MAX_RIDE_PLANS 16
#define CPL_NO_PLAN        (-1)
#define CPL_RIDE_BYTES     (48 << 10) /* the most that one ride carries, with its header */

struct cpl_ride_plan;

/* What a plan has done on this rank. */
struct cpl_ride_counts {
    int64_t forwarded; /* bytes of payload forwarded for others */
    int64_t rides;     /* out-edges that have left */
    int64_t late;      /* of these, by the end of the hold time */
};

/* Posted receives of rides. */
struct cpl_ride_receives {
    MPI_Request *request;  /* N_RECEIVES; NULL: none */
    unsigned char *buffer; /* theirs */
    int next;              /* the one that was posted first, mostly */
    unsigned n_looks;      /* at them */
};

struct cpl_rides {
    MPI_Comm comm; /* the private communicator */
    int rank;
    double hold_seconds;
    double delay_seconds; /* for tests: what forwarding a segment takes at least; 0 at first */
    uint32_t n_aligned;   /* how often the plans' instances have been aligned */
    int n_plans;
    struct cpl_ride_plan *plan[CPL_MAX_RIDE_PLANS];
    struct cpl_flights flights;
    struct cpl_ride_lanes lanes;
    int64_t sent, received; /* rides, for draining */
    int64_t in_time, late;  /* out-edges that left complete, and by the end of the hold time */
    int64_t
        tardy; /* rides, and batches of this rank, that came when what waited for them had left */
    int n_holding; /* out-edges that hold segments */
    struct cpl_ride_receives receives;
    /* Called for segments that have come for this rank. */
    void (*deliver)(void *context, const struct cpl_segment *segment, const unsigned char *payload);
    /* Called for a reduction's message that has come, without the header. */
    void (*reduction)(void *context, uint32_t number, int32_t step, const unsigned char *bytes,
                      size_t n);
    void *context;
};

/* Starts receiving rides on a private communicator; deliver and context are set by the caller
 * before. Returns false when memory ran out. */
bool cpl_rides_init(struct cpl_rides *rides, MPI_Comm comm, double hold_seconds);

/* Takes over a slice's words (freed with the rides). Returns its number, the same on all ranks when
 * all add in the same order; CPL_NO_PLAN when memory ran out. */
int cpl_rides_add_plan(struct cpl_rides *rides, int32_t *words, int32_t n_words);

/* What a plan has done so far. Local. */
struct cpl_ride_counts cpl_rides_counts(const struct cpl_rides *rides, int plan);

/* What a plan's rides wait for, and the order in which they leave. */
struct cpl_relay *cpl_rides_relay(struct cpl_rides *rides, int plan);

/* Opens lanes for the rides of all plans inside the node, once all are added; able: false when this
 * rank has not got all. Collective over the private communicator. */
void cpl_rides_open_lanes(struct cpl_rides *rides, MPI_Comm comm, bool able);

/* Begins the plan's next instance; then put each segment of payload k (that for the k-th
 * destination of this rank), then end. */
void cpl_rides_begin(struct cpl_rides *rides, int plan);
void cpl_rides_end(struct cpl_rides *rides, int plan);

/* Puts a segment with its payload from memory, or from the program's buffer, which span describes:
 * then returns MPI_SUCCESS or the error of packing it: then it is not sent. */
void cpl_rides_put(struct cpl_rides *rides, int plan, int32_t k, const struct cpl_segment *segment,
                   const unsigned char *payload);
int cpl_rides_put_span(struct cpl_rides *rides, int plan, int32_t k,
                       const struct cpl_segment *segment, const struct cpl_span *span);

/* All ranks come to the same place of the program, for instance a collective of the communicator,
 * and have ended their instances: the numbers of the next ones begin alike, whatever instances
 * ranks have left out or made more than others. Every rank calls it as often. */
void cpl_rides_align(struct cpl_rides *rides);

/* Ends an instance that turned out to be another batch's: it does not count as one of this rank's.
 */
void cpl_rides_abandon(struct cpl_rides *rides, int plan);

/* Sends segments straight to their common destination, as they lie in memory (each with its payload
 * padded to 8 bytes). */
void cpl_rides_send(struct cpl_rides *rides, int dest, const unsigned char *segments, size_t bytes,
                    uint32_t n);

/* A reduction's message (embed.h) with room for so many bytes: open it, append to it up to
 * CPL_RIDE_BYTES, send it. */
struct cpl_flight *cpl_rides_open(struct cpl_rides *rides, size_t bytes);
void cpl_rides_send_reduction(struct cpl_rides *rides, struct cpl_flight *flight, int dest,
                              uint32_t number, int32_t step);

/* Receives, forwards, delivers, sends what has been held too long. Returns whether anything
 * happened. */
bool cpl_rides_poll(struct cpl_rides *rides);

/* From now on segments are held so long; what is late is counted anew. */
void cpl_rides_hold(struct cpl_rides *rides, double seconds);

/* Sends everything that is held. */
void cpl_rides_release(struct cpl_rides *rides);

/* Stops receiving, and is as before cpl_rides_init; nothing may be under way any more. */
void cpl_rides_free(struct cpl_rides *rides);

#endif
