/* Ranking the strategies that do not search (strategy_rank.h). */
#include "planner/strategies/strategy_rank.h"

#include "planner/strategies/rows.h"

#include <string.h>

/* Nominal cost of planning by one choice, per message. */
#define PLAN_MS_PER_MESSAGE 1e-4

/* Planned whatever the budget. */
#define FIRST_CANDIDATES 6

/* Of the budget: what ranking may take. Searching takes the rest. */
#define RANKING_SHARE 0.5

void cpl_ranking_insert(struct cpl_ranking *ranking, const struct cpl_ranked_choice *ranked)
{
    size_t k = ranking->n++;
    for (; k > 0 && ranking->ranked[k - 1].us > ranked->us; k--)
        ranking->ranked[k] = ranking->ranked[k - 1];
    ranking->ranked[k] = *ranked;
}

/* Plans by one choice and keeps the plan if it is the fastest so far. */
static enum cpl_status try_choice(const struct cpl_strategy_input *input,
                                  const struct cpl_strategy_choice *choice,
                                  struct cpl_ranking *ranking, struct cpl_plan *best,
                                  struct cpl_error *error)
{
    struct cpl_routes routes;
    struct cpl_plan plan;
    struct cpl_ranked_choice ranked = {.choice = *choice};
    enum cpl_status status = cpl_strategy_route(input, choice, &routes, error);
    if (status == CPL_ERR_UNFIT)
        return CPL_OK;
    if (status)
        return status;
    ranked.n_waves = routes.n_waves;
    status = cpl_plan_build(input->pattern, &routes, &plan, error);
    cpl_routes_free(&routes);
    if (status)
        return status;
    status = cpl_plan_chain_cost(&plan, input->machine, input->unit_bytes, &ranked.us, error);
    bool fastest = !status && (ranking->n == 0 || ranked.us < ranking->ranked[0].us);
    if (!status)
        cpl_ranking_insert(ranking, &ranked);
    if (fastest && best) {
        cpl_plan_free(best);
        *best = plan;
    } else {
        cpl_plan_free(&plan);
    }
    return status;
}

#define ROUTES(name) &cpl_strategy_##name,
#define SEARCHES(name)
static const struct cpl_strategy *const rows[] = {
#include "planner/strategies/strategies.def"
};

/* Every candidate that does not search. */
static void list_candidates(const struct cpl_strategy_input *input, struct cpl_strategy_list *list)
{
    list->n = 0;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (rows[k]->candidates)
            rows[k]->candidates(rows[k], input, list);
}

int32_t cpl_strategy_rank_most_hops(const struct cpl_strategy_input *input)
{
    struct cpl_strategy_list list;
    int32_t most = 0;
    list_candidates(input, &list);
    for (size_t k = 0; k < list.n; k++) {
        int32_t hops = list.choice[k].strategy->most_hops(input, &list.choice[k].numbers);
        most = hops > most ? hops : most;
    }
    return most;
}

/* Deals the choices: the first of every strategy, the second of every one, and
 * so on, so that few of them are of all kinds. */
static void deal(const struct cpl_strategy_list *list, struct cpl_strategy_list *dealt)
{
    size_t place[CPL_MAX_CANDIDATES], last = 0;
    for (size_t k = 0; k < list->n; k++) {
        bool same = k > 0 && list->choice[k].strategy == list->choice[k - 1].strategy;
        place[k] = same ? place[k - 1] + 1 : 0;
        last = place[k] > last ? place[k] : last;
    }
    dealt->n = 0;
    for (size_t round = 0; round <= last; round++)
        for (size_t k = 0; k < list->n; k++)
            if (place[k] == round)
                dealt->choice[dealt->n++] = list->choice[k];
}

enum cpl_status cpl_strategy_rank(const struct cpl_strategy_input *input,
                                  struct cpl_ranking *ranking, struct cpl_plan *best,
                                  struct cpl_error *error)
{
    struct cpl_strategy_list all, list;
    struct cpl_plan fastest = {.arena = CPL_ARENA_EMPTY};
    enum cpl_status status = CPL_OK;
    double each_ms = (double)input->pattern->n_messages * PLAN_MS_PER_MESSAGE;
    *ranking = (struct cpl_ranking){0};
    list_candidates(input, &all);
    deal(&all, &list);
    for (size_t k = 0; k < list.n && !status; k++) {
        if (k >= FIRST_CANDIDATES && ranking->ms + each_ms > RANKING_SHARE * input->budget_ms)
            break;
        status = try_choice(input, &list.choice[k], ranking, best ? &fastest : NULL, error);
        ranking->ms += each_ms;
    }
    if (status)
        cpl_plan_free(&fastest);
    else if (best)
        *best = fastest;
    return status;
}
