/* The distributed array's own work in a simulation (array/work.h): the rank sleeps for what the
 * work takes. Sleeping is for whole nanoseconds, so what is left of one is slept with the next. */
#include "array/work.h"

#include <time.h>

static double owed_ns; /* of this rank: the program is loaded once for each */

void cpl_array_work(double ns)
{
    owed_ns += ns;
    if (owed_ns < 100)
        return;
    struct timespec time = {(time_t)(owed_ns * 1e-9), 0};
    time.tv_nsec = (long)(owed_ns - (double)time.tv_sec * 1e9);
    owed_ns -= (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
    nanosleep(&time, NULL);
}
