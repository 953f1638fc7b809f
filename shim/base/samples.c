/* Durations of calls (samples.h). */
#include "shim/base/samples.h"

#include <stdlib.h>
#include <string.h>

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
