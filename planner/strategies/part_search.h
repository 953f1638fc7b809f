/* Improving a part of a plan that ranks make together (plan/local_plan.h): the messages whose ways
 * lie inside some of the ranks, nodes side by side, look for better ways inside; all others keep
 * theirs. What the searches of different ranks find therefore fits together, and each looks at a
 * part only. Our own.
 *
 * Order of calls: cpl_part_search, use, cpl_part_found_free. */
#ifndef CARPOOL_PART_SEARCH_H
#define CARPOOL_PART_SEARCH_H

#include "planner/arena.h"
#include "planner/machine.h"
#include "planner/plan/detours.h"
#include "planner/plan/local_plan.h"
#include "planner/plan/walk.h"
#include "planner/status.h"

#include <stdint.h>

struct cpl_part {
    const struct cpl_walk *walk;       /* the plan's, of CPL_DETOUR_WAVES waves at most */
    const struct cpl_machine *machine; /* of all ranks, without distances */
    int32_t n_inside;
    const int32_t *inside; /* the part's ranks, ascending */
};

/* The waves of the walk with the part's detours. */
int32_t cpl_part_waves(const struct cpl_walk *walk);

struct cpl_part_found {
    int64_t n;
    struct cpl_detour *detours; /* of messages that have another way now, each once */
    double before_us, us;       /* modelled times of the part, with what passes through it */
    struct cpl_arena arena;     /* owns the detours */
};

/* Searches for budget_ms nominal milliseconds. passing: all messages on whose ways a rank of the
 * part is, each once; volumes in units of unit_bytes bytes. Returns CPL_OK (the caller frees
 * *found), CPL_ERR_NOMEM, CPL_ERR_ARG (more messages than a plan may have). Deterministic. */
enum cpl_status cpl_part_search(const struct cpl_part *part, const struct cpl_passing *passing,
                                int64_t n, double unit_bytes, double budget_ms,
                                struct cpl_part_found *found, struct cpl_error *error);

void cpl_part_found_free(struct cpl_part_found *found);

#endif
