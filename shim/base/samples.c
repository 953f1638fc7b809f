/* Durations of calls (samples.h). */
#include "shim/base/samples.h"

#include <stdlib.h>
#include <string.h>

void cpl_samples_add(struct cpl_samples *samples, double seconds)
{
    samples->seconds[samples->n++ % CPL_N_SAMPLES] = (float)seconds;
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Sorts the kept durations into `sorted`. Returns how many there are. */
static size_t sort(const struct cpl_samples *samples, float sorted[CPL_N_SAMPLES])
{
    size_t n = samples->n < CPL_N_SAMPLES ? (size_t)samples->n : CPL_N_SAMPLES;
    memcpy(sorted, samples->seconds, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare);
    return n;
}

double cpl_samples_median(const struct cpl_samples *samples)
{
    float sorted[CPL_N_SAMPLES];
    size_t n = sort(samples, sorted);
    return n == 0 ? 0 : ((double)sorted[(n - 1) / 2] + (double)sorted[n / 2]) / 2;
}

double cpl_samples_quartile(const struct cpl_samples *samples)
{
    float sorted[CPL_N_SAMPLES];
    size_t n = sort(samples, sorted);
    return n == 0 ? 0 : (double)sorted[(n - 1) / 4];
}

/* Each point takes the calls of two. */
static void widen(struct cpl_timeline *t)
{
    for (int k = 0; k < CPL_TIMELINE_POINTS; k++) {
        struct cpl_time_point both = {.n = 0};
        for (int j = 2 * k; j < 2 * k + 2 && j < CPL_TIMELINE_POINTS; j++) {
            both.seconds += t->point[j].seconds;
            both.n += t->point[j].n;
            both.n_planned += t->point[j].n_planned;
            both.n_tried += t->point[j].n_tried;
        }
        t->point[k] = both;
    }
    t->width *= 2;
}

void cpl_timeline_add(struct cpl_timeline *t, int64_t call, double seconds, bool planned,
                      bool tried)
{
    if (t->width == 0)
        t->width = 1;
    while (call / t->width >= CPL_TIMELINE_POINTS)
        widen(t);
    struct cpl_time_point *point = &t->point[call / t->width];
    point->seconds += seconds;
    point->n++;
    point->n_planned += planned;
    point->n_tried += tried;
}
