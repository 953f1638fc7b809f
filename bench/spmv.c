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
 * Files: spmv_setup.c distributes the matrix, spmv_pattern.c writes its pattern instead, this one
 * iterates and reports. Exit status: 0, 1 if the input cannot be used, 2 for bad arguments.
 */
#include "spmv.h"
#include "alone.h"
#include "together.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 2^31 entries in a row, elements to 9, x below this: sums below 2^48. */
enum { PRIME = 8191, MOST_ITERATIONS = 10000000 };

static const char usage[] =
    "usage: spmv [options] MATRIX.mtx[.gz]\n"
    "  repeats y = A x, x = y mod 8191 and times the exchange (MPI_Neighbor_alltoallv)\n"
    "  --form column|row       what a rank owns: columns, sending partial sums (default),\n"
    "                          or rows, sending entries of x\n"
    "  --partition block|metis|FILE\n"
    "                          contiguous blocks (default), METIS, or a part number per line\n"
    "  --iterations N          timed iterations (default 100)\n"
    "  --warmup N              iterations before those (default 250)\n"
    "  --seed S                of the values and of METIS (default 1)\n"
    "  --compare               exchange twice an iteration, also by the library's PMPI name: with "
    "a\n"
    "                          preloaded library, the speedup in one run\n"
    "  --pattern FILE --parts N\n"
    "                          write who sends how much to whom with N ranks, and stop\n"
    "  --items                 in it list the entries of x that are sent (row form)\n"
    "  --split                 nonzeros are dealt to the owners of their rows and columns: row "
    "form\n"
    "                          writes who sends entries of x, column form who sends partial sums\n"
    "  --json                  print one JSON object on one line\n"
    "  --help                  print this\n";

static struct spmv_options given = {
    .partition = "block", .n_iterations = 100, .n_warmup = 250, .seed = 1};

static const char *const forms[] = {"column", "row", NULL}; /* enum spmv_form */

static const struct bench_option table[] = {
    {"form", .word = &given.form, .words = forms},
    {"partition", .text = &given.partition},
    {"iterations", .count = &given.n_iterations, .least = 1, .most = MOST_ITERATIONS},
    {"warmup", .count = &given.n_warmup, .most = MOST_ITERATIONS},
    {"seed", .number = &given.seed, .most = INT64_MAX},
    {"pattern", .text = &given.pattern},
    {"parts", .count = &given.n_parts, .least = 1, .most = MOST_ITERATIONS},
    {"items", .flag = &given.lists_items},
    {"split", .flag = &given.splits},
    {"compare", .flag = &given.compares},
    {NULL},
};

static int check(const struct bench *bench, struct bench_error *error)
{
    if (spmv_take_matrix(bench, &given, error) != 0)
        return -1;
    if (!given.pattern != !given.n_parts)
        return bench_fail(error, "--pattern FILE and --parts N go together");
    if (given.splits && !given.pattern)
        return bench_fail(error, "--split goes with --pattern FILE");
    if (given.lists_items && (!given.pattern || given.form != SPMV_ROW))
        return bench_fail(error, "--items goes with --pattern FILE and --form row: partial sums "
                                 "have one destination each");
    return 0;
}

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
        .x = bench_need(n, sizeof(double)),
        .y = bench_need(n, sizeof(double)),
        .border = bench_need((size_t)share->border_side.n_items, sizeof(double)),
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

/* What one iteration's exchange took on this rank, in microseconds. */
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
    double us = (MPI_Wtime() - begin) * 1e6;
    /* With more ranks than cores, one that computed already would keep others from exchanging. */
    MPI_Barrier(share->graph);
    return us;
}

