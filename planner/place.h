/* Placement: which process of a machine plays which rank of a program, so that ranks that exchange
 * much data are near each other.
 *
 * Up to three placements are made: one starts from the ranks as they are, one grows node by node
 * from the ranks that communicate most, and, for Cartesian grids, one cuts the grid in two again
 * and again, always across its longest side. All are improved by swaps in the manner of Kernighan
 * and Lin (map.h). The one with the smallest modelled time (cpl_plan_cost of messages that travel
 * alone) is taken if it is better than the ranks as they are. The same input gives the same
 * placement. Only link classes count: the cost model does not know measured distances.
 */
#ifndef CARPOOL_PLACE_H
#define CARPOOL_PLACE_H

#include "machine.h"
#include "pattern.h"
#include "status.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most ranks that are placed: making a placement takes O(ranks^2) time. */
#define CPL_PLACE_RANKS 16384

/* An exchange and its number of calls, > 0. */
struct cpl_place_exchange {
    const struct cpl_pattern *pattern;
    double calls;
};

/* What a placement gains. before_us, after_us: modelled time of all calls of all exchanges.
 * before_links_us, after_links_us: the cost of all their messages on their links, added up. */
struct cpl_place_gain {
    bool changed; /* false: every rank stays where it is, and before and after are equal */
    double before_us, after_us;
    double before_links_us, after_links_us;
};

/* Whether messages cost the same between any two ranks of the machine; then no placement gains. */
bool cpl_place_is_even(const struct cpl_machine *machine);

/* Writes the ranks of a Cartesian grid, numbered with the last dimension varying fastest, in an
 * order in which consecutive ranks form compact pieces of the grid: it is cut across its longest
 * side, the first half comes before the second, and so on within each half. order has as many
 * entries as the product of n_dims sizes. */
void cpl_place_order_grid(int32_t n_dims, const int32_t *size, int32_t *order);

/* Places the ranks of n >= 1 exchanges, all with the machine's number of ranks; a unit of volume is
 * unit_bytes bytes. Rank r is played by process place[r] of the machine, a permutation of n_ranks
 * entries. order is an order of all ranks to try as well (cpl_place_order_grid), or NULL. A rank
 * that is placed on the unit (node or, where sockets make a difference, socket) of its own process
 * keeps that process. Returns CPL_OK, CPL_ERR_UNFIT (more than CPL_PLACE_RANKS), CPL_ERR_ARG
 * (numbers of ranks differ), CPL_ERR_NOMEM. */
enum cpl_status cpl_place(const struct cpl_place_exchange *exchanges, int32_t n,
                          const struct cpl_machine *machine, double unit_bytes,
                          const int32_t *order, int32_t *place, struct cpl_place_gain *gain,
                          struct cpl_error *error);

/* What the exchanges cost when process place[r] plays rank r: after_us and after_links_us, beside
 * the ranks as they are. changed says whether a rank is moved. Arguments and errors as above. */
enum cpl_status cpl_place_model(const struct cpl_place_exchange *exchanges, int32_t n,
                                const struct cpl_machine *machine, double unit_bytes,
                                const int32_t *place, struct cpl_place_gain *gain,
                                struct cpl_error *error);

#ifdef __cplusplus
}
#endif

#endif
