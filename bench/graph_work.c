/* The time of the array's own work, without messages (graph.h): folding by each variant, as it is
 * done with requests that were queued and with those that came from several processes; giving
 * values to requests; packing; placing; and steps of an array on this process alone.
 *
 * In a simulation (bench/sim, simulated_graph) it prints the time charged for the work. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* clock_gettime */
#endif
#include "array/fold.h"
#include "array/transfer_internal.h"
#include "graph.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N_TIMES = 9, MOST_SEGMENTS = 64, N_RANKS = 1024 };

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

/* n indices below limit, in so many ascending segments (0: in no order). */
static void draw_indices(struct bench_random *random, int64_t n, int64_t limit, int n_segments,
                         int64_t *index, int64_t *first)
{
    int n_parts = n_segments ? n_segments : 1;

    for (int64_t k = 0; k < n; k++)
        index[k] = (int64_t)bench_random_below(random, (uint64_t)limit);
    for (int s = 0; s <= n_parts; s++)
        first[s] = n * s / n_parts;
    for (int s = 0; s < n_segments; s++)
        qsort(index + first[s], (size_t)(first[s + 1] - first[s]), sizeof *index, compare_indices);
}

/* ---- parts of the work ---- */

/* What is done with n requests. */
struct work {
    int64_t n, limit; /* of indices */
    enum cpl_variant variant;
    struct bench_random random;
    int64_t *index, first[MOST_SEGMENTS + 1];
    int n_segments; /* ascending ones; 0: one in no order */
    struct cpl_fold_input input;
    struct cpl_fold fold;
    char *value, *answer; /* 8 bytes for each */
    int32_t *target;
    struct cpl_route route;
};

static void fold_all(struct work *work)
{
    struct cpl_fold fold = {0};

    if (!cpl_fold_make(work->variant, &work->input, &fold))
        bench_abort("no memory for folding");
    cpl_fold_free(&fold);
}

static void spread_all(struct work *work)
{
    cpl_fold_spread(&work->fold, work->n, NULL, work->value, sizeof(int64_t), work->answer);
}

/* To the next of N_RANKS processes. */
static void place_all(struct work *work)
{
    cpl_route_place(&work->route, 0, 1 + 4 * work->n / N_RANKS, (int32_t)work->n, work->input.index,
                    work->target);
}

/* As a message of indices and values, and back. */
static void pack_all(struct work *work)
{
    static const struct cpl_record record = {.has_value = true};
    struct cpl_array array = {.size = sizeof(int64_t)};
    struct cpl_batch batch = {(int32_t)work->n, work->index, work->value, NULL};

    cpl_pack(&array, &record, &batch, 0, work->n, work->answer);
    cpl_unpack(&array, &record, work->answer, 0, work->n, &batch);
}

/* Other requests: a processor learns the branches of some thousands that come again. */
static void renew_work(struct work *work)
{
    draw_indices(&work->random, work->n, work->limit, work->n_segments, work->index, work->first);
    cpl_fold_free(&work->fold);
    if (!cpl_fold_make(work->variant, &work->input, &work->fold))
        bench_abort("no memory for the requests");
}

/* ns a request; the first time is not counted. */
static double time_work(void (*run)(struct work *work), struct work *work)
{
    double ns[N_TIMES];

    for (int t = -1; t < N_TIMES; t++) {
        renew_work(work);
        double begin = cpu_seconds();
        run(work);
        ns[t < 0 ? 0 : t] = (cpu_seconds() - begin) * 1e9 / (double)work->n;
    }
    return bench_median(ns, N_TIMES);
}

/* Requests in so many ascending segments (0: in no order). */
static void begin_work(enum cpl_variant variant, int64_t n, int64_t limit, int n_segments,
                       struct work *work)
{
    *work = (struct work){.n = n, .limit = limit, .variant = variant, .n_segments = n_segments};
    work->index = bench_need((size_t)n, sizeof *work->index);
    work->input = (struct cpl_fold_input){work->index, work->first, n_segments ? n_segments : 1,
                                          n_segments > 0, false};
    work->value = bench_need((size_t)n, sizeof(int64_t));
    work->answer = bench_need((size_t)n, 2 * sizeof(int64_t));
    work->target = bench_need((size_t)n, sizeof *work->target);
}

static void end_work(struct work *work)
{
    free(work->index);
    free(work->value);
    free(work->answer);
    free(work->target);
    cpl_fold_free(&work->fold);
}

static void report_folds(struct report *report, enum cpl_variant variant, int64_t n)
{
    static const int n_segments[] = {0, 1, 2, 8, MOST_SEGMENTS};
    struct work work;

    for (size_t k = 0; k < sizeof n_segments / sizeof *n_segments; k++) {
        char name[40] = "fold unsorted";
        if (n_segments[k] > 0)
            snprintf(name, sizeof name, "fold %d segments", n_segments[k]);
        begin_work(variant, n, 4 * n, n_segments[k], &work);
        report_real(report, name, time_work(fold_all, &work), 2, "ns");
        end_work(&work);
    }
    begin_work(variant, n, n / 16 + 1, 0, &work);
    report_real(report, "fold unsorted, 16 alike", time_work(fold_all, &work), 2, "ns");
    end_work(&work);
    begin_work(variant, n, n / 16 + 1, MOST_SEGMENTS, &work);
    report_real(report, "fold 64 segments, 16 alike", time_work(fold_all, &work), 2, "ns");
    end_work(&work);
}

