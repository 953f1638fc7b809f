/* Durations of calls: the latest are kept, and their median stands for a call. A mean would show
 * the one call that waited for a late rank or set up connections. Leaf module. */
#ifndef CARPOOL_SAMPLES_H
#define CARPOOL_SAMPLES_H

#include <stdint.h>

#define CPL_N_SAMPLES 64

struct cpl_samples {
    int64_t n;                    /* calls so far */
    float seconds[CPL_N_SAMPLES]; /* durations of the latest calls, as a ring */
};

static inline void cpl_samples_add(struct cpl_samples *samples, double seconds)
{
    samples->seconds[samples->n++ % CPL_N_SAMPLES] = (float)seconds;
}

/* Median of the kept durations, in seconds; 0 when there are none. */
double cpl_samples_median(const struct cpl_samples *samples);

/* A quarter of them are not longer: what a call takes when nothing disturbs it, if there are few
 * durations and the first ones set things up. Seconds; 0 when there are none. */
double cpl_samples_quartile(const struct cpl_samples *samples);

#endif
