/* Searching for a better cover: the search removes edges of loaded ranks one at a time; messages
 * that lose their way get one over present edges or the cheapest new ones; the change stays when
 * the objective falls (or, early on, rises little). Our own method, for the strategy `balance`. */
#ifndef CARPOOL_COVER_SEARCH_H
#define CARPOOL_COVER_SEARCH_H

#include "planner/search/cover.h"
#include "planner/search/cover_price.h"

/* How the search cools down: the sharpness of the prices at the beginning and end, in units of load
 * of the price's table, and the part of an edge's price by which a change may worsen the objective
 * at first. */
struct cpl_cover_schedule {
    double first_sharpness;
    double last_sharpness;
    double temperature;
    int64_t work; /* steps to spend */
    uint64_t seed;
};

/* Sets a schedule, except its work, to values that have proved good for covers with n_hops hops and
 * the prices' goal. */
void cpl_cover_schedule_for(const struct cpl_cover_price *price, int32_t n_hops,
                            struct cpl_cover_schedule *schedule);

/* Improves a cover on which every message has a way, until the work is spent; price must be new:
 * the function first loads it with the cover's edges. The resulting cover has a way for every
 * message and no edge that no message needs. Returns CPL_OK, CPL_ERR_NOMEM (the cover is then
 * useless). Deterministic. */
enum cpl_status cpl_cover_search(struct cpl_cover *cover, struct cpl_cover_price *price,
                                 const struct cpl_cover_schedule *schedule);

#endif
