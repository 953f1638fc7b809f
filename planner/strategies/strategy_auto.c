/* Choosing by the model: auto (strategy.h, strategy_rank.h). */
#include "planner/strategies/strategy_rank.h"

#include <math.h>
#include <stdlib.h>

/* Replaces *plan by balance's when that is faster. */
static enum cpl_status try_balance(const struct cpl_strategy_input *input,
                                   struct cpl_ranking *ranking, struct cpl_strategy_choice *choice,
                                   struct cpl_plan *plan, struct cpl_error *error)
{
    struct cpl_routes routes;
    struct cpl_plan found;
    double us;
    enum cpl_status status = cpl_balance_search(input, ranking, &routes, &us, error);
    if (status || !isfinite(us))
        return status;
    status = cpl_plan_build(input->pattern, &routes, &found, error);
    cpl_routes_free(&routes);
    if (status)
        return status;
    cpl_plan_free(plan);
    *plan = found;
    status = cpl_strategy_parse("balance", choice, error);
    if (!status && ranking->n < CPL_MAX_CANDIDATES)
        cpl_ranking_insert(ranking, &(struct cpl_ranked_choice){*choice, plan->n_waves, us});
    return status;
}

static enum cpl_status plan_fastest(const struct cpl_strategy_input *input,
                                    struct cpl_ranking *ranking, struct cpl_strategy_choice *choice,
                                    struct cpl_plan *plan, struct cpl_error *error)
{
    struct cpl_plan best;
    enum cpl_status status =
        cpl_strategy_rank(input, cpl_balance_begins(input), ranking, &best, error);
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
    struct cpl_ranking *ranking = malloc(sizeof *ranking);
    enum cpl_status status = ranking ? plan_fastest(input, ranking, choice, plan, error)
                                     : cpl_fail_memory(error, "the order of strategies");
    free(ranking);
    return status;
}

static bool is_among(const struct cpl_plan *plan, int32_t n, int32_t n_waves)
{
    for (int32_t k = 0; k < n; k++)
        if (plan[k].n_waves == n_waves)
            return true;
    return false;
}

/* Whether one more of `most` plans may be this one: on a node with lanes the last one is direct,
 * unless that is among them. */
static bool has_room(const struct cpl_strategy_input *input, const struct cpl_ranked_choice *ranked,
                     const struct cpl_plan *plan, int32_t n, int32_t most)
{
    bool wants_direct =
        input->machine->lanes && input->machine->n_nodes == 1 && !is_among(plan, n, 1);
    return !wants_direct || n < most - 1 || ranked->choice.strategy == &cpl_strategy_direct;
}

/* cpl_strategy_plan_several with room for the ranking, which holds it then. */
static enum cpl_status plan_several(const struct cpl_strategy_input *input, int32_t most,
                                    struct cpl_strategy_choice *choice, struct cpl_plan *plan,
                                    int32_t *n, struct cpl_ranking *ranking,
                                    struct cpl_error *error)
{
    struct cpl_metrics mpi;
    *n = 0;
    enum cpl_status status = plan_fastest(input, ranking, choice, plan, error);
    if (status)
        return status;
    *n = 1;
    status = cpl_strategy_measure_mpi(input, &mpi, error);
    for (size_t k = 0; k < ranking->n && *n < most && !status; k++) {
        const struct cpl_ranked_choice *ranked = &ranking->ranked[k];
        if (ranked->us >= mpi.modelled_us)
            break;
        if (is_among(plan, *n, ranked->n_waves) || !has_room(input, ranked, plan, *n, most))
            continue;
        choice[*n] = ranked->choice;
        status = cpl_strategy_plan(input, &ranked->choice, &plan[*n], error);
        *n += !status;
    }
    while (status && *n > 0)
        cpl_plan_free(&plan[--*n]);
    return status;
}

enum cpl_status cpl_strategy_plan_several(const struct cpl_strategy_input *input, int32_t most,
                                          struct cpl_strategy_choice *choice, struct cpl_plan *plan,
                                          int32_t *n, struct cpl_error *error)
{
    struct cpl_ranking *ranking = malloc(sizeof *ranking);
    enum cpl_status status = ranking ? plan_several(input, most, choice, plan, n, ranking, error)
                                     : cpl_fail_memory(error, "the order of strategies");
    free(ranking);
    return status;
}