/* Exchanges once, or twice in alternating order: the second time gives the same data again. */
static struct timing exchange(const struct spmv_share *share, const struct spmv_options *options,
                              int number, const double *sent, double *received)
{
    struct timing timing = {0};

    if (options->compares && number % 2)
        timing.library =
            time_exchange(ALONE(Neighbor_alltoallv), share, options->form, sent, received);
    timing.called = time_exchange(MPI_Neighbor_alltoallv, share, options->form, sent, received);
    if (options->compares && number % 2 == 0)
        timing.library =
            time_exchange(ALONE(Neighbor_alltoallv), share, options->form, sent, received);
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

/* A sum over the entries, so that their order and distribution do not matter. */
static uint64_t checksum(const struct spmv_share *share, const double *x)
{
    uint64_t sum = 0;

    for (int i = 0; i < share->n_own; i++) {
        uint64_t bits; /* not a conversion: a damaged value may be anything */
        memcpy(&bits, &x[i], sizeof bits);
        sum += bench_hash(0, (uint64_t)share->own[i], bits);
    }
    return bench_sum(sum, MPI_COMM_WORLD);
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

/* Of all iterations, in microseconds, of the slowest rank on rank 0. */
struct times {
    double *called, *library;
    double *ratio; /* library by called: above 1, the preloaded library is faster */
};

static void print_times(struct report *report, const char *what, double *us, size_t n)
{
    report_quartiles(report, what, us, n, 2, "us");
    report->about = what;
    report_real(report, "min", us[0], 2, "us");
    report_real(report, "max", us[n - 1], 2, "us");
    report->about = "";
}

static void print_results(const struct bench *bench, const struct spmv_share *share,
                          const struct traffic *traffic, double setup_seconds, struct times *times,
                          uint64_t sum)
{
    struct report report = report_begin(stdout, bench->arguments.is_json);
    size_t n = (size_t)given.n_iterations;

    spmv_report_matrix(&report, &given, share);
    report_text(&report, "form", forms[given.form]);
    report_text(&report, "partition", given.partition);
    report_integer(&report, "ranks", bench->n_ranks, "");
    report_integer(&report, "sends max", traffic->sends_max, "");
    report_real(&report, "sends average", (double)traffic->sends_sum / bench->n_ranks, 2, "");
    report_integer(&report, "receives max", traffic->receives_max, "");
    report_integer(&report, "exchange", traffic->bytes, "bytes");
    report_real(&report, "setup", setup_seconds, 2, "seconds");
    report_integer(&report, "warmup", given.n_warmup, "");
    report_integer(&report, "iterations", given.n_iterations, "");
    if (given.compares) {
        report_quartiles(&report, "speedup", times->ratio, n, 3, "");
        print_times(&report, "library", times->library, n);
    }
    print_times(&report, "time", times->called, n);
    report_checksum(&report, sum);
    report_end(&report);
}

/* ---- the program ---- */

/* Runs all iterations and brings the slowest rank's times together. */
static struct times run_iterations(const struct spmv_share *share, struct vectors *vectors)
{
    size_t n = (size_t)given.n_iterations;
    struct times times = {bench_need(n, sizeof(double)), bench_need(n, sizeof(double)),
                          bench_need(n, sizeof(double))};

    for (int i = 0; i < given.n_warmup; i++)
        (void)iterate(share, &given, i, vectors);
    for (int i = 0; i < given.n_iterations; i++) {
        struct timing timing = iterate(share, &given, i, vectors);
        times.called[i] = timing.called;
        times.library[i] = timing.library;
    }
    bench_slowest(times.called, n, MPI_COMM_WORLD);
    bench_slowest(times.library, n, MPI_COMM_WORLD);
    for (size_t i = 0; i < n; i++)
        times.ratio[i] = times.library[i] / times.called[i];
    return times;
}

static void measure(const struct bench *bench, const struct spmv_share *share, double setup_seconds)
{
    struct vectors vectors = vectors_create(share, given.seed);
    struct times times = run_iterations(share, &vectors);
    uint64_t sum = checksum(share, vectors.x);
    struct traffic traffic = count_traffic(share, given.form);

    if (bench->rank == 0)
        print_results(bench, share, &traffic, setup_seconds, &times, sum);
    free(times.called);
    free(times.library);
    free(times.ratio);
    vectors_free(&vectors);
}

/* Rank 0 works, all learn how it went. */
static int write_pattern(int rank, struct bench_error *error)
{
    int status = 0;

    if (rank == 0)
        status = spmv_write_pattern(&given, error);
    MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return status;
}

static int run(const struct bench *bench, struct bench_error *error)
{
    struct spmv_share share;

    if (given.pattern)
        return write_pattern(bench->rank, error);
    double begin = MPI_Wtime();
    if (spmv_setup(&given, &share, error) != 0)
        return -1;
    measure(bench, &share, MPI_Wtime() - begin);
    spmv_share_free(&share);
    return 0;
}

const struct bench_program bench_program = {"spmv",           usage,          spmv_remedy, table,
                                            .takes_names = 1, .check = check, .run = run};
