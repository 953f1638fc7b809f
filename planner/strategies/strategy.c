/* The table of strategies, and their names (strategy.h). strategy_choice.c has what its rows use.
 */
#include "planner/strategies/rows.h"

#include <stdio.h>
#include <string.h>

#define ROUTES(name)   &cpl_strategy_##name,
#define SEARCHES(name) &cpl_strategy_##name,
static const struct cpl_strategy *const table[] = {
#include "planner/strategies/strategies.def"
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

static enum cpl_status parse_numbers(const struct cpl_strategy *strategy, const char *text,
                                     struct cpl_strategy_numbers *numbers, struct cpl_error *error)
{
    if (strategy->parse)
        return strategy->parse(strategy, text, numbers, error);
    return text ? cpl_fail(error, CPL_ERR_ARG, "strategy %s takes no parameter", strategy->name)
                : CPL_OK;
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
            parse_numbers(table[k], colon ? colon + 1 : NULL, &parsed.numbers, error);
        if (!status)
            *choice = parsed;
        return status;
    }
    char names[320];
    list_names(names, sizeof names);
    return cpl_fail(error, CPL_ERR_ARG, "no strategy '%s'; there are %s", text, names);
}

void cpl_strategy_candidates(const struct cpl_strategy_input *input, struct cpl_strategy_list *list)
{
    list->n = 0;
    for (size_t k = 0; k < N_STRATEGIES; k++)
        if (table[k]->candidates)
            table[k]->candidates(table[k], input, list);
}
