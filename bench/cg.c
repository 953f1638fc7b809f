/*
 * cg: conjugate gradients with messages to a few others, in the two forms of [Selvitopi-embed].
 *
 *   cg [--form conventional|reorganised] [--halo messages|neighbor] [--iterations N] [--solves N]
 *      [--warmup N] [--partition block|metis|FILE] [--history] [--json] MATRIX.mtx[.gz]
 *
 * Conventional (figure 1): the entries of p that other ranks need are sent, then q = A p, then one
 * MPI_Allreduce of both inner products. Reorganised (figure 2): the entries of q are sent before
 * that MPI_Allreduce and received after it; every rank keeps r and p for its halo, too. So both
 * phases of communication are next to each other. With --halo neighbor the entries travel by
 * MPI_Ineighbor_alltoallv on a graph communicator instead of MPI_Isend and MPI_Irecv.
 *
 * A is the Laplacian of the matrix's graph plus 1 on the diagonal (the matrix must be symmetric;
 * its values are not used), b is all ones times a hash. --history prints the squared residual of
 * each iteration to the last bit. The time is that of an iteration on rank 0, without the first
 * ones that --warmup names: the mean of the middle half of all runs of IN_A_ROW iterations, since a
 * rank may be early in one iteration and late in the next, for ever. Exit status: 0, 1 if the input
 * cannot be used, 2 for bad arguments.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* getopt_long */
#endif
#include "arguments.h"
#include "report.h"
#include "spmv.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 7, MOST_ITERATIONS = 1000000, MOST_SOLVES = 1000, IN_A_ROW = 4 };

static const char usage[] =
    "usage: cg [options] MATRIX.mtx[.gz]\n"
    "  --form conventional|reorganised   messages before the product, or beside the reduction\n"
    "  --halo messages|neighbor          by MPI_Isend (default) or MPI_Ineighbor_alltoallv\n"
    "  --iterations N                    at most (default 50)\n"
    "  --solves N                        the same system so many times (default 1)\n"
    "  --warmup N                        iterations not timed, of all solves' (default 0)\n"
    "  --partition block|metis|FILE      as spmv (default block)\n"
    "  --history                         print the squared residual of each iteration\n"
    "  --json                            print one JSON object on one line instead\n";

struct options {
    int reorganised, by_neighbors, history, is_json, n_solves;
    struct spmv_options matrix;
};

/* The vectors of a rank: own entries, then, of p, q and r, those of the halo. */
struct solver {
    const struct spmv_share *share;
    int by_neighbors, n_all;
    double *x, *r, *p, *q;
    double *border;
    int n_requests;
    MPI_Request *requests;
};

static int take_option(int letter, void *to, struct bench_error *error)
{
    struct options *options = to;
    int64_t n = 0;
    int status = 0;

    switch (letter) {
    case 'f':
        options->reorganised = strcmp(optarg, "reorganised") == 0;
        if (!options->reorganised && strcmp(optarg, "conventional") != 0)
            return bench_fail(error, "--form wants conventional or reorganised, not '%s'", optarg);
        return 0;
    case 'g':
        options->by_neighbors = strcmp(optarg, "neighbor") == 0;
        if (!options->by_neighbors && strcmp(optarg, "messages") != 0)
            return bench_fail(error, "--halo wants messages or neighbor, not '%s'", optarg);
        return 0;
    case 'i':
        status = bench_read_number("iterations", 1, MOST_ITERATIONS, &n, error);
        options->matrix.n_iterations = (int)n;
        return status;
    case 'w':
        status = bench_read_number("warmup", 0, MOST_ITERATIONS, &n, error);
        options->matrix.n_warmup = (int)n;
        return status;
    case 's':
        status = bench_read_number("solves", 1, MOST_SOLVES, &n, error);
        options->n_solves = (int)n;
        return status;
    case 'p':
        options->matrix.partition = optarg;
        return 0;
    case 'h':
        options->history = 1;
        return 0;
    default: /* json */
        options->is_json = 1;
        return 0;
    }
}

