/*
 * overhead: what a preloaded library costs per call when it has nothing to do.
 *
 * An ordinary MPI program. On a graph communicator without neighbors it calls
 * MPI_Neighbor_alltoallv, which a preload may have wrapped, and MPI's own function (alone.h), in
 * alternating blocks. Blocks that follow each other see the same machine, so their ratio is
 * steadier than the times; printed is the median over the pairs of blocks. Blocks are short, so
 * that most see no interruption by other processes.
 *
 *     overhead [--calls N] [--blocks N] [--json]
 *
 * One rank is enough; with more, each pair counts with its slowest rank. Without a preload the
 * difference is that of two names for one function: the noise of the measurement.
 * Exit status: 0, or 2 for bad arguments.
 */
#include "alone.h"
#include "main.h"
#include "report.h"
#include "together.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_CALLS = 100000000, MOST_BLOCKS = 100000 };

static const char usage[] = "usage: overhead [options]\n"
                            "  times MPI_Neighbor_alltoallv without neighbors against MPI's own\n"
                            "  --calls N    calls in a block (default 1000)\n"
                            "  --blocks N   pairs of blocks (default 1001)\n"
                            "  --json       print one JSON object on one line\n"
                            "  --help       print this\n";

static int64_t n_calls = 1000, n_blocks = 1001;

static const struct bench_option table[] = {
    {"calls", .number = &n_calls, .least = 1, .most = MOST_CALLS},
    {"blocks", .number = &n_blocks, .least = 1, .most = MOST_BLOCKS},
    {NULL},
};

typedef int alltoallv_function(const void *, const int *, const int *, MPI_Datatype, void *,
                               const int *, const int *, MPI_Datatype, MPI_Comm);

/* ---- measuring ---- */

/* Seconds that a block of calls takes; no call sends or receives anything. */
static double time_block(alltoallv_function *call, MPI_Comm graph)
{
    const int zero[1] = {0};
    char nothing[2] = {0};

    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int64_t i = 0; i < n_calls; i++)
        call(nothing, zero, zero, MPI_CHAR, nothing + 1, zero, zero, MPI_CHAR, graph);
    return MPI_Wtime() - begin;
}

static void time_all(MPI_Comm graph, double *wrapped, double *plain)
{
    /* One pair unmeasured: first calls of a communicator may set things up. */
    (void)time_block(MPI_Neighbor_alltoallv, graph);
    (void)time_block(ALONE(Neighbor_alltoallv), graph);
    for (int64_t b = 0; b < n_blocks; b++) {
        wrapped[b] = time_block(MPI_Neighbor_alltoallv, graph);
        plain[b] = time_block(ALONE(Neighbor_alltoallv), graph);
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

static void print_results(const struct bench *bench, double *wrapped, double *plain, double *ratio)
{
    struct report report = report_begin(stdout, bench->arguments.is_json);
    size_t n = (size_t)n_blocks;

    for (size_t b = 0; b < n; b++)
        ratio[b] = wrapped[b] / plain[b];
    double wrapped_ns = 1e9 / (double)n_calls * bench_median(wrapped, n);
    double plain_ns = 1e9 / (double)n_calls * bench_median(plain, n);
    report_text(&report, "call", "MPI_Neighbor_alltoallv without neighbors");
    report_integer(&report, "ranks", bench->n_ranks, "");
    report_integer(&report, "blocks", n_blocks, "");
    report_integer(&report, "calls per block", n_calls, "");
    report_real(&report, "MPI call", wrapped_ns, 1, "ns");
    report_real(&report, "PMPI call", plain_ns, 1, "ns");
    report_real(&report, "difference", wrapped_ns - plain_ns, 1, "ns");
    report_quartiles(&report, "ratio", ratio, n, 4, "");
    report_end(&report);
}

static int run(const struct bench *bench, struct bench_error *error)
{
    size_t n = (size_t)n_blocks;
    double *wrapped = bench_need(n, sizeof *wrapped), *plain = bench_need(n, sizeof *plain);
    double *ratio = bench_need(n, sizeof *ratio);
    MPI_Comm graph = graph_without_neighbors();

    (void)error;
    time_all(graph, wrapped, plain);
    bench_slowest(wrapped, n, MPI_COMM_WORLD);
    bench_slowest(plain, n, MPI_COMM_WORLD);
    if (bench->rank == 0)
        print_results(bench, wrapped, plain, ratio);
    MPI_Comm_free(&graph);
    free(wrapped);
    free(plain);
    free(ratio);
    return 0;
}

const struct bench_program bench_program = {"overhead", usage, "ask for fewer --blocks", table,
                                            .run = run};
