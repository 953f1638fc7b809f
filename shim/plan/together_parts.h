/* Planning together (plan_together.h): the full search, in parts. Where one rank would take too
 * long, ranks of neighbouring nodes hand the messages that pass through them to one of them; each
 * of these searches for better ways inside its part (planner/strategies/part_search.h), all at the
 * same time. A part's rank that searches keeps what passes through some 512 ranks, however many
 * there are; the others keep what they did. */
#ifndef CARPOOL_TOGETHER_PARTS_H
#define CARPOOL_TOGETHER_PARTS_H

#include "shim/plan/together_census.h"

/* Improves a candidate whose messages have been told, for budget_ms nominal milliseconds: if that
 * gains something, its walk has detours, `passing`, `edges` and `sum` are what they are by it,
 * `choice` is balance. Returns what the slowest part takes then, of what it took, by events, alike
 * on all ranks; 1: nothing has changed, as when a rank has no memory. Collective. */
double cpl_together_improve(struct cpl_together *p, struct cpl_together_candidate *c,
                            double budget_ms);

#endif
