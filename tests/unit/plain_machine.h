/* A machine whose costs are whole numbers and halves of microseconds, and small plans, for modelled
 * times that are computed by hand. Functions fail the test on errors. */
#ifndef CARPOOL_TESTS_PLAIN_MACHINE_H
#define CARPOOL_TESTS_PLAIN_MACHINE_H

#include "planner/machine.h"
#include "planner/pattern.h"
#include "planner/plan.h"

/* Microseconds: plain_machine.c says which. */
extern const struct cpl_costs plain_costs;

/* Consecutive ranks on each node, plain_costs; the caller frees it. */
struct cpl_machine make_machine(int32_t n_ranks, int32_t ranks_per_node);

/* The plan's time by cpl_plan_cost with units of one byte is us, but for rounding. */
void check_cost(struct cpl_plan *plan, struct cpl_machine *machine, double us);

/* The direct plan of the entries; the caller frees it. */
struct cpl_plan plan_direct(int32_t n_ranks, const struct cpl_pattern_entry *entries,
                            int64_t n_entries);

/* 0 sends 3 units to 1 and, over 2, 5 units to 2; 2 sends 7 units to 1. The caller frees it. */
struct cpl_plan plan_shared(void);

#endif
