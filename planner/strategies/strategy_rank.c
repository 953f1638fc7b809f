/* Ranking the strategies, and choosing by the model: auto (strategy_rank.h, strategy.h). */
#include "planner/strategies/strategy_rank.h"

#include <string.h>

/* Nominal cost of planning by one choice, per message. */
#define PLAN_MS_PER_MESSAGE 1e-4

/* Planned whatever the budget. */
#define FIRST_CANDIDATES 6

/* Of the budget: what ranking may take. Searching takes the rest. */
#define RANKING_SHARE 0.5

/* Inserts a choice behind all that are not slower. */
static void insert(struct cpl_ranking *ranking, const struct cpl_ranked_choice *ranked)
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
        insert(ranking, &ranked);
    if (fastest && best) {
        cpl_plan_free(best);
        *best = plan;
    } else {
        cpl_plan_free(&plan);
    }
    return status;
}

/* Deals the choices that do not search: the first of every strategy, the second of every one, and
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
            if (place[k] == round && !list->choice[k].strategy->searches)
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
    cpl_strategy_candidates(input, &all);
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

/* Replaces *plan by balance's when that is faster. */
static enum cpl_status try_balance(const struct cpl_strategy_input *input,
                                   struct cpl_ranking *ranking, struct cpl_strategy_choice *choice,
                                   struct cpl_plan *plan, struct cpl_error *error)
{
    struct cpl_routes routes;
    struct cpl_plan found;
    double us;
    enum cpl_status status = cpl_balance_route(input, ranking, &routes, error);
    if (status)
        return status;
    status = cpl_plan_build(input->pattern, &routes, &found, error);
    cpl_routes_free(&routes);
    if (status)
        return status;
    status = cpl_plan_chain_cost(&found, input->machine, input->unit_bytes, &us, error);
    if (!status && us < ranking->ranked[0].us) {
        cpl_plan_free(plan);
        *plan = found;
        status = cpl_strategy_parse("balance", choice, error);
        if (!status && ranking->n < CPL_MAX_CANDIDATES)
            insert(ranking, &(struct cpl_ranked_choice){*choice, plan->n_waves, us});
        return status;
    }
    cpl_plan_free(&found);
    return status;
}

static enum cpl_status plan_fastest(const struct cpl_strategy_input *input,
                                    struct cpl_ranking *ranking, struct cpl_strategy_choice *choice,
                                    struct cpl_plan *plan, struct cpl_error *error)
{
    struct cpl_plan best;
    enum cpl_status status = cpl_strategy_rank(input, ranking, &best, error);
    if (status)
        return status;
    struct cpl_strategy_choice chosen = ranking->ranked[0].choice;
    status = try_balance(input, ranking, &chosen, &best, error);
    if (status) {
        cpl_plan_free(&best);
        return status;
    }
    *choice = chosen;
    *plan = best;
    return CPL_OK;
}

enum cpl_status cpl_strategy_plan_auto(const struct cpl_strategy_input *input,
                                       struct cpl_strategy_choice *choice, struct cpl_plan *plan,
                                       struct cpl_error *error)
{
    struct cpl_ranking ranking;
    return plan_fastest(input, &ranking, choice, plan, error);
}

static bool is_among(const struct cpl_plan *plan, int32_t n, int32_t n_waves)
{
    for (int32_t k = 0; k < n; k++)
        if (plan[k].n_waves == n_waves)
            return true;
    return false;
}

enum cpl_status cpl_strategy_plan_several(const struct cpl_strategy_input *input, int32_t most,
                                          struct cpl_strategy_choice *choice, struct cpl_plan *plan,
                                          int32_t *n, struct cpl_error *error)
{
    struct cpl_ranking ranking;
    return cpl_strategy_plan_ranked(input, most, choice, plan, n, &ranking, error);
}

enum cpl_status cpl_strategy_plan_ranked(const struct cpl_strategy_input *input, int32_t most,
                                         struct cpl_strategy_choice *choice, struct cpl_plan *plan,
                                         int32_t *n, struct cpl_ranking *ranking,
                                         struct cpl_error *error)
{
    *n = 0;
    enum cpl_status status = plan_fastest(input, ranking, choice, plan, error);
    if (status)
        return status;
    *n = 1;
    for (size_t k = 0; k < ranking->n && *n < most && !status; k++) {
        const struct cpl_ranked_choice *ranked = &ranking->ranked[k];
        if (ranked->choice.strategy == &cpl_strategy_direct)
            break;
        if (is_among(plan, *n, ranked->n_waves))
            continue;
        choice[*n] = ranked->choice;
        status = cpl_strategy_plan(input, &ranked->choice, &plan[*n], error);
        *n += !status;
    }
    while (status && *n > 0)
        cpl_plan_free(&plan[--*n]);
    return status;
}
