/* The table of strategies, their names, and planning by name (strategy.h). */
#include "strategy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cpl_strategy table[] = {
    {.name = "direct",
     .doc = "every message travels alone, as MPI would send it",
     .route = cpl_direct_route},
    {.name = "share",
     .parameter = "PHASES",
     .parameter_default = 2,
     .parameter_min = 1,
     .parameter_max = 2,
     .doc =
         "the busiest rank shares its messages with a rank of common destinations (phase 1), then "
         "with the least busy one (phase 2); Duymus 2021",
     .route = cpl_share_route},
    {.name = "vpt",
     .parameter = "DIMENSIONS",
     .parameter_min = 1,
     .parameter_max = 24,
     .doc = "store-and-forward on a virtual process topology of 1 to log2(ranks) dimensions; "
            "Selvitopi "
            "and Aykanat 2019",
     .route = cpl_vpt_route},
};

#define N_STRATEGIES (sizeof table / sizeof table[0])

const struct cpl_strategy *cpl_strategy_table(size_t *n)
{
    *n = N_STRATEGIES;
    return table;
}

/* "direct, share[:1-2], vpt:1-24, auto" */
static void list_names(char *text, size_t size)
{
    size_t used = 0;
    for (size_t k = 0; k < N_STRATEGIES && used < size; k++) {
        const struct cpl_strategy *s = &table[k];
        int n = snprintf(text + used, size - used, "%s", s->name);
        used += n > 0 ? (size_t)n : 0;
        if (s->parameter && used < size) {
            n = snprintf(text + used, size - used, s->parameter_default ? "[:%d-%d]" : ":%d-%d",
                         s->parameter_min, s->parameter_max);
            used += n > 0 ? (size_t)n : 0;
        }
        if (used < size) {
            n = snprintf(text + used, size - used, ", ");
            used += n > 0 ? (size_t)n : 0;
        }
    }
    if (used < size)
        snprintf(text + used, size - used, "auto");
}

static enum cpl_status parse_parameter(const struct cpl_strategy *strategy, const char *text,
                                       int32_t *parameter, struct cpl_error *error)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || *end || errno || value < strategy->parameter_min ||
        value > strategy->parameter_max)
        return cpl_fail(error, CPL_ERR_ARG,
                        "strategy %s takes %s from %d to %d after ':', not '%s'", strategy->name,
                        strategy->parameter, strategy->parameter_min, strategy->parameter_max,
                        text);
    *parameter = (int32_t)value;
    return CPL_OK;
}

enum cpl_status cpl_strategy_parse(const char *text, struct cpl_strategy_choice *choice,
                                   struct cpl_error *error)
{
    if (strcmp(text, "auto") == 0) {
        *choice = (struct cpl_strategy_choice){NULL, 0};
        return CPL_OK;
    }
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    for (size_t k = 0; k < N_STRATEGIES; k++) {
        const struct cpl_strategy *s = &table[k];
        if (strlen(s->name) != length || strncmp(s->name, text, length) != 0)
            continue;
        int32_t parameter = s->parameter_default;
        if (colon && !s->parameter)
            return cpl_fail(error, CPL_ERR_ARG, "strategy %s takes no parameter", s->name);
        if (!colon && s->parameter && !parameter)
            return cpl_fail(error, CPL_ERR_ARG, "strategy %s needs its %s, as in %s:2", s->name,
                            s->parameter, s->name);
        enum cpl_status status = colon ? parse_parameter(s, colon + 1, &parameter, error) : CPL_OK;
        if (!status)
            *choice = (struct cpl_strategy_choice){s, parameter};
        return status;
    }
    char names[160];
    list_names(names, sizeof names);
    return cpl_fail(error, CPL_ERR_ARG, "no strategy '%s'; there are %s", text, names);
}

void cpl_strategy_format(const struct cpl_strategy_choice *choice, char text[CPL_STRATEGY_TEXT])
{
    const struct cpl_strategy *s = choice->strategy;
    if (!s)
        snprintf(text, CPL_STRATEGY_TEXT, "auto");
    else if (!s->parameter || choice->parameter == s->parameter_default)
        snprintf(text, CPL_STRATEGY_TEXT, "%s", s->name);
    else
        snprintf(text, CPL_STRATEGY_TEXT, "%s:%d", s->name, choice->parameter);
}

/* The parameters worth trying on n_ranks ranks: dimensions from 2 (one is direct) to log2, phases
 * as they are. */
static void candidate_range(const struct cpl_strategy *s, int32_t n_ranks, int32_t *low,
                            int32_t *high)
{
    *low = s->parameter_min;
    *high = s->parameter_max;
    if (s->route != cpl_vpt_route)
        return;
    *low = 2;
    *high = 0;
    while (*high < s->parameter_max && (INT64_C(2) << *high) <= n_ranks)
        ++*high;
}

size_t cpl_strategy_candidates(int32_t n_ranks, struct cpl_strategy_choice *choices, size_t max)
{
    size_t n = 0;
    for (size_t k = 0; k < N_STRATEGIES; k++) {
        int32_t low, high;
        candidate_range(&table[k], n_ranks, &low, &high);
        for (int32_t parameter = low; parameter <= high && n < max; parameter++)
            choices[n++] = (struct cpl_strategy_choice){&table[k], parameter};
    }
    return n;
}

enum cpl_status cpl_strategy_plan(const struct cpl_strategy_input *input,
                                  const struct cpl_strategy_choice *choice, struct cpl_plan *plan,
                                  struct cpl_error *error)
{
    struct cpl_routes routes;
    enum cpl_status status = choice->strategy->route(input, choice->parameter, &routes, error);
    if (status)
        return status;
    status = cpl_plan_build(input->pattern, &routes, plan, error);
    cpl_routes_free(&routes);
    return status;
}

enum cpl_status cpl_strategy_plan_auto(const struct cpl_strategy_input *input,
                                       struct cpl_strategy_choice *choice, struct cpl_plan *plan,
                                       struct cpl_error *error)
{
    struct cpl_strategy_choice candidates[CPL_MAX_CANDIDATES];
    size_t n = cpl_strategy_candidates(input->pattern->n_ranks, candidates, CPL_MAX_CANDIDATES);
    struct cpl_plan best = {.arena = CPL_ARENA_EMPTY};
    double best_us = 0;
    bool found = false;
    enum cpl_status status = CPL_OK;
    for (size_t k = 0; k < n && !status; k++) {
        struct cpl_plan trial;
        double us;
        status = cpl_strategy_plan(input, &candidates[k], &trial, error);
        if (status == CPL_ERR_UNFIT) {
            status = CPL_OK;
            continue;
        }
        if (status)
            break;
        status = cpl_plan_cost(&trial, input->machine, input->unit_bytes, &us, error);
        if (!status && (!found || us < best_us)) {
            cpl_plan_free(&best);
            best = trial;
            best_us = us;
            *choice = candidates[k];
            found = true;
        } else {
            cpl_plan_free(&trial);
        }
    }
    if (status) {
        cpl_plan_free(&best);
        return status;
    }
    *plan = best;
    return CPL_OK;
}
