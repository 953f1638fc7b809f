/* Placement: which process of a machine plays which rank of a program, so that ranks with much to
 * say to each other are near each other.
 *
 * Up to three placements are made: one that starts from every rank where it is, one that grows node
 * by node from what is connected best, and, for Cartesian grids, one that cuts the grid in two
 * again and again, always across its longest side. All are improved by swaps in the manner of
 * Kernighan and Lin (map.h). The one with the smallest modelled time (cpl_plan_cost of messages
 * that travel alone) is taken when it is better than every rank where it is: never a worse one. The
 * same input gives the same placement. Link classes count, measured distances do not: the cost
 * model does not know them.
 */
#ifndef CARPOOL_PLACE_H
#define CARPOOL_PLACE_H

#include "machine.h"
#include "pattern.h"
#include "status.h"

#include <stdbool.h>
#include <stdint.h>

/* The most ranks that are placed: making a placement takes O(ranks^2) time. */
#define CPL_PLACE_RANKS 16384

/* An exchange, and how often it takes place, > 0. */
struct cpl_place_exchange {
    const struct cpl_pattern *pattern;
    double calls;
};

/* What a placement gains: modelled times of all calls of all exchanges, and what their messages
 * cost on their links, added up. */
struct cpl_place_gain {
    bool changed; /* else every rank stays where it is, and before and after are the same */
    double before_us, after_us;
    double before_links_us, after_links_us;
};

/* Whether messages cost the same between any two ranks of the machine: nothing can be gained. */
bool cpl_place_is_even(const struct cpl_machine *machine);

/* Writes the ranks of a Cartesian grid, numbered with the last dimension varying fastest, in an
 * order in which those that follow each other make compact pieces of it: the grid is cut across its
 * longest side, the first half comes before the second, and so on. order has as many entries as the
 * product of n_dims sizes. */
void cpl_place_order_grid(int32_t n_dims, const int32_t *size, int32_t *order);

/* Places the ranks of n >= 1 exchanges of as many ranks as the machine has; a unit of volume is
 * unit_bytes bytes. Rank r is played by process place[r] of the machine, a permutation of n_ranks
 * entries. order is one of all ranks that is tried too (cpl_place_order_grid), or NULL. Inside a
 * unit (node or, where sockets make a difference, socket) a rank keeps its process when that
 * belongs to the unit. Returns CPL_OK, CPL_ERR_UNFIT (more than CPL_PLACE_RANKS), CPL_ERR_ARG
 * (numbers of ranks differ), CPL_ERR_NOMEM. */
enum cpl_status cpl_place(const struct cpl_place_exchange *exchanges, int32_t n,
                          const struct cpl_machine *machine, double unit_bytes,
                          const int32_t *order, int32_t *place, struct cpl_place_gain *gain,
                          struct cpl_error *error);

#endif
