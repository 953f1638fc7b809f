/* The events of the chain model (plan_chain.c), in the order of time: buckets of equal spans of
 * time, linked and unsorted, of which only the present one is a heap. Most events go into a bucket
 * and come out of a small heap, so an event costs O(1) instead of a way through a heap of all.
 *
 * Order of calls: cpl_events_init, cpl_events_push and cpl_events_pop; the memory is the arena's.
 * Events must not be earlier than the last one that came out. Thread rule: one thread at a time. */
#ifndef CARPOOL_CHAIN_EVENTS_H
#define CARPOOL_CHAIN_EVENTS_H

#include "planner/arena.h"
#include "planner/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Of events at the same time the one with the lower `what`, then the lower number, comes first. */
struct cpl_event {
    double at; /* microseconds */
    uint32_t what;
    int32_t number;
};

/* An event in a bucket. */
struct cpl_waiting_event {
    struct cpl_event event;
    int32_t next; /* place in the pool + 1; 0: none. Of the same bucket, or of free places */
};

struct cpl_events {
    struct cpl_event *heap; /* those of the present bucket */
    int64_t n_heap;
    struct cpl_waiting_event *pool;
    int32_t n_pool; /* places that have been used */
    int32_t free;   /* as next */
    int32_t *first; /* bucket -> as next */
    int32_t most_buckets;
    int32_t n_buckets;
    int32_t bucket; /* the present one */
    double begin_us, buckets_per_us;
    double least_us; /* that all buckets span together */
    int32_t far;     /* as next: events behind all buckets */
    int32_t n_far;
};

/* A queue without events, for up to `most` of them at once. least_us: about the time between an
 * event and those that follow from it. Returns CPL_OK or CPL_ERR_NOMEM. */
enum cpl_status cpl_events_init(struct cpl_events *events, int32_t most, double least_us,
                                struct cpl_arena *arena);

void cpl_events_push(struct cpl_events *events, struct cpl_event event);

/* Takes the first event out; false when there is none. */
bool cpl_events_pop(struct cpl_events *events, struct cpl_event *event);

#endif
