/* Pictures of exchanges for the report: who sends how much to whom before and after planning,
 * aggregated so that the report stays small at any number of ranks. The rank that plans makes and
 * keeps them, as texts of JSON with members of the exchange in the report; rank 0 of MPI_COMM_WORLD
 * collects them at the end.
 *
 * Order of calls: cpl_picture_add after an exchange was planned; at the end cpl_picture_collect on
 * all ranks, then cpl_picture_free. */
#ifndef CARPOOL_PICTURE_H
#define CARPOOL_PICTURE_H

#include "planner/machine.h"
#include "planner/pattern.h"
#include "planner/plan.h"
#include "shim/report/plan_summary.h"

#include <stddef.h>

/* Makes the picture of a plan and, with CARPOOL_OUTPUT, writes its pattern; once for each pattern
 * and plan. A picture that cannot be kept (no memory, too many) is missing in the report. Local.
 */
void cpl_picture_add(const struct cpl_pattern *pattern, const struct cpl_plan *plan,
                     const struct cpl_machine *machine, const struct cpl_plan_summary *summary);

/* On rank 0: all ranks' pictures, one after another in *bytes bytes, which the caller frees. NULL
 * on other ranks and when there are none. Collective over MPI_COMM_WORLD. */
char *cpl_picture_collect(size_t *bytes);

/* Finds the picture of a pattern and plan among those collected, or NULL. Its member `of` is not
 * for the report. One whose first byte was made '\0' is not found again. */
char *cpl_picture_find(char *pictures, size_t bytes, const struct cpl_plan_summary *summary);

void cpl_picture_free(void);

#endif