static int read_options(int n_arguments, char **arguments, struct options *out,
                        struct bench_error *error)
{
    static const struct option names[] = {{"form", required_argument, NULL, 'f'},
                                          {"halo", required_argument, NULL, 'g'},
                                          {"iterations", required_argument, NULL, 'i'},
                                          {"solves", required_argument, NULL, 's'},
                                          {"warmup", required_argument, NULL, 'w'},
                                          {"partition", required_argument, NULL, 'p'},
                                          {"history", no_argument, NULL, 'h'},
                                          {"json", no_argument, NULL, 'j'},
                                          {NULL, 0, NULL, 0}};
    struct options options = {
        .n_solves = 1,
        .matrix = {.form = SPMV_ROW, .partition = "block", .n_iterations = 50, .seed = 1}};

    if (bench_read_options(n_arguments, arguments, names, take_option, &options, error) != 0)
        return -1;
    if (optind != n_arguments - 1)
        return bench_fail(error, "name one matrix");
    options.matrix.matrix = arguments[optind];
    *out = options;
    return 0;
}

static struct solver solver_create(const struct spmv_share *share, int by_neighbors)
{
    int n_all = share->n_own + share->halo_side.n_items;
    int n_messages = share->halo_side.n_ranks + share->border_side.n_ranks;
    struct solver s = {.share = share,
                       .by_neighbors = by_neighbors,
                       .n_all = n_all,
                       .x = spmv_array((size_t)n_all, sizeof(double)),
                       .r = spmv_array((size_t)n_all, sizeof(double)),
                       .p = spmv_array((size_t)n_all, sizeof(double)),
                       .q = spmv_array((size_t)n_all, sizeof(double)),
                       .border = spmv_array((size_t)share->border_side.n_items, sizeof(double)),
                       .requests = spmv_array((size_t)n_messages + 1, sizeof(MPI_Request))};

    for (int i = 0; i < share->n_own; i++)
        s.r[i] = s.p[i] = (double)(bench_mix((uint64_t)share->own[i]) % 1000) * 1e-3;
    return s;
}

static void solver_free(struct solver *s)
{
    free(s->x);
    free(s->r);
    free(s->p);
    free(s->q);
    free(s->border);
    free(s->requests);
}

static void start_messages(struct solver *s, double *halo)
{
    const struct spmv_side *in = &s->share->halo_side, *out = &s->share->border_side;

    for (int k = 0; k < in->n_ranks; k++)
        MPI_Irecv(halo + in->displ[k], in->count[k], MPI_DOUBLE, in->rank[k], TAG, MPI_COMM_WORLD,
                  &s->requests[s->n_requests++]);
    for (int k = 0; k < out->n_ranks; k++)
        MPI_Isend(s->border + out->displ[k], out->count[k], MPI_DOUBLE, out->rank[k], TAG,
                  MPI_COMM_WORLD, &s->requests[s->n_requests++]);
}

/* Starts to send the entries of v that others need, and to receive the halo's. */
static void start_exchange(struct solver *s, double *v)
{
    const struct spmv_side *in = &s->share->halo_side, *out = &s->share->border_side;
    double *halo = v + s->share->n_own;

    for (int k = 0; k < out->n_items; k++)
        s->border[k] = v[s->share->border[k]];
    s->n_requests = 0;
    if (s->by_neighbors)
        MPI_Ineighbor_alltoallv(s->border, out->count, out->displ, MPI_DOUBLE, halo, in->count,
                                in->displ, MPI_DOUBLE, s->share->graph,
                                &s->requests[s->n_requests++]);
    else
        start_messages(s, halo);
}

static void finish_exchange(struct solver *s)
{
    MPI_Waitall(s->n_requests, s->requests, MPI_STATUSES_IGNORE);
}

/* q = A p for own rows. */
static void multiply(struct solver *s)
{
    const struct spmv_share *share = s->share;

    for (int i = 0; i < share->n_own; i++) {
        double sum = s->p[i];
        for (int k = share->start[i]; k < share->start[i + 1]; k++)
            sum += s->p[i] - s->p[share->entry[k]]; /* the diagonal adds nothing */
        s->q[i] = sum;
    }
}

static double inner(const struct solver *s, const double *a, const double *b)
{
    double sum = 0;

    for (int i = 0; i < s->share->n_own; i++)
        sum += a[i] * b[i];
    return sum;
}

