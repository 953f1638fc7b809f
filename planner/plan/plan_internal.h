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

/* A message's path without rests and loops: path[0] is its source, arrival[k] the wave in which
 * path[k] is reached; both have n_waves + 1 entries. Returns the number of ranks on it. */
int32_t cpl_plan_simple_path(const int32_t *stops, int32_t n_waves, int32_t src, int32_t dst,
                             int32_t *path, int32_t *arrival);

/* The fingerprint of a plan, computed from its arrays: cpl_plan_join_hashes of the sum of all
 * edges' hashes. A sum, so that ranks can compute it together. */
uint64_t cpl_plan_compute_fingerprint(const struct cpl_plan *plan);

/* The hash of an edge, the place-th (from 0) among those of its sender and wave. rank_of[i] is the
 * rank that the plan calls i; NULL: i. */
uint64_t cpl_plan_edge_hash(const struct cpl_plan *plan, const struct cpl_edge *edge,
                            const int32_t *rank_of, int32_t place);

uint64_t cpl_plan_join_hashes(uint64_t pattern_fingerprint, int32_t n_ranks, int32_t n_waves,
                              uint64_t edges);

/* Whether a bundle is for a rank. */
bool cpl_plan_is_dest(const struct cpl_plan *plan, const struct cpl_bundle *bundle, int32_t rank);

/* Gives the ranks in a slice (rank_plan.h) their real numbers: rank_of[i] for i, of n_ranks ranks.
 */
void cpl_rank_plan_rename(int32_t *words, int32_t n_ranks, const int32_t *rank_of);

/* The load of one rank in one wave, as cpl_plan_cost counts it. */
struct cpl_rank_load {
    double busy_us; /* overheads, segments, bytes inside the node */
    double recv_us; /* of that, what it takes to receive */
    double latency_us;
    double net_out; /* bytes to and from other nodes */
    double net_in;
};

/* Adds an edge of `bytes` bytes to the load of its sender (sends) or receiver; segments_us: the
 * time to pack or unpack its segments. */
void cpl_rank_load_add(struct cpl_rank_load *load, const struct cpl_machine *machine,
                       enum cpl_link_class class_, bool sends, double bytes, double segments_us);

/* The time that a wave of this load takes the rank. */
double cpl_rank_load_time(const struct cpl_costs *costs, const struct cpl_rank_load *load);

/* What the ranks of a node load its port with in one wave. */
struct cpl_port_load {
    double net_out, net_in; /* bytes, of all ranks */
    double recv_us;         /* the most of those that get something from other nodes; cpl_plan_cost
                               leaves it out */
};

/* Adds a rank's load to that of its node's port. */
void cpl_port_load_add(struct cpl_port_load *port, const struct cpl_rank_load *load);

/* The time that a wave takes the port, and the rank that receives most through it. Messages share a
 * port alike, so those that come in at once are there at about the same time, the last one's; the
 * rank has them all before it then. */
double cpl_port_load_time(const struct cpl_costs *costs, const struct cpl_port_load *port);

/* cpl_plan_build without the fingerprints, which cpl_plan_mark adds: for plans that are only
 * priced.
 */
enum cpl_status cpl_plan_build_unmarked(const struct cpl_pattern *pattern,
                                        const struct cpl_routes *routes, struct cpl_plan *plan,
                                        struct cpl_error *error);
void cpl_plan_mark(const struct cpl_pattern *pattern, struct cpl_plan *plan);

/* cpl_plan_chain_cost that gives up, with INFINITY as the time, as soon as it is certain that the
 * exchange takes longer than limit_us. Times up to limit_us are always told; a longer one may be.
 * *n_events: how many events were played. */
enum cpl_status cpl_plan_chain_below(const struct cpl_plan *plan, const struct cpl_machine *machine,
                                     double unit_bytes, double limit_us, double *microseconds,
                                     int64_t *n_events, struct cpl_error *error);

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
