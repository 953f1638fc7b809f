/* The shim's work, for simulators that do not measure processor time: bench/sim charges it to the
 * simulated rank (CPL_SIMULATED). Elsewhere the functions do nothing. */
#ifndef CARPOOL_WORK_H
#define CARPOOL_WORK_H

#include <stdbool.h>
#include <stdint.h>

#ifdef CPL_SIMULATED
/* A combined message of n_segments segments was packed or unpacked, which copied `bytes` bytes. */
void cpl_work_combined(int64_t n_segments, int64_t bytes);

/* The shim, not MPI, sends a point-to-point message or posts its receive. */
void cpl_work_managed(void);

/* Plans were made, which takes so many milliseconds about. */
void cpl_work_planned(double ms);

/* A message of so many bytes was written into a lane. Returns when it is there, in seconds. */
double cpl_work_lane_sent(int64_t bytes);

/* Whether a message of a lane is there, which is then taken. */
bool cpl_work_lane_came(double there, int64_t bytes);

/* A rank looks at what others write, and has found nothing so many times in a row. */
void cpl_work_looked(int n_idle);
#else
#define cpl_work_combined(n_segments, bytes) ((void)(n_segments), (void)(bytes))
#define cpl_work_managed()                   (void)0
#define cpl_work_planned(ms)                 (void)(ms)
#define cpl_work_looked(n_idle)              (void)(n_idle)
#endif

#endif
