/*
 * spmv: the sparse matrix-vector product y = A x on MPI ranks, repeated, with the time that its
 * exchange takes.
 *
 * Every rank owns columns of A and the same entries of x and y (column form), computes partial
 * sums for rows that others own and sends them there; or it owns rows (row form) and is sent the
 * entries of x that it lacks. The exchange is MPI_Neighbor_alltoallv on a graph communicator.
 *
 * The elements of A and the first x are small whole numbers made of hashes of their places, and x
 * is taken modulo a small prime before the next iteration. All sums stay far below 2^53, so the
 * arithmetic is exact in any order, and the checksum of the last x depends on the matrix, the seed
 * and the number of iterations only: not on ranks, partition, form or library.
 *
 * Files: spmv_options.c reads the arguments, spmv_setup.c distributes the matrix, this one
 * iterates and reports. Exit status: 0, 1 if the input cannot be used, 2 for bad arguments.
 */
#include "spmv.h"

#include "report.h"
#include "together.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 2^31 entries in a row, elements to 9, x below this: sums below 2^48. */
enum { PRIME = 8191 };

/* The vectors of a rank; the one that the exchange extends has the halo behind the own entries. */
struct vectors {
    double *x, *y;
    double *border; /* entries for, or partial sums from, other ranks */
};

/* The figures of an exchange over all ranks; valid on rank 0. */
struct traffic {
    int64_t sends_max, sends_sum, receives_max, bytes;
};

static double start_value(int64_t seed, int number)
{
    return (double)(bench_hash((uint64_t)seed, UINT64_MAX, (uint64_t)number) % PRIME);
}

static struct vectors vectors_create(const struct spmv_share *share, int64_t seed)
{
    size_t n = (size_t)share->n_own + (size_t)share->halo_side.n_items;
    struct vectors vectors = {
        .x = spmv_array(n, sizeof(double)),
        .y = spmv_array(n, sizeof(double)),
        .border = spmv_array((size_t)share->border_side.n_items, sizeof(double)),
    };

    for (int i = 0; i < share->n_own; i++)
        vectors.x[i] = start_value(seed, share->own[i]);
    return vectors;
}

static void vectors_free(struct vectors *vectors)
{
    free(vectors->x);
    free(vectors->y);
    free(vectors->border);
}

/* ---- one iteration ---- */

/* What one iteration's exchange took on this rank, in seconds. */
struct timing {
    double called;  /* by the name that a preloaded library may have taken over */
    double library; /* by the MPI library's own PMPI name; 0 unless compared */
};

typedef int exchange_function(const void *, const int *, const int *, MPI_Datatype, void *,
                              const int *, const int *, MPI_Datatype, MPI_Comm);

/* Only this is timed: from a common start to this rank's end of the exchange. */
static double time_exchange(exchange_function *function, const struct spmv_share *share,
                            enum spmv_form form, const double *sent, double *received)
{
    const struct spmv_side *to = spmv_sent(share, form);
    const struct spmv_side *from = spmv_received(share, form);

    bench_start_together(share->graph);
    double begin = MPI_Wtime();
    function(sent, to->count, to->displ, MPI_DOUBLE, received, from->count, from->displ, MPI_DOUBLE,
             share->graph);
    double seconds = MPI_Wtime() - begin;
    /* With more ranks than cores, one that computed already would keep others from exchanging. */
    MPI_Barrier(share->graph);
    return seconds;
}

/* Exchanges once, or twice in alternating order: the second time gives the same data again. */
static struct timing exchange(const struct spmv_share *share, const struct spmv_options *options,
                              int number, const double *sent, double *received)
{
    struct timing timing = {0};

    if (options->compares && number % 2)
        timing.library =
            time_exchange(PMPI_Neighbor_alltoallv, share, options->form, sent, received);
    timing.called = time_exchange(MPI_Neighbor_alltoallv, share, options->form, sent, received);
    if (options->compares && number % 2 == 0)
        timing.library =
            time_exchange(PMPI_Neighbor_alltoallv, share, options->form, sent, received);
    return timing;
}

