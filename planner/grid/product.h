/* Products: parts of a pattern (parts.h) in which ranks exchange with their neighbours in a grid of
 * processes, whatever their numbers are: paths, rings and the like, multiplied. A message to a
 * corner neighbour can then travel along one dimension after the other, combined with others: the
 * 26 messages of a stencil of 27 points become 6. */
#ifndef CARPOOL_PRODUCT_H
#define CARPOOL_PRODUCT_H

#include "planner/arena.h"
#include "planner/grid/grid.h"
#include "planner/grid/parts.h"
#include "planner/machine.h"
#include "planner/pattern.h"
#include "planner/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Who exchanges messages with whom, in any direction. */
struct cpl_neighbours {
    int64_t *first;  /* n_ranks + 1 entries: rank i's begin at rank[first[i]] */
    int32_t *rank;   /* ascending for each rank, and without itself */
    int64_t *twin;   /* of the neighbour j of i: where i is among j's */
    uint64_t *joint; /* of the neighbour j of i: which of i's neighbours are j or j's (a bit each, i
                        the lowest); 0 where either has more than CPL_PRODUCT_NEIGHBOURS */
};

/* Ranks with more neighbours than this are in no product. */
#define CPL_PRODUCT_NEIGHBOURS 63

/* Finds the neighbours; the arena owns the arrays. Returns CPL_OK, CPL_ERR_NOMEM. O(messages x
 * neighbours of a rank). */
enum cpl_status cpl_neighbours_find(const struct cpl_pattern *pattern, struct cpl_arena *arena,
                                    struct cpl_neighbours *neighbours);

/* Whether part k is a product of two or more. Then *grid becomes its grid without holes, whose
 * first dimensions are those that cross nodes least, and the part's ranks are placed anew: a rank's
 * place is its point. Returns CPL_OK, CPL_ERR_NOMEM. O(ranks x neighbours^2) for the part. */
enum cpl_status cpl_product_find(const struct cpl_neighbours *neighbours,
                                 const struct cpl_machine *machine, struct cpl_parts *parts,
                                 int32_t k, struct cpl_grid *grid, bool *found);

#endif