/* One iteration; returns the new squared residual, by the recurrence of the paper. */
static double iterate(struct solver *s, int reorganised, double rho)
{
    double products[2], sums[2];
    int n = reorganised ? s->n_all : s->share->n_own;

    if (!reorganised) {
        start_exchange(s, s->p);
        finish_exchange(s);
    }
    multiply(s);
    products[0] = inner(s, s->p, s->q);
    products[1] = inner(s, s->q, s->q);
    if (reorganised)
        start_exchange(s, s->q);
    MPI_Allreduce(products, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (reorganised)
        finish_exchange(s);
    double alpha = rho / sums[0], beta = alpha * sums[1] / sums[0] - 1;
    for (int i = 0; i < s->share->n_own; i++)
        s->x[i] += alpha * s->p[i];
    for (int i = 0; i < n; i++) {
        s->r[i] -= alpha * s->q[i];
        s->p[i] = s->r[i] + beta * s->p[i];
    }
    return beta * rho;
}

/* The seconds of an iteration, of so many in the order in which they were; they are overwritten. */
static double typical(double *seconds, size_t n)
{
    size_t in_a_row = n < IN_A_ROW ? n : IN_A_ROW, n_runs = n - in_a_row + 1;

    if (n == 0)
        return 0;
    for (size_t i = 0; i < n_runs; i++) {
        for (size_t k = 1; k < in_a_row; k++)
            seconds[i] += seconds[i + k];
        seconds[i] /= (double)in_a_row;
    }
    bench_sort(seconds, n_runs);
    return bench_midmean(seconds, n_runs);
}

/* Overwrites the seconds of the iterations. */
static void print_results(const struct options *options, const struct spmv_share *share, int n,
                          double rho, double first, double *seconds)
{
    int n_warmup = options->matrix.n_warmup < n ? options->matrix.n_warmup : n;
    double us = 1e6 * typical(seconds + n_warmup, (size_t)(n - n_warmup));
    char residual[32];

    if (!options->is_json) {
        printf("iterations %d, squared residual %.6g of %.6g\n", n, rho, first);
        fprintf(stderr, "cg: iteration %.1f us\n", us);
        return;
    }
    struct report report = report_begin(stdout, 1);
    report_text(&report, "matrix", options->matrix.matrix);
    report_integer(&report, "rows", share->n_rows, "");
    report_integer(&report, "nonzeros", share->n_entries, "");
    report_integer(&report, "iterations", n, "");
    report_real(&report, "time", us, 3, "us");
    snprintf(residual, sizeof residual, "%.6g", rho / first);
    report_text(&report, "residual", residual);
    report_end(&report);
}

/* Notes the seconds of each iteration; returns how many there were. */
static int solve(const struct options *options, const struct spmv_share *share, int rank,
                 double *rho, double *first, double *seconds)
{
    struct solver s = solver_create(share, options->by_neighbors);
    double mine = inner(&s, s.r, s.r);
    int n = 0;

    MPI_Allreduce(&mine, first, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    *rho = *first;
    if (options->reorganised) {
        start_exchange(&s, s.r);
        finish_exchange(&s);
        memcpy(s.p, s.r, (size_t)s.n_all * sizeof *s.p);
    }
    while (n<options->matrix.n_iterations && * rho> 1e-20 * *first) {
        double begin = MPI_Wtime();
        *rho = iterate(&s, options->reorganised, *rho);
        seconds[n++] = MPI_Wtime() - begin;
        if (options->history && !options->is_json && rank == 0)
            printf("residual %d %a\n", n, *rho);
    }
    solver_free(&s);
    return n;
}

static void solve_all(const struct options *options, const struct spmv_share *share, int rank)
{
    size_t most = (size_t)options->matrix.n_iterations * (size_t)options->n_solves;
    double *seconds = spmv_array(most, sizeof *seconds), rho = 0, first = 0;
    int n = 0;

    for (int k = 0; k < options->n_solves; k++)
        n += solve(options, share, rank, &rho, &first, seconds + n);
    if (rank == 0)
        print_results(options, share, n, rho, first, seconds);
    free(seconds);
}

static int run(int n_arguments, char **arguments)
{
    struct options options;
    struct spmv_share share;
    struct bench_error error;
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (read_options(n_arguments, arguments, &options, &error) != 0) {
        if (rank == 0)
            fprintf(stderr, "cg: %s\n%s", error.text, usage);
        return 2;
    }
    if (spmv_setup(&options.matrix, &share, &error) != 0) {
        if (rank == 0)
            fprintf(stderr, "cg: %s\n", error.text);
        return 1;
    }
    solve_all(&options, &share, rank);
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
