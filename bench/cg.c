/*
 * cg: conjugate gradients with messages to a few others, in the two forms of [Selvitopi-embed].
 *
 *   cg [--form conventional|reorganised] [--halo messages|neighbor] [--iterations N] [--solves N]
 *      [--warmup N] [--partition block|metis|FILE] [--map klf|klr] [--nonzero-ps N] [--history]
 *      [--json] MATRIX.mtx[.gz]
 *
 * Conventional (figure 1): the entries of p that other ranks need are sent, then q = A p, then one
 * MPI_Allreduce of both inner products. Reorganised (figure 2): the entries of q are sent before
 * that MPI_Allreduce and received after it; every rank keeps r and p for its halo, too. So both
 * phases of communication are next to each other. With --halo neighbor the entries travel by
 * MPI_Ineighbor_alltoallv on a graph communicator instead of MPI_Isend and MPI_Irecv.
 *
 * --map numbers the parts so that those that exchange much are few steps of the reduction apart
 * (the paper's section 4; powers of two). In a simulation computation takes no time; --nonzero-ps
 * charges it: a rank sleeps so long for each of its nonzeros, and for each entry of the two inner
 * products and three vector updates.
 *
 * A is the Laplacian of the matrix's graph plus 1 on the diagonal (the matrix must be symmetric;
 * its values are not used), b is all ones times a hash. --history prints the squared residual of
 * each iteration to the last bit. The time is that of an iteration on rank 0, without the first
 * ones that --warmup names: the mean of the middle half of all runs of IN_A_ROW iterations, since a
 * rank may be early in one iteration and late in the next, for ever. Exit status: 0, 1 if the input
 * cannot be used, 2 for bad arguments.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* nanosleep */
#endif
#include "planner/grid/map.h"
#include "report.h"
#include "spmv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAG = 7, MOST_ITERATIONS = 1000000, MOST_SOLVES = 1000, IN_A_ROW = 4 };

static const char usage[] =
    "usage: cg [options] MATRIX.mtx[.gz]\n"
    "  --form conventional|reorganised   messages before the product, or beside the reduction\n"
    "  --halo messages|neighbor          by MPI_Isend (default) or MPI_Ineighbor_alltoallv\n"
    "  --iterations N                    at most (default 50)\n"
    "  --solves N                        the same system so many times (default 1)\n"
    "  --warmup N                        iterations not timed, of all solves' (default 0)\n"
    "  --partition block|metis|FILE      as spmv (default block)\n"
    "  --map none|klf|klr        how parts become ranks, for reductions that carry messages\n"
    "  --nonzero-ps N            charge computation: picoseconds for each nonzero (default 0)\n"
    "  --history                         print the squared residual of each iteration\n"
    "  --json                            print one JSON object on one line instead\n"
    "  --help                            print this\n";

enum { CONVENTIONAL, REORGANISED };
enum { MESSAGES, NEIGHBOR };

static const char *const forms[] = {"conventional", "reorganised", NULL};
static const char *const halos[] = {"messages", "neighbor", NULL};
static const char *const maps[] = {"none", "klf", "klr", NULL}; /* enum cpl_map */

_Static_assert(CPL_MAP_KLF == 1 && CPL_MAP_KLR == 2, "places among the names of maps");

static int form = CONVENTIONAL, halo = MESSAGES, map, history, n_solves = 1;
static int64_t nonzero_ps;
static struct spmv_options given = {
    .form = SPMV_ROW, .partition = "block", .n_iterations = 50, .seed = 1};

static const struct bench_option table[] = {
    {"form", .word = &form, .words = forms},
    {"halo", .word = &halo, .words = halos},
    {"iterations", .count = &given.n_iterations, .least = 1, .most = MOST_ITERATIONS},
    {"solves", .count = &n_solves, .least = 1, .most = MOST_SOLVES},
    {"warmup", .count = &given.n_warmup, .most = MOST_ITERATIONS},
    {"partition", .text = &given.partition},
    {"map", .word = &map, .words = maps},
    {"nonzero-ps", .number = &nonzero_ps, .most = 1000000},
    {"history", .flag = &history},
    {NULL},
};

/* ---- numbers of the parts ---- */

