/* Maps: which rank plays which point of a virtual grid (grid.h). A map is a permutation
 * position[rank] of 0 .. n_ranks - 1; without one, rank i is point i.
 *
 * Two kinds. KLF and KLR (Selvitopi and Aykanat, embedding point-to-point messages into reductions,
 * section 4) swap the points of ranks as Kernighan and Lin do, so that ranks that exchange much
 * data differ in few coordinates: they minimise the sum over messages of volume x hops. Near and
 * doubling (Bhowmik and Bodele, topology-aware collectives, 3.2 and 3.3) look at the machine only:
 * at measured distances where it has them, else at the classes of its links. The same input gives
 * the same map. */
#ifndef CARPOOL_MAP_H
#define CARPOOL_MAP_H

#include "planner/arena.h"
#include "planner/grid/grid.h"
#include "planner/machine.h"
#include "planner/pattern.h"
#include "planner/status.h"

#include <stdint.h>

enum cpl_map {
    CPL_MAP_NONE,
    CPL_MAP_KLF,      /* any two ranks may swap */
    CPL_MAP_KLR,      /* only ranks whose points differ in one coordinate may swap */
    CPL_MAP_NEAR,     /* neighbouring points for ranks near each other */
    CPL_MAP_DOUBLING, /* points far apart for ranks near each other, by recursive doubling */
    CPL_N_MAPS
};

/* The most ranks for KLF, which looks at all pairs. */
#define CPL_MAP_KLF_RANKS 1024

/* The largest (ranks x sum of sizes) for KLR. */
#define CPL_MAP_CELLS (1 << 24)

/* The search for swaps takes CPL_MAP_LEAST_STEPS elementary steps of some nanoseconds and
 * CPL_MAP_MESSAGE_STEPS for each message, but at most CPL_MAP_STEPS. */
#define CPL_MAP_STEPS         200000000
#define CPL_MAP_LEAST_STEPS   500000
#define CPL_MAP_MESSAGE_STEPS 40

/* "klf", "klr", "near", "doubling"; "" for CPL_MAP_NONE. */
const char *cpl_map_name(enum cpl_map map);

/* Whether a map can be made for a grid. Returns CPL_OK, or CPL_ERR_UNFIT when there are too many
 * ranks, with a text that names what fits. */
enum cpl_status cpl_map_fits(enum cpl_map map, const struct cpl_grid *grid,
                             struct cpl_error *error);

/* Makes a map. position has n_ranks entries. KLF and KLR take O(steps) time and O(ranks x sum of
 * sizes + messages) memory, the others O(ranks), with measured distances O(ranks^2) time. Returns
 * CPL_OK, CPL_ERR_UNFIT as cpl_map_fits, CPL_ERR_NOMEM. */
enum cpl_status cpl_map_make(enum cpl_map map, const struct cpl_pattern *pattern,
                             const struct cpl_machine *machine, const struct cpl_grid *grid,
                             int32_t *position, struct cpl_error *error);

/* Sum over the messages of volume x coordinates in which the points of source and destination
 * differ: what KLF and KLR minimise. position NULL: rank i is point i. */
double cpl_map_forwarded(const struct cpl_pattern *pattern, const struct cpl_grid *grid,
                         const int32_t *position);

/* The number of coordinates in which two points differ. */
int32_t cpl_map_hops(const struct cpl_grid *grid, int32_t a, int32_t b);

/* KLF and KLR for cpl_map_make. They start from position. */
enum cpl_status cpl_map_by_swaps(enum cpl_map map, const struct cpl_pattern *pattern,
                                 const struct cpl_grid *grid, int32_t *position);

/* The most steps that cpl_map_by_swaps takes. */
int64_t cpl_map_enough_steps(const struct cpl_pattern *pattern);

/* Points with weighted coordinates. The distance of two points is the sum of the scales of the
 * coordinates in which they differ. */
struct cpl_map_points {
    int32_t n_dims;
    int32_t size[CPL_MAX_DIMENSIONS];  /* coordinates are 0 .. size - 1 */
    int32_t scale[CPL_MAX_DIMENSIONS]; /* 0 .. 1024 */
    const int32_t *coordinate;         /* n_dims entries for each of the pattern's ranks */
};

/* Swaps any two ranks as KLF does, starting from position, in at most `steps` steps. The sum over
 * the messages of volume x distance never grows. O(ranks x sum of sizes + messages) memory. Returns
 * CPL_OK, CPL_ERR_NOMEM. */
enum cpl_status cpl_map_swap_points(const struct cpl_pattern *pattern,
                                    const struct cpl_map_points *points, int64_t steps,
                                    int32_t *position);

enum cpl_status cpl_map_near(const struct cpl_machine *machine, int32_t *position);
enum cpl_status cpl_map_doubling(const struct cpl_machine *machine, int32_t *position);

/* Doubling for the bidirectional exchange of hypercube.h: position[i] is the point that rank i
 * plays. With a power of two the same as cpl_map_doubling. */
enum cpl_status cpl_map_hypercube(const struct cpl_machine *machine, int32_t *position);

#endif
