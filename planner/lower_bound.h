/* Lower bounds: what no plan of a pattern can beat, to tell how far a plan is from the best.
 *
 * Cost: below a second for thousands of ranks. Thread rule: no state. */
#ifndef CARPOOL_LOWER_BOUND_H
#define CARPOOL_LOWER_BOUND_H

#include "machine.h"
#include "pattern.h"
#include "status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The least M such that a plan of at most two waves might exist in which no rank sends or receives
 * more than M combined messages: every such plan has a rank with at least *messages. 0 for a
 * pattern without messages. Returns CPL_OK, CPL_ERR_NOMEM. lower_bound.c has the argument. */
enum cpl_status cpl_bound_two_waves(const struct cpl_pattern *pattern, int64_t *messages,
                                    struct cpl_error *error);

/* A time that the modelled time, cpl_plan_chain_cost, exceeds or equals for every plan of the
 * pattern on the machine, of any number of waves, with unit_bytes bytes a unit of volume; and for
 * what MPI does (cpl_machine_without_lanes). Returns CPL_OK, CPL_ERR_ARG (ranks differ, or more
 * messages than the model takes), CPL_ERR_NOMEM. lower_bound_time.c has the argument. */
enum cpl_status cpl_bound_time(const struct cpl_pattern *pattern, const struct cpl_machine *machine,
                               double unit_bytes, double *microseconds, struct cpl_error *error);

#ifdef __cplusplus
}
#endif

#endif