/* Who sends how many entries to whom. The matrix is symmetric: line j lists who needs entry j. */
static int find_pattern(const struct matrix *lines, int n_parts, const int *part,
                        struct cpl_pattern *pattern, struct bench_error *error)
{
    int *seen = bench_array((size_t)n_parts, sizeof *seen);
    struct cpl_pattern_entry *entry = bench_array(matrix_entries(lines) + 1, sizeof *entry);
    struct cpl_error why = {"no memory"};
    int64_t n = 0;
    int status = seen && entry ? 0 : -1;

    for (int j = 0; j < lines->n_rows && status == 0; j++)
        for (size_t k = lines->start[j]; k < lines->start[j + 1]; k++) {
            int to = part[lines->col[k]];
            if (to == part[j] || seen[to] == j + 1)
                continue;
            seen[to] = j + 1;
            entry[n++] = (struct cpl_pattern_entry){part[j], to, 1, -1};
        }
    if (status != 0 || cpl_pattern_build(n_parts, entry, n, pattern, &why))
        status = bench_fail(error, "the pattern of %d parts: %s", n_parts, why.text);
    free(seen);
    free(entry);
    return status;
}

/* Parts become corners of the hypercube by a map, and ranks are the corners of their numbers. */
static int renumber(const struct matrix *lines, int n_parts, int *part, struct bench_error *error)
{
    int32_t size[CPL_MAX_DIMENSIONS], n_dims = 0;
    int32_t *position = bench_array((size_t)n_parts, sizeof *position);
    struct cpl_pattern pattern;
    struct cpl_machine machine;
    struct cpl_grid grid;
    struct cpl_error why;

    while (1 << n_dims < n_parts)
        size[n_dims++] = 2;
    if (n_parts < 2 || 1 << n_dims != n_parts) {
        free(position);
        return bench_fail(error, "--map %s is for powers of two, not for %d ranks", maps[map],
                          n_parts);
    }
    if (!position || find_pattern(lines, n_parts, part, &pattern, error) != 0) {
        free(position);
        return -1;
    }
    enum cpl_status status = cpl_machine_init(n_parts, n_parts, &machine, &why);
    if (!status) {
        status = cpl_grid_init(&grid, n_parts, n_dims, size, &why);
        if (!status)
            status = cpl_map_make((enum cpl_map)map, &pattern, &machine, &grid, position, &why);
        cpl_machine_free(&machine);
    }
    for (int i = 0; i < lines->n_rows && !status; i++)
        part[i] = position[part[i]];
    cpl_pattern_free(&pattern);
    free(position);
    return status ? bench_fail(error, "--map %s: %s", maps[map], why.text) : 0;
}

static int check(const struct bench *bench, struct bench_error *error)
{
    given.renumber = map ? renumber : NULL;
    return spmv_take_matrix(bench, &given, error);
}

/* The vectors of a rank: own entries, then, of p, q and r, those of the halo. */
struct solver {
    const struct spmv_share *share;
    int by_neighbors, n_all;
    double *x, *r, *p, *q;
    double *border;
    int n_requests;
    MPI_Request *requests;
};

