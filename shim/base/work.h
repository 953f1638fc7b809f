/* What the shim works, for simulators that do not measure processor time: bench/sim charges it to
 * the rank that is simulated (CPL_SIMULATED). Elsewhere nothing is called. */
#ifndef CARPOOL_WORK_H
#define CARPOOL_WORK_H

#include <stdint.h>

#ifdef CPL_SIMULATED
/* One end of a combined message was packed or unpacked: so many segments, together so many bytes
 * that were copied. */
void cpl_work_combined(int64_t n_segments, int64_t bytes);

/* A point-to-point message is sent or its receive posted by the shim, not by MPI. */
void cpl_work_managed(void);

/* A pattern of so many messages was planned by so many strategies, with so long a search (0: none).
 */
void cpl_work_planned(int64_t n_messages, int64_t n_strategies, double budget_ms);
#else
static inline void cpl_work_combined(int64_t n_segments, int64_t bytes)
{
    (void)n_segments, (void)bytes;
}

static inline void cpl_work_managed(void)
{
}

static inline void cpl_work_planned(int64_t n_messages, int64_t n_strategies, double budget_ms)
{
    (void)n_messages, (void)n_strategies, (void)budget_ms;
}
#endif

#endif
