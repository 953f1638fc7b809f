/* A relay: what carrying by a plan's slice needs, by the executor (executor.h) or as combined
 * messages (combined.h): where a payload leaves, what each out-edge waits for, and in which order
 * those leave that wait for no other rank.
 *
 * An out-edge waits for its sources: in-edges, and this rank's own payloads if it carries any,
 * which together are one source more. When all have come it leaves. How many each still misses is
 * an array of its user's, one for each exchange that can be under way at a time.
 *
 * From a zeroed struct on: cpl_relay_init, any, cpl_relay_free. An exchange begins with
 * cpl_relay_begin, O(out-edges); then each source comes once, O(1) for each out-edge that waits for
 * it. Thread rule: one thread. */
#ifndef CARPOOL_RELAY_H
#define CARPOOL_RELAY_H

#include "planner/arena.h"
#include "planner/rank_plan.h"
#include "shim/state/context.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define CPL_RELAY_OWN (-1) /* the source that is this rank's own payloads; others are in-edges */

struct cpl_relay {
    struct cpl_rank_plan slice;
    struct cpl_arena arena; /* its arrays, and those of its user: freed with it */
    int32_t *words;         /* the slice's memory */
    int32_t *next;          /* the first out-segment with a payload, which is numbered as in
                               out_source; -1: none */
    int32_t *out_edge;      /* per out-segment */
    int32_t *waits;         /* per out-edge: how many sources it has */
    int32_t n_own, n_first; /* out-edges with own payloads; those that wait for nothing else */
    int32_t *own;      /* n_own: the n_first ones, in any order, then the others in the plan's */
    int64_t forwarded; /* bytes of payload that the executor has passed on, however many copies */
};

/* Takes over a slice's words. Returns false when memory ran out or the slice is damaged, which the
 * log tells (free it then, too). */
bool cpl_relay_init(struct cpl_relay *relay, int32_t *words, int32_t n_words);
void cpl_relay_free(struct cpl_relay *relay);

/* The in-edge from a rank in a wave, perhaps `guess`; -1: there is none. O(log in-edges). */
int32_t cpl_relay_in_edge(const struct cpl_relay *relay, int32_t from, int32_t wave, int32_t guess);

/* Begins an exchange: writes to missing how many sources each of the n_out out-edges misses. */
static inline void cpl_relay_begin(const struct cpl_relay *relay, int32_t *missing)
{
    memcpy(missing, relay->waits, (size_t)relay->slice.n_out * sizeof *missing);
}

/* The out-edges that wait for a source, and how many. When it has come each misses one source less;
 * those that then miss none leave, in this order. */
static inline int32_t cpl_relay_waiting(const struct cpl_relay *relay, int32_t source,
                                        const int32_t **edges)
{
    const struct cpl_rank_plan *slice = &relay->slice;
    if (source == CPL_RELAY_OWN) {
        *edges = relay->own;
        return relay->n_own;
    }
    *edges = slice->in_feed + slice->in_feed_first[source];
    return slice->in_feed_first[source + 1] - slice->in_feed_first[source];
}

/* The setting for tests: a rank that forwards is slow. */
static inline void cpl_relay_delay(void)
{
    if (cpl_context.settings.delay == 0)
        return;
    for (double end = PMPI_Wtime() + 1e-6 * (double)cpl_context.settings.delay; PMPI_Wtime() < end;)
        ;
}

#endif
