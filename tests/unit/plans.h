/* What tests of plans have in common: making patterns and plans that must succeed, and comparing a
 * plan with its edges written by hand. */
#ifndef CARPOOL_TESTS_PLANS_H
#define CARPOOL_TESTS_PLANS_H

#include "planner/pattern.h"
#include "planner/plan.h"

#include <stdint.h>

#define N_OF(array) ((int64_t)(sizeof(array) / sizeof *(array)))

/* Entries with and without a payload class. */
#define MESSAGE(src, dst, volume)                                                                  \
    {                                                                                              \
        src, dst, volume, -1                                                                       \
    }
#define CLASSED(src, dst, volume, its_class)                                                       \
    {                                                                                              \
        src, dst, volume, its_class                                                                \
    }

/* The pattern of the entries. The caller frees it. */
struct cpl_pattern make_pattern(int32_t n_ranks, const struct cpl_pattern_entry *entries,
                                int64_t n_entries);

/* The plan of the stops (n_waves a message, struct cpl_routes), which passed cpl_plan_check. The
 * caller frees it. */
struct cpl_plan make_plan(const struct cpl_pattern *pattern, int32_t n_waves, const int32_t *stops);

/* A plan that sends every message over random ranks. The caller frees it. */
struct cpl_plan make_random_plan(const struct cpl_pattern *pattern, int32_t n_waves, uint64_t seed);

/* The text of cpl_plan_dump. The caller frees it. */
char *dump_text(const struct cpl_plan *plan);

/* Compares the plan's edges as cpl_plan_dump writes them, without its three lines of header. */
void assert_edges(const struct cpl_plan *plan, const char *expected);

#endif
