/* carpool plan: what it found, and showing that. command_plan.c plans, plan_tell.c shows. */
#ifndef CARPOOL_CLI_PLAN_H
#define CARPOOL_CLI_PLAN_H

#include "planner/machine.h"
#include "planner/pattern.h"
#include "planner/plan.h"
#include "planner/strategy.h"

#include <stdbool.h>
#include <stddef.h>

enum cpl_plan_format { CPL_PLAN_TABLE, CPL_PLAN_TSV, CPL_PLAN_JSON };

/* A row. */
struct cpl_plan_result {
    char name[CPL_STRATEGY_TEXT];   /* as asked for */
    char chosen[CPL_STRATEGY_TEXT]; /* what auto chose, else the same */
    struct cpl_metrics metrics;
    double plan_ms, cpu_ms; /* time to plan: by the clock, of the processor */
};

/* What no plan can beat. */
struct cpl_plan_bounds {
    int64_t messages; /* cpl_bound_two_waves */
    double us;        /* cpl_bound_time */
};

/* All that is to be shown of a pattern. */
struct cpl_plan_results {
    const char *file;
    const struct cpl_pattern *pattern;
    const struct cpl_machine *machine;
    double unit_bytes;
    struct cpl_plan_bounds bounds;
    size_t n;
    struct cpl_plan_result row[2 * CPL_MAX_CANDIDATES];
};

/* Shows the rows on standard output: the table in the order of modelled times, the others in the
 * order asked for. wide: the table has all columns. Returns false when they cannot be written. */
bool cpl_plan_tell(const struct cpl_plan_results *results, enum cpl_plan_format format, bool wide);

#endif