static void report_spread(struct report *report, int64_t n)
{
    struct work work;

    begin_work(CPL_VARIANT_SORT, n, 4 * n, MOST_SEGMENTS, &work);
    report_real(report, "spread 64 segments", time_work(spread_all, &work), 2, "ns");
    end_work(&work);
}

/* Placing among the ranks of a square grid, and packing. */
static void report_moves(struct report *report, int64_t n)
{
    static const struct cpl_method method = {.variant = CPL_VARIANT_SORT, .route = "equal:2"};
    struct cpl_machine machine;
    struct cpl_error error;
    struct work work;
    char text[40];

    if (cpl_machine_init(N_RANKS, N_RANKS, &machine, &error))
        bench_abort("no memory for a machine");
    for (int is_sorted = 0; is_sorted < 2; is_sorted++) {
        begin_work(CPL_VARIANT_SORT, n, 4 * n, is_sorted, &work);
        if (cpl_route_make(&method, &machine, 0, &work.route, text, sizeof text, &error))
            bench_abort("no memory for a route");
        report_real(report, is_sorted ? "place sorted" : "place unsorted",
                    time_work(place_all, &work), 2, "ns");
        if (is_sorted)
            report_real(report, "pack and unpack", time_work(pack_all, &work), 2, "ns");
        cpl_route_free(&work.route);
        end_work(&work);
    }
    cpl_machine_free(&machine);
}

/* ---- steps ---- */

struct step {
    const char *name,
        *route; /* route: "" or one of further stages, which only this process is in */
    int is_writing;
    enum carpool_array_policy policy;
    int n_alike; /* requests for each element; 0: hardly any are for the same */
};

static void add_up(void *inout, const void *in, size_t size, void *context)
{
    (void)size;
    (void)context;
    *(int64_t *)inout += *(const int64_t *)in;
}

/* ns a request of a step, with its queueing. */
static double step_ns(enum cpl_variant variant, int64_t n, const struct step *step)
{
    struct carpool_array_options options = CARPOOL_ARRAY_OPTIONS;
    carpool_array *array;
    struct bench_random random = {1};
    int64_t length = step->n_alike ? n / step->n_alike + 1 : 4 * n, first[2];
    int64_t *index = bench_need((size_t)n, sizeof *index);
    int64_t *value = bench_need((size_t)n, sizeof *value);
    char method[40];
    double ns[N_TIMES];

    snprintf(method, sizeof method, "%s%s", cpl_variant_name(variant), step->route);
    options.method = method;
    options.memory = INT64_C(1) << 40;
    options.policy = step->policy;
    options.type = MPI_INT64_T;
    options.function = add_up;
    carpool_array_create(MPI_COMM_SELF, length, sizeof *value, &options, &array);
    for (int t = -1; t < N_TIMES; t++) {
        draw_indices(&random, n, length, 0, index, first);
        double begin = cpu_seconds();
        for (int64_t k = 0; k < n && step->is_writing; k++)
            carpool_array_write(array, index[k], &value[k]);
        for (int64_t k = 0; k < n && !step->is_writing; k++)
            carpool_array_read(array, index[k], &value[k]);
        carpool_array_step(array);
        ns[t < 0 ? 0 : t] = (cpu_seconds() - begin) * 1e9 / (double)n;
    }
    carpool_array_free(&array);
    free(index);
    free(value);
    return bench_median(ns, N_TIMES);
}

static void report_steps(struct report *report, enum cpl_variant variant, int64_t n)
{
    static const struct step steps[] = {
        {"step of reads", "", 0, CARPOOL_ARRAY_LAST, 0},
        {"reads, 3 stages", ":1x1x1", 0, CARPOOL_ARRAY_LAST, 0},
        {"reads, 16 alike", "", 0, CARPOOL_ARRAY_LAST, 16},
        {"step of writes", "", 1, CARPOOL_ARRAY_LAST, 0},
        {"writes, 3 stages", ":1x1x1", 1, CARPOOL_ARRAY_LAST, 0},
        {"writes, 16 alike", "", 1, CARPOOL_ARRAY_LAST, 16},
        {"minima, 16 alike", "", 1, CARPOOL_ARRAY_MIN, 16},
        {"sums, 16 alike", "", 1, CARPOOL_ARRAY_SUM, 16},
        {"by a function, 16 alike", "", 1, CARPOOL_ARRAY_USER, 16},
    };

    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
        report_real(report, steps[k].name, step_ns(variant, n, &steps[k]), 2, "ns");
}

void graph_work(int64_t n_requests, int is_json)
{
    for (int v = 0; v < CPL_N_VARIANTS; v++) {
        enum cpl_variant variant = (enum cpl_variant)v;
        struct report report = report_begin(stdout, is_json);
        report_text(&report, "variant", cpl_variant_name(variant));
        report_integer(&report, "requests", n_requests, "");
        report_folds(&report, variant, n_requests);
        report_steps(&report, variant, n_requests);
        if (variant == CPL_VARIANT_SORT) {
            report_spread(&report, n_requests);
            report_moves(&report, n_requests);
        }
        report_end(&report);
        if (!is_json)
            putchar('\n');
    }
}
