/*
 * overhead: what a preloaded library costs per call when it has nothing to do.
 *
 * An ordinary MPI program. On a graph communicator without neighbors it calls
 * MPI_Neighbor_alltoallv, which a preload may have wrapped, and PMPI_Neighbor_alltoallv, which
 * goes straight to MPI, in alternating blocks. Blocks that follow each other see the same machine,
 * so their ratio is steadier than the times; printed is the median over the pairs of blocks. Blocks
 * are short, so that most see no interruption by other processes.
 *
 *     overhead [--calls N] [--blocks N] [--json]
 *
 * One rank is enough; with more, each pair counts with its slowest rank. Without a preload the
 * difference is that of two names for one function: the noise of the measurement.
 * Exit status: 0, or 2 for bad arguments.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* getopt_long */
#endif
#include "arguments.h"
#include "common.h"
#include "report.h"

#include <getopt.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_CALLS = 100000000, MOST_BLOCKS = 100000 };

static const char usage[] =
    "usage: overhead [options]\n"
    "  times MPI_Neighbor_alltoallv without neighbors against its PMPI_ form\n"
    "  --calls N    calls in a block (default 1000)\n"
    "  --blocks N   pairs of blocks (default 1001)\n"
    "  --json       print one JSON object on one line\n"
    "  --help       print this\n";

struct options {
    int64_t n_calls, n_blocks;
    int is_json, wants_help;
};

typedef int alltoallv_function(const void *, const int *, const int *, MPI_Datatype, void *,
                               const int *, const int *, MPI_Datatype, MPI_Comm);

/* ---- arguments ---- */

static int take_option(int letter, void *to, struct bench_error *error)
{
    struct options *options = to;

    switch (letter) {
    case 'c':
        if (bench_parse_integer(optarg, 1, MOST_CALLS, &options->n_calls) == 0)
            return 0;
        return bench_fail(error, "--calls wants a number from 1 to %d, not '%s'", MOST_CALLS,
                          optarg);
    case 'b':
        if (bench_parse_integer(optarg, 1, MOST_BLOCKS, &options->n_blocks) == 0)
            return 0;
        return bench_fail(error, "--blocks wants a number from 1 to %d, not '%s'", MOST_BLOCKS,
                          optarg);
    case 'j':
        options->is_json = 1;
        return 0;
    default: /* help */
        options->wants_help = 1;
        return 0;
    }
}

static int read_options(int n_arguments, char **arguments, struct options *options,
                        struct bench_error *error)
{
    static const struct option names[] = {
        {"calls", required_argument, NULL, 'c'},
        {"blocks", required_argument, NULL, 'b'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *options = (struct options){.n_calls = 1000, .n_blocks = 1001};
    if (bench_read_options(n_arguments, arguments, names, take_option, options, error) != 0)
        return -1;
    if (optind < n_arguments)
        return bench_fail(error, "argument '%s' is not wanted", arguments[optind]);
    return 0;
}

/* ---- measuring ---- */

/* Seconds that a block of calls takes; no call sends or receives anything. */
static double time_block(alltoallv_function *call, int64_t n_calls, MPI_Comm graph)
{
    const int zero[1] = {0};
    char nothing[2] = {0};

    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int64_t i = 0; i < n_calls; i++)
        call(nothing, zero, zero, MPI_CHAR, nothing + 1, zero, zero, MPI_CHAR, graph);
    return MPI_Wtime() - begin;
}

static void time_all(const struct options *options, MPI_Comm graph, double *wrapped, double *plain)
{
    /* One pair unmeasured: first calls of a communicator may set things up. */
    (void)time_block(MPI_Neighbor_alltoallv, options->n_calls, graph);
    (void)time_block(PMPI_Neighbor_alltoallv, options->n_calls, graph);
    for (int64_t b = 0; b < options->n_blocks; b++) {
        wrapped[b] = time_block(MPI_Neighbor_alltoallv, options->n_calls, graph);
        plain[b] = time_block(PMPI_Neighbor_alltoallv, options->n_calls, graph);
    }
}

static MPI_Comm graph_without_neighbors(void)
{
    MPI_Comm graph;
    int none[1] = {0};

    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, none, MPI_UNWEIGHTED, 0, none, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &graph);
    return graph;
}

/* ---- results ---- */

static void print_results(const struct options *options, double *wrapped, double *plain,
                          double *ratio)
{
    struct report report = report_begin(stdout, options->is_json);
    size_t n = (size_t)options->n_blocks;
    double per_call = 1e9 / (double)options->n_calls;
    int n_ranks;

    for (size_t b = 0; b < n; b++)
        ratio[b] = wrapped[b] / plain[b];
    bench_sort(ratio, n);
    bench_sort(wrapped, n);
    bench_sort(plain, n);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    double wrapped_ns = per_call * bench_quantile(wrapped, n, 0.5);
    double plain_ns = per_call * bench_quantile(plain, n, 0.5);
    report_text(&report, "call", "MPI_Neighbor_alltoallv without neighbors");
    report_integer(&report, "ranks", n_ranks, "");
    report_integer(&report, "blocks", options->n_blocks, "");
    report_integer(&report, "calls per block", options->n_calls, "");
    report_real(&report, "MPI call", wrapped_ns, 1, "ns");
    report_real(&report, "PMPI call", plain_ns, 1, "ns");
    report_real(&report, "difference", wrapped_ns - plain_ns, 1, "ns");
    report_real(&report, "ratio median", bench_quantile(ratio, n, 0.5), 4, "");
    report_real(&report, "ratio lower quartile", bench_quantile(ratio, n, 0.25), 4, "");
    report_real(&report, "ratio upper quartile", bench_quantile(ratio, n, 0.75), 4, "");
    report_end(&report);
}

/* A lone rank without memory cannot leave through MPI_Finalize: abort the job. */
static double *block_array(int64_t n_blocks)
{
    double *array = bench_array((size_t)n_blocks, sizeof *array);

    if (!array) {
        fprintf(stderr, "overhead: no memory for %lld times; ask for fewer --blocks\n",
                (long long)n_blocks);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return array;
}

static void measure(const struct options *options)
{
    double *mine[2] = {block_array(options->n_blocks), block_array(options->n_blocks)};
    double *slowest[2] = {block_array(options->n_blocks), block_array(options->n_blocks)};
    double *ratio = block_array(options->n_blocks);
    MPI_Comm graph = graph_without_neighbors();
    int rank;

    time_all(options, graph, mine[0], mine[1]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 2; i++)
        MPI_Reduce(mine[i], slowest[i], (int)options->n_blocks, MPI_DOUBLE, MPI_MAX, 0,
                   MPI_COMM_WORLD);
    if (rank == 0)
        print_results(options, slowest[0], slowest[1], ratio);
    MPI_Comm_free(&graph);
    for (int i = 0; i < 2; i++) {
        free(mine[i]);
        free(slowest[i]);
    }
    free(ratio);
}

/* All ranks return the same exit status. */
static int run(int n_arguments, char **arguments)
{
    struct options options;
    struct bench_error error;
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (read_options(n_arguments, arguments, &options, &error) != 0) {
        if (rank == 0)
            fprintf(stderr, "overhead: %s\n%s", error.text, usage);
        return 2;
    }
    if (!options.wants_help)
        measure(&options);
    else if (rank == 0)
        fputs(usage, stdout);
    return 0;
}

int main(int n_arguments, char **arguments)
{
    MPI_Init(&n_arguments, &arguments);
    int status = run(n_arguments, arguments);
    MPI_Finalize();
    return status;
}
