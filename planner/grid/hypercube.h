/* Bidirectional exchange (recursive doubling) over any number of ranks: who plays which corner of
 * the hypercube, and what it costs to carry a pattern along with it ([Selvitopi-embed], sections 3
 * and 4).
 *
 * A rank's point is its virtual rank: the rank itself, or the point that a map gives it. When P is
 * no power of two, the first 2F points fold, F = P - 2^floor(log2 P): points 2v and 2v+1 share
 * corner v, and the odd one of them takes part in the exchange. */
#ifndef CARPOOL_HYPERCUBE_H
#define CARPOOL_HYPERCUBE_H

#include "planner/machine.h"
#include "planner/pattern.h"
#include "planner/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpl_hypercube {
    int32_t n_steps;  /* log2 of the corners */
    int32_t n_folded; /* number of corners, the first ones, that two points share */
    const int32_t
        *point_of; /* a permutation of the ranks, owned by the caller; NULL: rank i is point i */
    const int32_t *rank_at; /* the inverse of point_of */
};

static inline struct cpl_hypercube cpl_hypercube_of(int32_t n_ranks)
{
    struct cpl_hypercube cube = {0, 0, NULL, NULL};
    while (INT64_C(2) << cube.n_steps <= n_ranks)
        cube.n_steps++;
    cube.n_folded = n_ranks - (INT32_C(1) << cube.n_steps);
    return cube;
}

static inline int32_t cpl_hypercube_point(const struct cpl_hypercube *cube, int32_t rank)
{
    return cube->point_of ? cube->point_of[rank] : rank;
}

/* The rank at a point. */
static inline int32_t cpl_hypercube_at(const struct cpl_hypercube *cube, int32_t point)
{
    return cube->rank_at ? cube->rank_at[point] : point;
}

static inline int32_t cpl_hypercube_corner(const struct cpl_hypercube *cube, int32_t rank)
{
    int32_t point = cpl_hypercube_point(cube, rank);
    return point < 2 * cube->n_folded ? point / 2 : point - cube->n_folded;
}

/* Whether a rank shares its corner (folds), and whether it is the guest: the one of the two that
 * does not take part. */
static inline bool cpl_hypercube_folds(const struct cpl_hypercube *cube, int32_t rank)
{
    return cpl_hypercube_point(cube, rank) < 2 * cube->n_folded;
}

static inline bool cpl_hypercube_is_guest(const struct cpl_hypercube *cube, int32_t rank)
{
    return cpl_hypercube_folds(cube, rank) && cpl_hypercube_point(cube, rank) % 2 == 0;
}

/* The other rank of the corner of a rank that folds. */
static inline int32_t cpl_hypercube_companion(const struct cpl_hypercube *cube, int32_t rank)
{
    return cpl_hypercube_at(cube, cpl_hypercube_point(cube, rank) ^ 1);
}

/* The rank that takes part for a corner (not the guest). */
static inline int32_t cpl_hypercube_rank(const struct cpl_hypercube *cube, int32_t corner)
{
    return cpl_hypercube_at(cube,
                            corner < cube->n_folded ? 2 * corner + 1 : corner + cube->n_folded);
}

/* What the messages of a pattern add to a reduction that carries them, in microseconds: for each
 * step the bytes and segments of the busiest rank. The reduction's own messages are not counted.
 * unit_bytes: bytes of a unit of volume. O(messages x log P). Returns CPL_OK, CPL_ERR_ARG (ranks
 * differ), CPL_ERR_NOMEM. */
enum cpl_status cpl_hypercube_carry_cost(const struct cpl_hypercube *cube,
                                         const struct cpl_pattern *pattern,
                                         const struct cpl_machine *machine, double unit_bytes,
                                         double *microseconds, struct cpl_error *error);

/* Chooses the points of ranks by the heuristics KLF and KLR (map.h), so that ranks that exchange
 * much data are few steps apart. Fills point_of, n_ranks entries, with the permutation that costs
 * least to carry, and *microseconds with that cost. The identity is kept (*changed is false) unless
 * another permutation costs a tenth less. The same input gives the same map. Returns CPL_OK,
 * CPL_ERR_ARG (ranks differ), CPL_ERR_NOMEM. */
enum cpl_status cpl_hypercube_map(const struct cpl_pattern *pattern,
                                  const struct cpl_machine *machine, double unit_bytes,
                                  int32_t *point_of, bool *changed, double *microseconds,
                                  struct cpl_error *error);

#endif
