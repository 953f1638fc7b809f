/* The table of strategies, their names, and planning by name (strategy.h). */
#include "planner/strategy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cpl_strategy *const table[] = {
    &cpl_strategy_direct, &cpl_strategy_share,     &cpl_strategy_vpt,     &cpl_strategy_grid,
    &cpl_strategy_node,   &cpl_strategy_node_grid, &cpl_strategy_balance,
};

#define N_STRATEGIES (sizeof table / sizeof table[0])

const struct cpl_strategy *const *cpl_strategy_table(size_t *n)
{
    *n = N_STRATEGIES;
    return table;
}

/* "direct, share[:1|2], vpt:DIMENSIONS, auto" */
static void list_names(char *text, size_t size)
{
    size_t used = 0;
    for (size_t k = 0; k < N_STRATEGIES && used < size; k++) {
        const struct cpl_strategy *s = table[k];
        int n =
            snprintf(text + used, size - used, "%s%s, ", s->name, s->parameter ? s->parameter : "");
        used += n > 0 ? (size_t)n : 0;
    }
    if (used < size)
        snprintf(text + used, size - used, "auto");
}

enum cpl_status cpl_strategy_parse_none(const struct cpl_strategy *strategy, const char *text,
                                        struct cpl_strategy_numbers *numbers,
                                        struct cpl_error *error)
{
    if (text)
        return cpl_fail(error, CPL_ERR_ARG, "strategy %s takes no parameter", strategy->name);
    numbers->n = 0;
    return CPL_OK;
}

void cpl_strategy_format_none(const struct cpl_strategy_numbers *numbers,
                              char text[CPL_STRATEGY_TEXT])
{
    (void)numbers;
    text[0] = 0;
}

void cpl_strategy_candidate_none(const struct cpl_strategy *strategy,
                                 const struct cpl_strategy_input *input,
                                 struct cpl_strategy_list *list)
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

enum cpl_status cpl_strategy_parse(const char *text, struct cpl_strategy_choice *choice,
                                   struct cpl_error *error)
{
    if (strcmp(text, "auto") == 0) {
        *choice = (struct cpl_strategy_choice){.strategy = NULL};
        return CPL_OK;
    }
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    for (size_t k = 0; k < N_STRATEGIES; k++) {
        struct cpl_strategy_choice parsed = {.strategy = table[k]};
        if (strlen(table[k]->name) != length || strncmp(table[k]->name, text, length) != 0)
            continue;
        enum cpl_status status =
            table[k]->parse(table[k], colon ? colon + 1 : NULL, &parsed.numbers, error);
        if (!status)
            *choice = parsed;
        return status;
    }
    char names[320];
    list_names(names, sizeof names);
    return cpl_fail(error, CPL_ERR_ARG, "no strategy '%s'; there are %s", text, names);
}

void cpl_strategy_format(const struct cpl_strategy_choice *choice, char text[CPL_STRATEGY_TEXT])
{
    char parameter[CPL_STRATEGY_TEXT] = "";
    const struct cpl_strategy *s = choice->strategy;
    if (s)
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

void cpl_strategy_candidates(const struct cpl_strategy_input *input, struct cpl_strategy_list *list)
{
    list->n = 0;
    for (size_t k = 0; k < N_STRATEGIES; k++)
        table[k]->candidates(table[k], input, list);
}

enum cpl_status cpl_strategy_time(const struct cpl_strategy_input *input,
                                  const struct cpl_routes *routes, double *us,
                                  struct cpl_error *error)
{
    struct cpl_plan plan;
    enum cpl_status status = cpl_plan_build(input->pattern, routes, &plan, error);
    if (status)
        return status;
    status = cpl_plan_chain_cost(&plan, input->machine, input->unit_bytes, us, error);
    cpl_plan_free(&plan);
    return status;
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
