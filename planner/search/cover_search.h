/* Searching for a better cover: edges of loaded ranks are taken away one at a time, the messages
 * that lose their way find one over present edges or the cheapest new ones, and the change stays
 * when the objective falls (or, early on, rises little). Our own; strategy `balance`. */
#ifndef CARPOOL_COVER_SEARCH_H
#define CARPOOL_COVER_SEARCH_H

#include "planner/search/cover.h"
#include "planner/search/cover_price.h"

/* How the search cools down: sharpness of the prices at begin and end, in units of load of the
 * price's table, and how much of an edge's price a change may lose at first. */
struct cpl_cover_schedule {
    double first_sharpness;
    double last_sharpness;
    double temperature;
    int64_t work; /* steps to spend */
    uint64_t seed;
};

/* Sets all of a schedule but the work to what has been found good for covers with n_hops hops and
 * the prices' goal. */
void cpl_cover_schedule_for(const struct cpl_cover_price *price, int32_t n_hops,
                            struct cpl_cover_schedule *schedule);

/* Improves a cover on which every message has a way, until the work is spent; price must be new: it
 * is loaded with the cover's edges first. The cover left behind
 * has a way for every message and no edge that no message needs. Returns CPL_OK, CPL_ERR_NOMEM (the
 * cover is then useless). Deterministic. */
enum cpl_status cpl_cover_search(struct cpl_cover *cover, struct cpl_cover_price *price,
                                 const struct cpl_cover_schedule *schedule);

#endif
