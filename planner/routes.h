/* Routes: where every message of a pattern is after each wave. Strategies decide them.
 *
 * A strategy fills a struct cpl_routes; cpl_plan_build (plan.h) turns it into a plan. Message m
 * starts at its source, stop(m, w) is the rank that holds it after wave w (1 <= w <= n_waves),
 * stop(m, n_waves) is its destination. Equal consecutive stops mean that the message rests. A route
 * may visit a rank twice: building the plan cuts such loops. */
#ifndef CARPOOL_ROUTES_H
#define CARPOOL_ROUTES_H

#include "arena.h"
#include "pattern.h"
#include "status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cpl_routes {
    int32_t n_waves; /* >= 1 */
    int64_t n_messages;
    int32_t *stops;         /* n_messages x n_waves, row-major: stops[m * n_waves + w - 1] */
    struct cpl_arena arena; /* owns stops */
};

/* Makes routes of n_waves waves for the pattern's messages. Every message rests at its source until
 * the last wave, which takes it to its destination: the routes of the direct plan. Returns CPL_OK,
 * CPL_ERR_ARG (n_waves < 1), CPL_ERR_NOMEM. */
enum cpl_status cpl_routes_init(const struct cpl_pattern *pattern, int32_t n_waves,
                                struct cpl_routes *routes, struct cpl_error *error);

/* The stops of message m: an array of n_waves ranks. */
static inline int32_t *cpl_routes_of(const struct cpl_routes *routes, int64_t m)
{
    return routes->stops + m * routes->n_waves;
}

/* Makes routes of paths without waves. The path of message m is the n_hops[m] ranks path[m *
 * max_hops .. ]: the last is the destination, the source is not part of it. Spreads the hops over
 * as many waves as the longest path has hops, so that no message waits for one of its own or a
 * later wave: combined messages cannot wait for each other in a cycle, which the thesis does not
 * treat. For each message it chooses the waves in which it opens the fewest new combined messages;
 * longest paths choose first. O(messages x hops^2). Returns CPL_OK, CPL_ERR_NOMEM. The caller frees
 * *routes with cpl_routes_free. */
enum cpl_status cpl_routes_from_paths(const struct cpl_pattern *pattern, int32_t max_hops,
                                      const int32_t *path, const int8_t *n_hops,
                                      struct cpl_routes *routes, struct cpl_error *error);

/* Makes the routes of a pattern with parts from those of its pairs (cpl_pattern.pairs): each part
 * takes the route of its pair. Returns CPL_OK, CPL_ERR_NOMEM. The caller frees *routes. */
enum cpl_status cpl_routes_of_parts(const struct cpl_pattern *pattern,
                                    const struct cpl_routes *of_pairs, struct cpl_routes *routes,
                                    struct cpl_error *error);

/* Makes the routes of the pairs from those of the parts: each pair takes the route of its first
 * part. */
enum cpl_status cpl_routes_of_pairs(const struct cpl_pattern *pattern,
                                    const struct cpl_routes *of_parts, struct cpl_routes *routes,
                                    struct cpl_error *error);

void cpl_routes_free(struct cpl_routes *routes);

#ifdef __cplusplus
}
#endif

#endif
