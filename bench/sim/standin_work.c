/* The shim's own work in a simulation (shim/base/work.h): the rank sleeps for what the work takes.
 * Where the figures come from: bench/README.md, "What is charged". */
#include "shim/base/work.h"

#include <simgrid/engine.h>
#include <time.h>

#define MESSAGE_NS  20.0 /* one end of a combined message, without MPI's part */
#define SEGMENT_NS  9.0  /* each of its segments */
#define NS_PER_BYTE 0.05 /* copied */
#define MANAGED_NS  40.0 /* each end of a point-to-point message, without the rides */

static void charge(double ns)
{
    struct timespec time = {(time_t)(ns * 1e-9), 0};
    time.tv_nsec = (long)(ns - (double)time.tv_sec * 1e9 + 0.5);
    if (time.tv_sec > 0 || time.tv_nsec > 0)
        nanosleep(&time, NULL);
}

static double owed_ns; /* small amounts, charged with the next larger one */

void cpl_work_combined(int64_t n_segments, int64_t bytes)
{
    double before = owed_ns;
    owed_ns = 0;
    charge(before + MESSAGE_NS + (double)n_segments * SEGMENT_NS + (double)bytes * NS_PER_BYTE);
}

void cpl_work_managed(void)
{
    owed_ns += MANAGED_NS;
}

void cpl_work_planned(double ms)
{
    charge(ms * 1e6);
}

double cpl_work_planned_aside(double ms)
{
    return simgrid_get_clock() + ms * 1e-3;
}

bool cpl_work_is_over(double end)
{
    return end <= simgrid_get_clock();
}
