/* What the array's own work takes, without messages (graph.h): folding by each variant, as it is
 * done with requests that were queued and with those that came from several processes, and steps of
 * an array on this process alone. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* clock_gettime */
#endif
#include "array/fold.h"
#include "graph.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N_TIMES = 9 };

/* Processor time, which others' work on the machine hardly touches. */
static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int compare_indices(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* n indices below 4 n; in so many ascending segments (0: in no order). */
static int64_t *make_indices(int64_t n, int n_segments, int64_t *first)
{
    struct bench_random random = {(uint64_t)n_segments};
    int64_t *index = bench_array((size_t)n, sizeof *index);
    int n_parts = n_segments ? n_segments : 1;

    if (!index)
        graph_abort("no memory for the requests");
    for (int64_t k = 0; k < n; k++)
        index[k] = (int64_t)bench_random_below(&random, 4 * (uint64_t)n);
    for (int s = 0; s <= n_parts; s++)
        first[s] = n * s / n_parts;
    for (int s = 0; s < n_segments; s++)
        qsort(index + first[s], (size_t)(first[s + 1] - first[s]), sizeof *index, compare_indices);
    return index;
}

static double fold_ns(enum cpl_variant variant, int64_t n, int n_segments)
{
    int64_t first[65];
    int64_t *index = make_indices(n, n_segments, first);
    struct cpl_fold_input input = {index, first, n_segments ? n_segments : 1, n_segments > 0,
                                   false};
    double ns[N_TIMES];

    for (int t = 0; t < N_TIMES; t++) {
        struct cpl_fold fold = {0};
        double begin = cpu_seconds();
        if (!cpl_fold_make(variant, &input, &fold))
            graph_abort("no memory for folding");
        ns[t] = (cpu_seconds() - begin) * 1e9 / (double)n;
        cpl_fold_free(&fold);
    }
    free(index);
    bench_sort(ns, N_TIMES);
    return bench_quantile(ns, N_TIMES, 0.5);
}

/* Of a step of reads, or of writes, with their queueing. */
static double step_ns(enum cpl_variant variant, int64_t n, int is_writing)
{
    struct carpool_array_options options = CARPOOL_ARRAY_OPTIONS;
    carpool_array *array;
    int64_t first[65], *index = make_indices(n, 0, first);
    int64_t *value = bench_array((size_t)n, sizeof *value);
    double ns[N_TIMES];

    if (!value)
        graph_abort("no memory for the values");
    options.method = cpl_variant_name(variant);
    options.memory = INT64_C(1) << 40;
    carpool_array_create(MPI_COMM_SELF, 4 * n, sizeof *value, &options, &array);
    for (int t = 0; t < N_TIMES; t++) {
        double begin = cpu_seconds();
        for (int64_t k = 0; k < n && is_writing; k++)
            carpool_array_write(array, index[k], &value[k]);
        for (int64_t k = 0; k < n && !is_writing; k++)
            carpool_array_read(array, index[k], &value[k]);
        carpool_array_step(array);
        ns[t] = (cpu_seconds() - begin) * 1e9 / (double)n;
    }
    carpool_array_free(&array);
    free(index);
    free(value);
    bench_sort(ns, N_TIMES);
    return bench_quantile(ns, N_TIMES, 0.5);
}

void graph_work(int64_t n_requests, int is_json)
{
    static const int n_segments[] = {0, 1, 2, 8, 64};
    enum { N_SEGMENTS = sizeof n_segments / sizeof *n_segments };

    for (int v = 0; v < CPL_N_VARIANTS; v++) {
        enum cpl_variant variant = (enum cpl_variant)v;
        struct report report = report_begin(stdout, is_json);
        report_text(&report, "variant", cpl_variant_name(variant));
        report_integer(&report, "requests", n_requests, "");
        for (int k = 0; k < N_SEGMENTS; k++) {
            char name[40] = "fold unsorted";
            if (n_segments[k] > 0)
                snprintf(name, sizeof name, "fold %d segments", n_segments[k]);
            report_real(&report, name, fold_ns(variant, n_requests, n_segments[k]), 2, "ns");
        }
        report_real(&report, "step of reads", step_ns(variant, n_requests, 0), 2, "ns");
        report_real(&report, "step of writes", step_ns(variant, n_requests, 1), 2, "ns");
        report_end(&report);
        if (!is_json)
            putchar('\n');
    }
}
