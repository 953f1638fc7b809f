/* What strategies share, and planning by a choice of one (strategy.h). */
#include "planner/plan/plan_internal.h"
#include "planner/strategies/rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void cpl_strategy_add_itself(const struct cpl_strategy *strategy,
                             const struct cpl_strategy_input *input, struct cpl_strategy_list *list)
{
    const struct cpl_strategy_numbers none = {0};
    (void)input;
    cpl_strategy_add(list, strategy, &none);
}

enum cpl_status cpl_strategy_parse_number(const struct cpl_strategy *strategy, const char *text,
                                          int32_t low, int32_t high, int32_t *number,
                                          struct cpl_error *error)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || *end || errno || value < low || value > high)
        return cpl_fail(error, CPL_ERR_ARG,
                        "strategy %s takes a whole number from %d to %d after ':', not '%s'",
                        strategy->name, low, high, text);
    *number = (int32_t)value;
    return CPL_OK;
}

void cpl_strategy_format(const struct cpl_strategy_choice *choice, char text[CPL_STRATEGY_TEXT])
{
    char parameter[CPL_STRATEGY_TEXT] = "";
    const struct cpl_strategy *s = choice->strategy;
    if (s && s->format)
        s->format(&choice->numbers, parameter);
    snprintf(text, CPL_STRATEGY_TEXT, "%s%s%.*s", s ? s->name : "auto", parameter[0] ? ":" : "",
             CPL_STRATEGY_TEXT - 12, parameter);
}

void cpl_strategy_add(struct cpl_strategy_list *list, const struct cpl_strategy *strategy,
                      const struct cpl_strategy_numbers *numbers)
{
    if (list->n < CPL_MAX_CANDIDATES)
        list->choice[list->n++] = (struct cpl_strategy_choice){strategy, *numbers};
}

enum cpl_status cpl_strategy_time_below(const struct cpl_strategy_input *input,
                                        const struct cpl_routes *routes, double limit_us,
                                        double *us, struct cpl_error *error)
{
    struct cpl_plan plan;
    enum cpl_status status = cpl_plan_build_unmarked(input->pattern, routes, &plan, error);
    if (status)
        return status;
    int64_t n_events;
    status = cpl_plan_chain_below(&plan, input->machine, input->unit_bytes, limit_us, us, &n_events,
                                  error);
    cpl_plan_free(&plan);
    return status;
}

enum cpl_status cpl_strategy_time(const struct cpl_strategy_input *input,
                                  const struct cpl_routes *routes, double *us,
                                  struct cpl_error *error)
{
    return cpl_strategy_time_below(input, routes, INFINITY, us, error);
}

enum cpl_status cpl_strategy_router(const struct cpl_strategy_input *input,
                                    const struct cpl_strategy_choice *choice,
                                    struct cpl_router *router, struct cpl_error *error)
{
    if (choice->strategy->router)
        return choice->strategy->router(input, &choice->numbers, router, error);
    return cpl_fail(error, CPL_ERR_UNFIT, "strategy %s looks at all messages",
                    choice->strategy->name);
}

enum cpl_status cpl_strategy_route(const struct cpl_strategy_input *input,
                                   const struct cpl_strategy_choice *choice,
                                   struct cpl_routes *routes, struct cpl_error *error)
{
    struct cpl_strategy_input undivided = *input;
    struct cpl_routes of_pairs;
    if (!input->pattern->pairs || choice->strategy->searches)
        return choice->strategy->route(input, &choice->numbers, routes, error);
    undivided.pattern = input->pattern->pairs;
    enum cpl_status status =
        choice->strategy->route(&undivided, &choice->numbers, &of_pairs, error);
    if (status)
        return status;
    status = cpl_routes_of_parts(input->pattern, &of_pairs, routes, error);
    cpl_routes_free(&of_pairs);
    return status;
}

enum cpl_status cpl_strategy_plan(const struct cpl_strategy_input *input,
                                  const struct cpl_strategy_choice *choice, struct cpl_plan *plan,
                                  struct cpl_error *error)
{
    struct cpl_routes routes;
    enum cpl_status status = cpl_strategy_route(input, choice, &routes, error);
    if (status)
        return status;
    status = cpl_plan_build(input->pattern, &routes, plan, error);
    cpl_routes_free(&routes);
    return status;
}