static struct timing multiply_by_rows(const struct spmv_share *share,
                                      const struct spmv_options *options, int number,
                                      struct vectors *v)
{
    for (int k = 0; k < share->border_side.n_items; k++)
        v->border[k] = v->x[share->border[k]];
    struct timing timing = exchange(share, options, number, v->border, v->x + share->n_own);
    for (int i = 0; i < share->n_own; i++) {
        double sum = 0;
        for (int k = share->start[i]; k < share->start[i + 1]; k++)
            sum += share->value[k] * v->x[share->entry[k]];
        v->y[i] = sum;
    }
    return timing;
}

static struct timing multiply_by_columns(const struct spmv_share *share,
                                         const struct spmv_options *options, int number,
                                         struct vectors *v)
{
    size_t n = (size_t)share->n_own + (size_t)share->halo_side.n_items;

    memset(v->y, 0, n * sizeof *v->y);
    for (int i = 0; i < share->n_own; i++)
        for (int k = share->start[i]; k < share->start[i + 1]; k++)
            v->y[share->entry[k]] += share->value[k] * v->x[i];
    struct timing timing = exchange(share, options, number, v->y + share->n_own, v->border);
    for (int k = 0; k < share->border_side.n_items; k++)
        v->y[share->border[k]] += v->border[k];
    return timing;
}

static struct timing iterate(const struct spmv_share *share, const struct spmv_options *options,
                             int number, struct vectors *v)
{
    struct timing timing = options->form == SPMV_ROW
                               ? multiply_by_rows(share, options, number, v)
                               : multiply_by_columns(share, options, number, v);

    for (int i = 0; i < share->n_own; i++)
        v->x[i] = fmod(v->y[i], PRIME);
    return timing;
}

/* ---- results ---- */

