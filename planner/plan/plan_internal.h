/* Functions that the files which implement plan.h share; not installed. */
#ifndef CARPOOL_PLAN_INTERNAL_H
#define CARPOOL_PLAN_INTERNAL_H

#include "planner/plan.h"

#include <stdbool.h>

/* Makes the bundles of a plan that has none yet, one for each leader of cpl_pattern_leaders, and
 * their destinations, in the plan's arena. bundle_of (n_messages entries) becomes each message's
 * bundle. Returns CPL_OK or CPL_ERR_NOMEM. */
enum cpl_status cpl_plan_make_bundles(const struct cpl_pattern *pattern, const int64_t *leader,
                                      struct cpl_plan *plan, int32_t *bundle_of,
                                      struct cpl_error *error);

/* The fingerprint of a plan, computed from its arrays. */
uint64_t cpl_plan_compute_fingerprint(const struct cpl_plan *plan);

/* Whether a bundle is for a rank. */
bool cpl_plan_is_dest(const struct cpl_plan *plan, const struct cpl_bundle *bundle, int32_t rank);

/* The edges that carry each bundle, in canonical order: edge[first[k]] .. edge[first[k + 1] - 1]
 * carry bundle k. */
struct cpl_bundle_edges {
    int64_t *first; /* n_bundles + 1 entries */
    int64_t *edge;  /* n_segments entries */
};

/* Computes them in memory of the arena. Returns CPL_OK or CPL_ERR_NOMEM. Segments must hold valid
 * bundle numbers. */
enum cpl_status cpl_plan_bundle_edges(const struct cpl_plan *plan, struct cpl_arena *arena,
                                      struct cpl_bundle_edges *edges);

#endif
