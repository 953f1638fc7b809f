/* Events in buckets (chain_events.h). When all buckets are used up, the events behind them are
 * spread over new ones, as many as there are events. */
#include "planner/plan/chain_events.h"

#include "planner/base/heap.h"

#define LEAST_BUCKETS 64
#define MOST_BUCKETS  (1 << 18)

static inline bool sooner(const struct cpl_event *a, const struct cpl_event *b)
{
    if (a->at < b->at || a->at > b->at)
        return a->at < b->at;
    return a->what != b->what ? a->what < b->what : a->number < b->number;
}

CPL_HEAP(event_heap, struct cpl_event, sooner)

enum cpl_status cpl_events_init(struct cpl_events *events, int32_t most, double least_us,
                                struct cpl_arena *arena)
{
    int32_t n = most < LEAST_BUCKETS ? LEAST_BUCKETS : most;
    *events = (struct cpl_events){.most_buckets = n < MOST_BUCKETS ? n : MOST_BUCKETS,
                                  .least_us = least_us,
                                  .heap = CPL_ARENA_ARRAY(arena, struct cpl_event, most),
                                  .pool = CPL_ARENA_ARRAY(arena, struct cpl_waiting_event, most)};
    events->first = CPL_ARENA_ARRAY(arena, int32_t, events->most_buckets);
    return events->heap && events->pool && events->first ? CPL_OK : CPL_ERR_NOMEM;
}

/* Where an event belongs: a place among the buckets, not below n_buckets if it is behind them. */
static inline double place_of(const struct cpl_events *events, double at)
{
    return (at - events->begin_us) * events->buckets_per_us;
}

static void link_event(struct cpl_events *events, struct cpl_event event, int32_t *list)
{
    int32_t place = events->free;
    if (place > 0)
        events->free = events->pool[place - 1].next;
    else
        place = ++events->n_pool;
    events->pool[place - 1] = (struct cpl_waiting_event){event, *list};
    *list = place;
}

void cpl_events_push(struct cpl_events *events, struct cpl_event event)
{
    double place = place_of(events, event.at);
    if (!(place < events->n_buckets)) {
        link_event(events, event, &events->far);
        events->n_far++;
    } else if (place < events->bucket + 1) {
        event_heap_push(events->heap, events->n_heap++, event);
    } else {
        link_event(events, event, &events->first[(int32_t)place]);
    }
}

/* Spreads the events behind the buckets over new ones. The last of them gets its events even where
 * their time is no number of microseconds. */
static void spread(struct cpl_events *events)
{
    struct cpl_waiting_event *pool = events->pool;
    double begin = pool[events->far - 1].event.at, end = begin;
    for (int32_t k = events->far; k > 0; k = pool[k - 1].next) {
        begin = pool[k - 1].event.at < begin ? pool[k - 1].event.at : begin;
        end = pool[k - 1].event.at > end ? pool[k - 1].event.at : end;
    }
    int32_t n = events->n_far < LEAST_BUCKETS ? LEAST_BUCKETS : events->n_far;
    n = n < events->most_buckets ? n : events->most_buckets;
    double span = end - begin > events->least_us ? end - begin : events->least_us;
    events->n_buckets = n;
    events->bucket = -1;
    events->begin_us = begin;
    events->buckets_per_us = span > 0 ? (n - 0.5) / span : 0;
    for (int32_t k = events->far, next; k > 0; k = next) {
        double place = place_of(events, pool[k - 1].event.at);
        int32_t *list = &events->first[place < n ? (int32_t)place : n - 1];
        next = pool[k - 1].next;
        pool[k - 1].next = *list;
        *list = k;
    }
    events->far = events->n_far = 0;
}

/* Makes the next bucket the present one. */
static void advance(struct cpl_events *events)
{
    int32_t *list = &events->first[++events->bucket];
    while (*list > 0) {
        int32_t place = *list;
        struct cpl_waiting_event *waiting = &events->pool[place - 1];
        event_heap_push(events->heap, events->n_heap++, waiting->event);
        *list = waiting->next;
        waiting->next = events->free;
        events->free = place;
    }
}

bool cpl_events_pop(struct cpl_events *events, struct cpl_event *event)
{
    while (events->n_heap == 0) {
        if (events->bucket + 1 < events->n_buckets)
            advance(events);
        else if (events->far > 0)
            spread(events);
        else
            return false;
    }
    *event = event_heap_pop(events->heap, events->n_heap--);
    return true;
}
