/* Durations of calls: the latest are kept, and their median stands for a call. A mean would show
 * the one call that waited for a late rank or set up connections. Leaf module. */
#ifndef CARPOOL_SAMPLES_H
#define CARPOOL_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#define CPL_N_SAMPLES 64

struct cpl_samples {
    int64_t n;                    /* calls so far */
    float seconds[CPL_N_SAMPLES]; /* durations of the latest calls, as a ring */
};

void cpl_samples_add(struct cpl_samples *samples, double seconds);

/* Median of the kept durations, in seconds; 0 when there are none. */
double cpl_samples_median(const struct cpl_samples *samples);

/* A quarter of them are not longer: what a call takes when nothing disturbs it, if there are few
 * durations and the first ones set things up. Seconds; 0 when there are none. */
double cpl_samples_quartile(const struct cpl_samples *samples);

/* How long the calls took over the run: so many points, each of as many calls as are needed for all
 * of them to fit. */
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
