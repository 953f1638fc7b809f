/* A lane: messages from one rank to another through memory that the two share. One end writes, the
 * other reads; neither waits for anybody. There are CPL_LANE_SLOTS slots, which the messages use in
 * turn: a message is written in its slot, and read there for as long as the reader likes. lanes.h
 * opens them.
 *
 * In the shared memory a lane is a line with how many messages have been taken, which the
 * reader writes, then the slots. A slot begins with the number of its message, which the writer
 * writes last: the reader finds a short message with the one line in which it lies.
 *
 * Leaf module: no MPI calls. Thread rule: one thread at each end. */
#ifndef CARPOOL_LANE_H
#define CARPOOL_LANE_H

#include "shim/base/work.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPL_LANE_SLOTS 2
#define CPL_LANE_LINE  128 /* bytes: two cache lines, which processors fetch together */

/* The beginning of a slot; the message follows. */
struct cpl_lane_slot {
    _Atomic uint32_t number; /* of the message that is in it, from 1; 0: none has been */
    uint32_t bytes;          /* its length */
#ifdef CPL_SIMULATED
    double there; /* when it has arrived (base/work.h) */
#endif
};

/* One end of a lane. */
struct cpl_lane {
    unsigned char *shared; /* the lane's memory; NULL: no lane is open */
    int64_t room;          /* bytes that a message may have */
    uint32_t n;            /* messages that this end has written, or taken */
    uint32_t n_taken;      /* writer: messages of which it knows that they have been taken */
};

/* Bytes from slot to slot, and of a lane with room for messages of so many bytes. */
static inline int64_t cpl_lane_stride(int64_t room)
{
    int64_t bytes = (int64_t)sizeof(struct cpl_lane_slot) + room;
    return (bytes + CPL_LANE_LINE - 1) & -(int64_t)CPL_LANE_LINE;
}

static inline int64_t cpl_lane_bytes(int64_t room)
{
    return CPL_LANE_LINE + CPL_LANE_SLOTS * cpl_lane_stride(room);
}

static inline struct cpl_lane_slot *cpl_lane_slot(const struct cpl_lane *lane, uint32_t n)
{
    size_t at = CPL_LANE_LINE + n % CPL_LANE_SLOTS * (size_t)cpl_lane_stride(lane->room);
    return (struct cpl_lane_slot *)(void *)(lane->shared + at);
}

/* Writer: where the next message belongs, `room` bytes; NULL: the reader has not yet taken those
 * that fill the slots. Then cpl_lane_send, when it is written. */
static inline unsigned char *cpl_lane_next(struct cpl_lane *lane)
{
    if (lane->n - lane->n_taken == CPL_LANE_SLOTS) {
        lane->n_taken =
            atomic_load_explicit((_Atomic uint32_t *)(void *)lane->shared, memory_order_acquire);
        if (lane->n - lane->n_taken == CPL_LANE_SLOTS)
            return NULL;
    }
    return (unsigned char *)(cpl_lane_slot(lane, lane->n) + 1);
}

static inline void cpl_lane_send(struct cpl_lane *lane, int64_t bytes)
{
    struct cpl_lane_slot *slot = cpl_lane_slot(lane, lane->n++);
    slot->bytes = (uint32_t)bytes;
#ifdef CPL_SIMULATED
    slot->there = cpl_work_lane_sent(bytes);
#endif
    atomic_store_explicit(&slot->number, lane->n, memory_order_release);
}

/* Reader: the next message and its length; NULL: it has not come. The next call finds the same one,
 * until cpl_lane_take gives its slot back to the writer. */
static inline unsigned char *cpl_lane_look(const struct cpl_lane *lane, int64_t *bytes)
{
    struct cpl_lane_slot *slot = cpl_lane_slot(lane, lane->n);
    if (atomic_load_explicit(&slot->number, memory_order_acquire) != lane->n + 1)
        return NULL;
    *bytes = slot->bytes;
#ifdef CPL_SIMULATED
    if (!cpl_work_lane_came(slot->there, *bytes))
        return NULL;
#endif
    return (unsigned char *)(slot + 1);
}

static inline void cpl_lane_take(struct cpl_lane *lane)
{
    atomic_store_explicit((_Atomic uint32_t *)(void *)lane->shared, ++lane->n,
                          memory_order_release);
}

#endif
