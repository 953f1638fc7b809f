/* What ranking (strategy_rank.c) takes about, in nominal milliseconds, so that it keeps to its
 * budget the same way on every machine. Measured on one. */
#ifndef CARPOOL_RANKING_TIMES_H
#define CARPOOL_RANKING_TIMES_H

#include "planner/pattern.h"
#include "planner/plan.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Nanoseconds to price one choice: for each message, and for each hop that it may make, before it
 * is done; then for each segment of its plan, for each combined message, and for each event that is
 * played, of which a combined message has some CPL_RANKING_EVENTS if it is played to the end. */
#define CPL_PRICE_MESSAGE_NS 200
#define CPL_PRICE_RIDE_NS    40
#define CPL_SEGMENT_NS       35
#define CPL_COMBINED_NS      50
#define CPL_EVENT_NS         80
#define CPL_RANKING_EVENTS   3

/* What the model with barriers takes for each hop, of messages and of ranks; what it takes, for
 * each message, to find out whether what applies to few patterns does, and to look for a map. */
#define CPL_LOOK_RIDE_NS 18
#define CPL_LOOK_RANK_NS 3
#define CPL_ASK_NS       60
#define CPL_MAP_NS       1000

/* Large plans take longer, since they are not in the processor's caches: twice as long with
 * CPL_SLOWER combined messages, of CPL_SEGMENTS segments each, three times with more; but for the
 * part of the messages that go to ranks at most CPL_NEAR from those of the rank before, and
 * for those of CPL_FEW_RANKS. Events take CPL_UNCACHED_NS more for each combined message above
 * CPL_CACHED, the part CPL_UNCACHED_NEAR of it where messages are near. */
#define CPL_SLOWER        250000
#define CPL_SEGMENTS      8
#define CPL_NEAR          64
#define CPL_FEW_RANKS     512
#define CPL_CACHED        50000
#define CPL_UNCACHED_NS   350
#define CPL_UNCACHED_NEAR 0.4

/* A pattern, as far as it matters here. */
struct cpl_ranking_size {
    double n_messages, n_ranks;
    double far; /* the part of the messages that are not near (cpl_is_near) */
};

/* Whether message m of rank i, i > 0, goes to a rank near to that of the rank before's message at
 * the same place: what is carried at the same time is near in memory then. */
static inline bool cpl_is_near(const struct cpl_pattern *p, int32_t i, int64_t m)
{
    int64_t before = p->first[i - 1] + (m - p->first[i]);
    return before < p->first[i] && abs(p->dst[m] - p->dst[before]) <= CPL_NEAR;
}

/* struct cpl_ranking_size, far. O(messages). */
static inline double cpl_part_far(const struct cpl_pattern *pattern)
{
    int64_t n = 0;
    if (pattern->n_ranks <= CPL_FEW_RANKS)
        return 0;
    for (int32_t i = 1; i < pattern->n_ranks; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++)
            n += !cpl_is_near(pattern, i, m);
    return n > 0 ? (double)n / (double)pattern->n_messages : 0;
}

/* How many times as long as with a small plan everything takes with one of n combined messages. */
static inline double cpl_ranking_slower(const struct cpl_ranking_size *size, double n)
{
    return 1 + size->far * (n < 2 * CPL_SLOWER ? n / CPL_SLOWER : 2);
}

/* Building a plan. */
static inline double cpl_build_ms(const struct cpl_ranking_size *size, const struct cpl_plan *plan)
{
    double ns = CPL_SEGMENT_NS * (double)plan->n_segments + CPL_COMBINED_NS * (double)plan->n_edges;
    return 1e-6 * ns * cpl_ranking_slower(size, (double)plan->n_segments / CPL_SEGMENTS);
}

/* Playing n of its events. */
static inline double cpl_events_ms(const struct cpl_ranking_size *size, const struct cpl_plan *plan,
                                   int64_t n)
{
    double n_edges = (double)plan->n_edges;
    double uncached = n > 0 && n_edges > CPL_CACHED ? n_edges - CPL_CACHED : 0;
    double uncached_ns =
        CPL_UNCACHED_NS * (CPL_UNCACHED_NEAR + (1 - CPL_UNCACHED_NEAR) * size->far);
    return 1e-6 *
           (CPL_EVENT_NS * (double)n * cpl_ranking_slower(size, n_edges) + uncached_ns * uncached);
}

/* Pricing a candidate of so many hops, before anything of it is known. */
static inline double cpl_price_ms(const struct cpl_ranking_size *size, int32_t n_hops)
{
    return 1e-6 * size->n_messages * (CPL_PRICE_MESSAGE_NS + CPL_PRICE_RIDE_NS * n_hops);
}

/* Looking at one message in `every` of it. */
static inline double cpl_look_ms(const struct cpl_ranking_size *size, int32_t n_hops, int32_t every)
{
    double n = size->n_messages / every;
    double ns =
        n * CPL_LOOK_RIDE_NS * cpl_ranking_slower(size, n) + size->n_ranks * CPL_LOOK_RANK_NS;
    return 1e-6 * ns * n_hops;
}

/* Finding out whether what applies to few patterns does. */
static inline double cpl_ask_ms(const struct cpl_ranking_size *size)
{
    return 1e-6 * CPL_ASK_NS * size->n_messages * cpl_ranking_slower(size, size->n_messages);
}

/* Looking for a map. */
static inline double cpl_map_ms(const struct cpl_ranking_size *size)
{
    return 1e-6 * CPL_MAP_NS * size->n_messages * cpl_ranking_slower(size, size->n_messages);
}

#endif
