/* The plan: a schedule that delivers every message of a pattern. One representation serves every
 * strategy, the checker, the cost model, the text dump and (through rank_plan.h) the executor.
 *
 * What travels is a bundle: a payload of one owner with a set of destinations; an ordinary message
 * is a bundle with one destination, a payload class of the pattern is a bundle with several. A
 * combined message is an edge (from, to, wave) with its bundles, the segments. A wave is a label,
 * not a barrier: an edge is sent as soon as its bundles are at the sender.
 *
 * Order of calls: cpl_plan_build (or cpl_strategy_plan, strategy.h), use, cpl_plan_free. A built
 * plan never changes. Thread rule: may be read by any number of threads. */
#ifndef CARPOOL_PLAN_H
#define CARPOOL_PLAN_H

#include "arena.h"
#include "machine.h"
#include "pattern.h"
#include "routes.h"
#include "status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cpl_bundle {
    int32_t owner; /* the rank whose payload it is */
    int32_t n_dests;
    int64_t first_dest; /* into cpl_plan.dests; destinations ascend */
    int64_t
        message; /* number of the pattern's message with this payload (the first one of a class) */
    int64_t volume; /* in the pattern's units */
};

struct cpl_edge {
    int32_t from;
    int32_t to;
    int32_t wave;          /* 1 .. n_waves */
    int32_t n_segments;    /* >= 1 */
    int64_t first_segment; /* into cpl_plan.segments; bundles ascend */
    int64_t volume;        /* volume of all its segments */
};

struct cpl_plan {
    int32_t n_ranks;
    int32_t n_waves;
    bool has_parts; /* the pattern has parts, so segments are lists of items and cost accordingly */
    int64_t n_bundles;
    int64_t n_dests;
    int64_t n_edges;
    int64_t n_segments;
    struct cpl_bundle *bundles; /* sorted by owner, then message */
    int32_t *dests;
    struct cpl_edge
        *edges; /* sorted by wave, `from`, then the order in which `from` sends them: by descending
                   number of edges that `to` sends in later waves, then by `to` (order.h) */
    int32_t *segments; /* bundle numbers */
    uint64_t pattern_fingerprint;
    uint64_t fingerprint;   /* fingerprint of the plan: equal plans have equal ones */
    struct cpl_arena arena; /* owns the arrays */
};

/* Builds the plan that carries the pattern's messages along the routes. Loops in routes are cut,
 * empty waves dropped, messages of one payload class merged into a tree of copies, and copies that
 * reach nobody pruned. Returns CPL_OK, CPL_ERR_ARG (routes of another pattern, a stop that is no
 * rank), CPL_ERR_NOMEM. The caller frees *plan. O(messages x waves + ranks x waves). */
enum cpl_status cpl_plan_build(const struct cpl_pattern *pattern, const struct cpl_routes *routes,
                               struct cpl_plan *plan, struct cpl_error *error);

/* Checks every invariant of a plan for a pattern:
 *  1 causal: a bundle is at a rank before an edge of a later wave carries it on;
 *  2 tree: a bundle reaches a rank at most once and never its owner;
 *  3 complete: every message of the pattern is a destination of exactly one bundle of its source,
 *    every destination is reached, and a rank that is reached without being a destination forwards
 *    (nothing is carried in vain);
 *  4 combined: at most one edge per (from, to, wave), from != to, wave in range, none empty;
 *  5 canonical: edges (in the order of sending), segments and destinations are in order, volumes
 *    and both fingerprints are as computed anew.
 * (Invariant 6, equal fingerprints on all ranks, is the shim's.) Returns CPL_OK, CPL_ERR_BROKEN
 * with a text that names the invariant and the edge or bundle, CPL_ERR_NOMEM. */
enum cpl_status cpl_plan_check(const struct cpl_plan *plan, const struct cpl_pattern *pattern,
                               struct cpl_error *error);

/* Figures of a plan. Counts are of the plan as it is executed; set_* count as the thesis does: the
 * number of different ranks that a rank sends to in all waves together (thesis 2.3, table 6.2). */
struct cpl_metrics {
    int32_t n_waves;
    int64_t sends_max; /* combined messages sent by the busiest rank */
    double sends_avg;
    int64_t recvs_max;
    double recvs_avg;
    int32_t hops_max; /* most edges that carry one message, one after another */
    double hops_avg;
    double volume_factor; /* volume carried over all edges / volume of all messages; 1 for a pattern
                             without volume */
    double modelled_us;   /* time by cpl_plan_chain_cost */
    double waves_us;      /* time by cpl_plan_cost */
    int64_t set_max;
    double set_avg;
    double lanes_avg; /* of sends_avg those by lanes; the others are messages by MPI */
    int64_t mpi_max;  /* messages by MPI that a rank sends or receives, whichever are more: of the
                         busiest rank */
};

/* Measures a plan on a machine of the same number of ranks; a unit of volume is unit_bytes bytes.
 * Returns CPL_OK, CPL_ERR_ARG (ranks differ), CPL_ERR_NOMEM. */
enum cpl_status cpl_plan_measure(const struct cpl_plan *plan, const struct cpl_machine *machine,
                                 double unit_bytes, struct cpl_metrics *metrics,
                                 struct cpl_error *error);

/* Modelled time of one exchange in microseconds, as if there were a barrier after each wave.
 * Searches minimise it. A wave takes the longest of: latency + overheads of the busiest rank's
 * sends and receives; the bytes on the busiest wire; when ranks share cores, the time that a node's
 * ranks need together. The times of the waves add up. Returns CPL_OK, CPL_ERR_ARG,
 * CPL_ERR_NOMEM. */
enum cpl_status cpl_plan_cost(const struct cpl_plan *plan, const struct cpl_machine *machine,
                              double unit_bytes, double *microseconds, struct cpl_error *error);

/* Modelled time of one exchange by the chain model, without barriers between waves. Decisions
 * between plans go by it. Each rank sends an edge as soon as its bundles are there, and receives in
 * the order of arrival. Overheads add up at both ends, bytes on the wires out of and into ranks,
 * and messages under way share the ports of nodes. The result is the time at which the last rank is
 * done. Returns CPL_OK, CPL_ERR_ARG, CPL_ERR_NOMEM. O(segments + edges log edges). */
enum cpl_status cpl_plan_chain_cost(const struct cpl_plan *plan, const struct cpl_machine *machine,
                                    double unit_bytes, double *microseconds,
                                    struct cpl_error *error);

/* Writes the plan as text: a header, then a line per edge in canonical order, `WAVE FROM -> TO:
 * OWNER>DEST[,DEST...] ...`. The same plan gives the same bytes. Returns CPL_OK or CPL_ERR_IO. */
enum cpl_status cpl_plan_dump(const struct cpl_plan *plan, FILE *out, struct cpl_error *error);

void cpl_plan_free(struct cpl_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