/* A sum over the entries, so that their order and distribution do not matter; valid on rank 0. */
static uint64_t checksum(const struct spmv_share *share, const double *x)
{
    uint64_t sum = 0;
    uint64_t total = 0;

    for (int i = 0; i < share->n_own; i++) {
        uint64_t bits; /* not a conversion: a damaged value may be anything */
        memcpy(&bits, &x[i], sizeof bits);
        sum += bench_hash(0, (uint64_t)share->own[i], bits);
    }
    MPI_Reduce(&sum, &total, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    return total;
}

static struct traffic count_traffic(const struct spmv_share *share, enum spmv_form form)
{
    const struct spmv_side *sent = spmv_sent(share, form);
    int64_t mine[2] = {sent->n_ranks, spmv_received(share, form)->n_ranks};
    int64_t added[2] = {sent->n_ranks, (int64_t)sent->n_items * (int64_t)sizeof(double)};
    int64_t most[2] = {0};
    int64_t sum[2] = {0};

    MPI_Reduce(mine, most, 2, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(added, sum, 2, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    return (struct traffic){most[0], sum[0], most[1], sum[1]};
}

/* The times of all iterations by the slowest rank; valid on rank 0. */
struct times {
    double *called, *library, *ratio;
};

static void print_times(struct report *report, const char *what, double *seconds, int n)
{
    static const struct {
        const char *name;
        double q;
    } rows[] = {{"median", 0.5},
                {"lower quartile", 0.25},
                {"upper quartile", 0.75},
                {"min", 0},
                {"max", 1}};
    char name[64];

    bench_sort(seconds, (size_t)n);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(name, sizeof name, "%s %s", what, rows[i].name);
        report_real(report, name, 1e6 * bench_quantile(seconds, (size_t)n, rows[i].q), 2, "us");
    }
}

/* Library time over called time, iteration by iteration: above 1, the preloaded library is faster.
 */
static void print_comparison(struct report *report, struct times *times, int n)
{
    for (int i = 0; i < n; i++)
        times->ratio[i] = times->library[i] / times->called[i];
    bench_sort(times->ratio, (size_t)n);
    report_real(report, "speedup median", bench_quantile(times->ratio, (size_t)n, 0.5), 3, "");
    report_real(report, "speedup lower quartile", bench_quantile(times->ratio, (size_t)n, 0.25), 3,
                "");
    report_real(report, "speedup upper quartile", bench_quantile(times->ratio, (size_t)n, 0.75), 3,
                "");
    print_times(report, "library", times->library, n);
}

static void print_results(const struct spmv_options *options, const struct spmv_share *share,
                          const struct traffic *traffic, double setup_seconds, struct times *times,
                          uint64_t sum)
{
    struct report report = report_begin(stdout, options->is_json);
    char digits[17];
    int n_ranks;

    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    snprintf(digits, sizeof digits, "%016" PRIx64, sum);
    report_text(&report, "matrix", options->matrix);
    report_integer(&report, "rows", share->n_rows, "");
    report_integer(&report, "nonzeros", share->n_entries, "");
    report_text(&report, "form", options->form == SPMV_ROW ? "row" : "column");
    report_text(&report, "partition", options->partition);
    report_integer(&report, "ranks", n_ranks, "");
    report_integer(&report, "sends max", traffic->sends_max, "");
    report_real(&report, "sends average", (double)traffic->sends_sum / n_ranks, 2, "");
    report_integer(&report, "receives max", traffic->receives_max, "");
    report_integer(&report, "exchange", traffic->bytes, "bytes");
    report_real(&report, "setup", setup_seconds, 2, "seconds");
    report_integer(&report, "warmup", options->n_warmup, "");
    report_integer(&report, "iterations", options->n_iterations, "");
    if (options->compares)
        print_comparison(&report, times, options->n_iterations);
    print_times(&report, "time", times->called, options->n_iterations);
    report_text(&report, "checksum", digits);
    report_end(&report);
}

/* ---- the program ---- */

/* Runs all iterations and brings the slowest rank's times together. */
static void run_iterations(const struct spmv_options *options, const struct spmv_share *share,
                           struct vectors *vectors, struct times *times)
{
    int n = options->n_iterations;
    double *called = spmv_array((size_t)n, sizeof *called);
    double *library = spmv_array((size_t)n, sizeof *library);

    for (int i = 0; i < options->n_warmup; i++)
        (void)iterate(share, options, i, vectors);
    for (int i = 0; i < n; i++) {
        struct timing timing = iterate(share, options, i, vectors);
        called[i] = timing.called;
        library[i] = timing.library;
    }
    MPI_Reduce(called, times->called, n, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(library, times->library, n, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    free(called);
    free(library);
}

static void measure(const struct spmv_options *options, const struct spmv_share *share,
                    double setup_seconds)
{
    struct vectors vectors = vectors_create(share, options->seed);
    size_t n = (size_t)options->n_iterations;
    struct times times = {spmv_array(n, sizeof(double)), spmv_array(n, sizeof(double)),
                          spmv_array(n, sizeof(double))};
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    run_iterations(options, share, &vectors, &times);
    uint64_t sum = checksum(share, vectors.x);
    struct traffic traffic = count_traffic(share, options->form);
    if (rank == 0)
        print_results(options, share, &traffic, setup_seconds, &times, sum);
    free(times.called);
    free(times.library);
    free(times.ratio);
    vectors_free(&vectors);
}

/* Rank 0 works, all learn how it went. */
static int write_pattern(const struct spmv_options *options, int rank)
{
    struct bench_error error;
    int failed = 0;

    if (rank == 0 && spmv_write_pattern(options, &error) != 0) {
        fprintf(stderr, "spmv: %s\n", error.text);
        failed = 1;
    }
    MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return failed;
}

/* All ranks return the same exit status. */
static int run(int n_arguments, char **arguments)
{
    struct spmv_options options;
    struct spmv_share share;
    struct bench_error error;
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (spmv_options_read(n_arguments, arguments, &options, &error) != 0) {
        if (rank == 0)
            fprintf(stderr, "spmv: %s\n%s", error.text, spmv_usage);
        return 2;
    }
    if (options.wants_help) {
        if (rank == 0)
            fputs(spmv_usage, stdout);
        return 0;
    }
    if (options.pattern)
        return write_pattern(&options, rank);
    double begin = MPI_Wtime();
    if (spmv_setup(&options, &share, &error) != 0) {
        if (rank == 0)
            fprintf(stderr, "spmv: %s\n", error.text);
        return 1;
    }
    measure(&options, &share, MPI_Wtime() - begin);
    spmv_share_free(&share);
    return 0;
}

int main(int n_arguments, char **arguments)
{
    MPI_Init(&n_arguments, &arguments);
    int status = run(n_arguments, arguments);
    MPI_Finalize();
    return status;
}
