/* How long the calls of an exchange took over the run: so many points, each of as many calls as are
 * needed for all of them to fit. Leaf module. */
#ifndef CARPOOL_TIMELINE_H
#define CARPOOL_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#define CPL_TIMELINE_POINTS 32

struct cpl_time_point {
    double seconds;             /* of its timed calls together */
    int32_t n;                  /* timed calls */
    int32_t n_planned, n_tried; /* of these, carried by a plan; part of a trial */
};

/* Zeroed: there was no call. Calls are numbered alike on all ranks, and so are the points. */
struct cpl_timeline {
    int64_t width; /* calls of a point, timed or not */
    struct cpl_time_point point[CPL_TIMELINE_POINTS];
};

/* Notes the call of a number, from 0; numbers ascend. */
void cpl_timeline_add(struct cpl_timeline *timeline, int64_t call, double seconds, bool planned,
                      bool tried);

#endif
