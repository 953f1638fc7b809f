/* Strategies ranked by what their plans of a pattern take: what auto chooses from and what balance
 * starts from. */
#ifndef CARPOOL_STRATEGY_RANK_H
#define CARPOOL_STRATEGY_RANK_H

#include "planner/plan.h"
#include "planner/strategy.h"

#include <stdbool.h>

struct cpl_ranked_choice {
    struct cpl_strategy_choice choice;
    int32_t n_waves; /* of its routes */
    double us;       /* modelled time of its plan */
};

struct cpl_ranking {
    double ms;                                           /* of the budget, nominally spent */
    size_t n;                                            /* >= 1 */
    struct cpl_ranked_choice ranked[CPL_MAX_CANDIDATES]; /* fastest first */
};

/* Times the best known modelled time: what the start of a search may take. */
#define CPL_WORTH_A_START 1.25

/* Of the budget: what ranking may take where a search follows. */
#define CPL_RANKING_SHARE 0.5

/* Prices every candidate whose routes are a router (router.h), and as many of the others as the
 * budget allows; those that apply to few patterns (strategy.h, applies) in any case. The ranking
 * then has the best of all of them, direct, and of each number of waves the fastest, if that is
 * faster than direct (where all ranks share a node that has lanes: faster than MPI) or worth a
 * start; and it may have others. Where the budget is not enough for all routers, which some 15,000
 * messages never need, the ranking has those that are priced of the best by a faster, rougher model
 * (router_cost.h); one at least, whose time is by that model where the budget is not enough for
 * more. `searches`: a search follows (cpl_balance_begins), which needs its part of the budget and
 * starts. *best (unless NULL) is the fastest plan, which the caller frees. Returns CPL_OK,
 * CPL_ERR_NOMEM. */
enum cpl_status cpl_strategy_rank(const struct cpl_strategy_input *input, bool searches,
                                  struct cpl_ranking *ranking, struct cpl_plan *best,
                                  struct cpl_error *error);

/* The most hops that a plan of these candidates can have. */
int32_t cpl_strategy_rank_most_hops(const struct cpl_strategy_input *input);

/* Inserts a choice behind all that are not slower; there must be room. */
void cpl_ranking_insert(struct cpl_ranking *ranking, const struct cpl_ranked_choice *ranked);

/* Whether the budget is enough for a search after ranking. */
bool cpl_balance_begins(const struct cpl_strategy_input *input);

/* Searches for a plan that is faster than all of a ranking of the same input (strategy_balance.c).
 * *us is its modelled time, and the caller frees *routes; INFINITY, and no routes: none was found.
 * Returns CPL_OK, CPL_ERR_NOMEM. */
enum cpl_status cpl_balance_search(const struct cpl_strategy_input *input,
                                   const struct cpl_ranking *ranking, struct cpl_routes *routes,
                                   double *us, struct cpl_error *error);

#endif
