/* Bidirectional exchange (recursive doubling) over any number of ranks: who plays which corner of
 * the hypercube, and what it costs to carry a pattern along with it (paper 003, section 3).
 *
 * With P no power of two the first 2F ranks fold, F = P - 2^floor(log2 P): ranks 2v and 2v+1 share
 * corner v, and the odd one of them takes part. */
#ifndef CARPOOL_HYPERCUBE_H
#define CARPOOL_HYPERCUBE_H

#include "machine.h"
#include "pattern.h"
#include "status.h"

#include <stdint.h>

struct cpl_hypercube {
    int32_t n_steps;  /* log2 of the corners */
    int32_t n_folded; /* corners that two ranks share, the first ones */
};

static inline struct cpl_hypercube cpl_hypercube_of(int32_t n_ranks)
{
    struct cpl_hypercube cube = {0, 0};
    while (INT64_C(2) << cube.n_steps <= n_ranks)
        cube.n_steps++;
    cube.n_folded = n_ranks - (INT32_C(1) << cube.n_steps);
    return cube;
}

static inline int32_t cpl_hypercube_corner(const struct cpl_hypercube *cube, int32_t rank)
{
    return rank < 2 * cube->n_folded ? rank / 2 : rank - cube->n_folded;
}

/* The rank that takes part for a corner. */
static inline int32_t cpl_hypercube_rank(const struct cpl_hypercube *cube, int32_t corner)
{
    return corner < cube->n_folded ? 2 * corner + 1 : corner + cube->n_folded;
}

/* What the messages of a pattern add to a reduction that carries them, in microseconds: for each
 * step the bytes and segments of the busiest rank. The reduction's own messages are there anyway.
 * unit_bytes: bytes a unit of volume. O(messages x log P). Returns CPL_OK, CPL_ERR_ARG (ranks
 * differ), CPL_ERR_NOMEM. */
enum cpl_status cpl_hypercube_carry_cost(const struct cpl_pattern *pattern,
                                         const struct cpl_machine *machine, double unit_bytes,
                                         double *microseconds, struct cpl_error *error);

#endif