static struct solver solver_create(const struct spmv_share *share, int by_neighbors)
{
    int n_all = share->n_own + share->halo_side.n_items;
    int n_messages = share->halo_side.n_ranks + share->border_side.n_ranks;
    struct solver s = {.share = share,
                       .by_neighbors = by_neighbors,
                       .n_all = n_all,
                       .x = bench_need((size_t)n_all, sizeof(double)),
                       .r = bench_need((size_t)n_all, sizeof(double)),
                       .p = bench_need((size_t)n_all, sizeof(double)),
                       .q = bench_need((size_t)n_all, sizeof(double)),
                       .border = bench_need((size_t)share->border_side.n_items, sizeof(double)),
                       .requests = bench_need((size_t)n_messages + 1, sizeof(MPI_Request))};

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

static void start_messages(struct solver *s, double *outer)
{
    const struct spmv_side *in = &s->share->halo_side, *out = &s->share->border_side;

    for (int k = 0; k < in->n_ranks; k++)
        MPI_Irecv(outer + in->displ[k], in->count[k], MPI_DOUBLE, in->rank[k], TAG, MPI_COMM_WORLD,
                  &s->requests[s->n_requests++]);
    for (int k = 0; k < out->n_ranks; k++)
        MPI_Isend(s->border + out->displ[k], out->count[k], MPI_DOUBLE, out->rank[k], TAG,
                  MPI_COMM_WORLD, &s->requests[s->n_requests++]);
}

/* Starts to send the entries of v that others need, and to receive the halo's. */
static void start_exchange(struct solver *s, double *v)
{
    const struct spmv_side *in = &s->share->halo_side, *out = &s->share->border_side;
    double *outer = v + s->share->n_own;

    for (int k = 0; k < out->n_items; k++)
        s->border[k] = v[s->share->border[k]];
    s->n_requests = 0;
    if (s->by_neighbors)
        MPI_Ineighbor_alltoallv(s->border, out->count, out->displ, MPI_DOUBLE, outer, in->count,
                                in->displ, MPI_DOUBLE, s->share->graph,
                                &s->requests[s->n_requests++]);
    else
        start_messages(s, outer);
}

static void finish_exchange(struct solver *s)
{
    MPI_Waitall(s->n_requests, s->requests, MPI_STATUSES_IGNORE);
}

/* Charges the computation of so many nonzeros or entries of a vector. */
static void compute(int64_t n)
{
    int64_t ns = n * nonzero_ps / 1000;
    struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

    if (ns > 0)
        nanosleep(&time, NULL);
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
    compute(share->start[share->n_own]);
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
    compute(2 * (int64_t)s->share->n_own);
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
    compute(s->share->n_own + 2 * (int64_t)n);
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
static void print_results(int is_json, const struct spmv_share *share, int n, double rho,
                          double first, double *seconds)
{
    int n_warmup = given.n_warmup < n ? given.n_warmup : n;
    double us = 1e6 * typical(seconds + n_warmup, (size_t)(n - n_warmup));
    char residual[32];

    if (!is_json) {
        printf("iterations %d, squared residual %.6g of %.6g\n", n, rho, first);
        fprintf(stderr, "cg: iteration %.1f us\n", us);
        return;
    }
    struct report report = report_begin(stdout, 1);
    spmv_report_matrix(&report, &given, share);
    report_integer(&report, "iterations", n, "");
    report_real(&report, "time", us, 3, "us");
    snprintf(residual, sizeof residual, "%.6g", rho / first);
    report_text(&report, "residual", residual);
    report_end(&report);
}

/* Notes the seconds of each iteration; returns how many there were. */
static int solve(const struct spmv_share *share, int prints, double *rho, double *first,
                 double *seconds)
{
    struct solver s = solver_create(share, halo == NEIGHBOR);
    double mine = inner(&s, s.r, s.r);
    int n = 0;

    MPI_Allreduce(&mine, first, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    *rho = *first;
    if (form == REORGANISED) {
        start_exchange(&s, s.r);
        finish_exchange(&s);
        memcpy(s.p, s.r, (size_t)s.n_all * sizeof *s.p);
    }
    while (n<given.n_iterations && * rho> 1e-20 * *first) {
        double begin = MPI_Wtime();
        *rho = iterate(&s, form == REORGANISED, *rho);
        seconds[n++] = MPI_Wtime() - begin;
        if (prints)
            printf("residual %d %a\n", n, *rho);
    }
    solver_free(&s);
    return n;
}

static int run(const struct bench *bench, struct bench_error *error)
{
    int is_json = bench->arguments.is_json, prints = history && !is_json && bench->rank == 0, n = 0;
    struct spmv_share share;
    double rho = 0, first = 0;

    if (spmv_setup(&given, &share, error) != 0)
        return -1;
    double *seconds = bench_need((size_t)given.n_iterations * (size_t)n_solves, sizeof *seconds);
    for (int k = 0; k < n_solves; k++)
        n += solve(&share, prints, &rho, &first, seconds + n);
    if (bench->rank == 0)
        print_results(is_json, &share, n, rho, first, seconds);
    free(seconds);
    spmv_share_free(&share);
    return 0;
}

const struct bench_program bench_program = {
    "cg", usage, spmv_remedy, table, .takes_names = 1, .check = check, .run = run};
