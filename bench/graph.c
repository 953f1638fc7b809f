/*
 * graph: graph codes over the distributed array (carpool_array.h), as in Peters 2024, chapter 5.
 *
 *     graph boruvka|boruvka-owned|neighborhood|overload|work [options]
 *
 * An ordinary MPI program. Every method of --method does the same --repetitions times, on the same
 * graph, which depends on --seed only and not on the number of processes. Times are those of the
 * slowest process, medians. Requests are counted after those for one element have become one.
 * Results must be the same by all methods and, where they are known beforehand, right.
 * Exit status: 0, 1 when a result is wrong, 2 for bad arguments.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strsep */
#endif
#include "graph.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_METHODS = 40, MOST_REPETITIONS = 1000 };

static const char usage[] =
    "usage: graph boruvka|boruvka-owned|neighborhood|overload|work [options]\n"
    "  boruvka: the first round of Boruvka's algorithm; boruvka-owned: the same without what\n"
    "  finds the least edges; neighborhood: every vertex reads all its neighbors; overload: all\n"
    "  processes write and read the elements of one; work: what the array's own work takes, for\n"
    "  --elements requests, without messages\n"
    "  --graph KIND      rmat (default), rgg or gnm\n"
    "  --vertices N      of the whole graph (default 65536); rmat: a power of two\n"
    "  --edges N         of the whole graph (default 16 a vertex)\n"
    "  --scramble        rmat: vertices in random order\n"
    "  --elements N      overload: of the process that is asked (default 256); work: requests\n"
    "  --equal PERCENT   overload: of a process's requests that all make alike (default 100); the\n"
    "                    others are for elements that nobody else wants\n"
    "  --method LIST     methods of carpool_array(3) with commas between them, each with /local "
    "or\n"
    "                    /none where requests are aggregated on the asking process only, or not\n"
    "                    at all (default plain/none,plain/local,auto)\n"
    "  --memory N        bytes of requests that a process may hold (default 256 MiB)\n"
    "  --ranks-per-node N  consecutive processes on a node, for the route locality\n"
    "  --seed N          of the graph (default 1)\n"
    "  --repetitions N   default 5\n"
    "  --warmup N        repetitions before, which are checked but not timed (default 0)\n"
    "  --json            print a JSON object a line\n"
    "  --help            print this\n";

enum { BORUVKA, BORUVKA_OWNED, NEIGHBORHOOD, OVERLOAD, WORK };
static const char *const bench_names[] = {"boruvka",  "boruvka-owned", "neighborhood",
                                          "overload", "work",          NULL};
static const char *const kind_names[] = {"rmat", "rgg", "gnm", NULL};

struct options {
    int bench;
    struct graph_options graph;
    struct graph_method method[MOST_METHODS];
    int n_methods;
    int64_t n_elements, equal, memory, ranks_per_node, n_repetitions, n_warmup;
};

static struct options given = {
    .graph = {.kind = GRAPH_RMAT, .n_vertices = 65536, .n_edges = -1, .seed = 1},
    .n_elements = 256,
    .equal = 100,
    .n_repetitions = 5,
};

/* ---- arguments ---- */

static int read_methods(const struct bench_option *option, char *list, struct bench_error *error)
{
    (void)option;
    given.n_methods = 0;
    for (char *at = list, *name; (name = strsep(&at, ","));) {
        size_t length = strcspn(name, "/");
        const char *aggregation = name + length;
        if (given.n_methods == MOST_METHODS || length >= sizeof given.method[0].method)
            return bench_fail(error, "--method takes at most %d methods of some words",
                              MOST_METHODS);
        struct graph_method *method = &given.method[given.n_methods++];
        *method = (struct graph_method){.name = name};
        memcpy(method->method, name, length);
        if (strcmp(aggregation, "/local") == 0)
            method->aggregation = CARPOOL_ARRAY_LOCAL;
        else if (strcmp(aggregation, "/none") == 0)
            method->aggregation = CARPOOL_ARRAY_NONE;
        else if (*aggregation)
            return bench_fail(error, "method '%s': expected /local or /none after it", name);
    }
    return 0;
}

#define MOST (INT64_C(1) << 40)

static const struct bench_option table[] = {
    {"graph", .word = &given.graph.kind, .words = kind_names},
    {"vertices", .number = &given.graph.n_vertices, .least = 2, .most = 1 << 30},
    {"edges", .number = &given.graph.n_edges, .most = MOST},
    {"scramble", .flag = &given.graph.is_scrambled},
    {"elements", .number = &given.n_elements, .least = 1, .most = 1 << 26},
    {"equal", .number = &given.equal, .most = 100},
    {"method", .take = read_methods},
    {"memory", .number = &given.memory, .most = MOST},
    {"ranks-per-node", .number = &given.ranks_per_node, .most = 1 << 20},
    {"seed", .number = &given.graph.seed, .most = MOST},
    {"repetitions", .number = &given.n_repetitions, .least = 1, .most = MOST_REPETITIONS},
    {"warmup", .number = &given.n_warmup, .most = MOST_REPETITIONS},
    {NULL},
};

static int check(const struct bench *bench, struct bench_error *error)
{
    static char methods[] = "plain/none,plain/local,auto";
    struct graph_options *graph = &given.graph;
    int64_t n = graph->n_vertices;

    given.bench = bench->arguments.n_names == 1
                      ? bench_find_word(bench_names, bench->arguments.names[0])
                      : -1;
    if (given.bench < 0)
        return bench_fail(error, "expected one of boruvka, boruvka-owned, neighborhood, "
                                 "overload, work");
    if (graph->kind == GRAPH_RMAT && (n & (n - 1)) != 0)
        return bench_fail(error, "--vertices %lld is no power of two, which rmat needs",
                          (long long)n);
    if (graph->kind != GRAPH_RMAT && graph->is_scrambled)
        return bench_fail(error, "--scramble is for rmat");
    if (graph->n_edges < 0)
        graph->n_edges = 16 * n;
    return given.n_methods ? 0 : read_methods(NULL, methods, error);
}

/* ---- results ---- */

/* What the processes counted in one repetition, put together. */
struct totals {
    int64_t sum[2 * CARPOOL_ARRAY_MAX_STAGES + 3], last[2]; /* last: of the busiest receiver */
};

static struct totals add_up(const struct graph_counts *counts)
{
    enum { STAGES = CARPOOL_ARRAY_MAX_STAGES };
    struct totals totals = {{0}, {0, 0}};

    for (int kind = 0; kind < 2; kind++) {
        memcpy(totals.sum + kind * STAGES, counts->sent[kind], STAGES * sizeof totals.sum[0]);
        totals.last[kind] = counts->received_last[kind];
        totals.sum[2 * STAGES + kind] = counts->queued[kind];
    }
    totals.sum[2 * STAGES + 2] = counts->messages;
    MPI_Allreduce(MPI_IN_PLACE, totals.sum, 2 * STAGES + 3, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, totals.last, 2, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    return totals;
}

/* A number for each stage, "12+34+5". */
static void write_stages(const int64_t *sent, int n_stages, char *text, size_t bytes)
{
    size_t used = 0;

    for (int s = 0; s < n_stages && used < bytes; s++)
        used +=
            (size_t)snprintf(text + used, bytes - used, "%s%lld", s ? "+" : "", (long long)sent[s]);
}

static void report_counts(struct report *report, const struct graph_counts *counts,
                          const struct totals *totals)
{
    static const char *const kinds[] = {"writes", "reads"};
    enum { STAGES = CARPOOL_ARRAY_MAX_STAGES };
    char text[STAGES * 21];

    report_integer(report, "steps", counts->n_steps, "");
    report_integer(report, "rounds", counts->rounds, "");
    report_integer(report, "messages", totals->sum[2 * STAGES + 2], "");
    for (int kind = 0; kind < 2; kind++) {
        report_integer(report, kinds[kind], totals->sum[2 * STAGES + kind], "");
        report->about = kinds[kind];
        write_stages(totals->sum + kind * STAGES, counts->n_stages, text, sizeof text);
        report_text(report, "sent by stage", text);
        report_integer(report, "received last", totals->last[kind], "");
        report->about = "";
    }
}

static void report_graph(struct report *report)
{
    report_text(report, "benchmark", bench_names[given.bench]);
    if (given.bench == OVERLOAD) {
        report_integer(report, "elements", given.n_elements, "");
        if (given.equal < 100)
            report_integer(report, "equal", given.equal, "%");
        return;
    }
    report_text(report, "graph",
                given.graph.is_scrambled ? "rmat-scrambled" : kind_names[given.graph.kind]);
    report_integer(report, "vertices", given.graph.n_vertices, "");
    report_integer(report, "edges", given.graph.n_edges, "");
    report_integer(report, "seed", given.graph.seed, "");
}

/* us: of all repetitions; doubling_us: of these, what pointer doubling took. */
static void report_method(const struct bench *bench, const struct graph_method *method, double *us,
                          double *doubling_us, int64_t n_wrong, const struct graph_run *last,
                          const struct totals *totals)
{
    struct report report = report_begin(stdout, bench->arguments.is_json);
    size_t n = (size_t)given.n_repetitions;

    report_graph(&report);
    report_integer(&report, "ranks", bench->n_ranks, "");
    report_text(&report, "method", method->name);
    report_text(&report, "taken", last->taken);
    report_real(&report, "time median", bench_median(us, n), 1, "us");
    report_real(&report, "time least", us[0], 1, "us");
    report_real(&report, "time most", us[n - 1], 1, "us");
    if (given.bench == BORUVKA || given.bench == BORUVKA_OWNED)
        report_real(&report, "doubling median", bench_median(doubling_us, n), 1, "us");
    report_counts(&report, &last->counts, totals);
    report_checksum(&report, last->checksum);
    report_integer(&report, "wrong", n_wrong, "");
    report_end(&report);
    if (!bench->arguments.is_json)
        putchar('\n');
    fflush(stdout); /* a run that is cut off keeps what it has */
}

static void run_bench(const struct graph *graph, const struct graph_method *method,
                      struct graph_run *runs)
{
    struct graph_setting setting = {method, given.memory, (int)given.ranks_per_node,
                                    given.n_elements, given.equal};
    int n = (int)(given.n_warmup + given.n_repetitions);

    memset(runs, 0, (size_t)n * sizeof *runs);
    if (given.bench == BORUVKA)
        graph_boruvka(graph, &setting, given.graph.seed, n, runs);
    else if (given.bench == BORUVKA_OWNED)
        graph_boruvka_owned(graph, &setting, given.graph.seed, n, runs);
    else if (given.bench == NEIGHBORHOOD)
        graph_neighborhood(graph, &setting, given.graph.seed, n, runs);
    else
        graph_overload(&setting, n, runs);
}

/* All methods; returns how many results are wrong or differ from the first method's. */
static int64_t run_methods(const struct bench *bench, const struct graph *graph)
{
    size_t n_before = (size_t)given.n_warmup, n = n_before + (size_t)given.n_repetitions;
    struct graph_run *runs = bench_need(n, sizeof *runs);
    double *us = bench_need(2 * n, sizeof *us);
    uint64_t *expected = bench_need(n, sizeof *expected);
    int64_t all_wrong = 0;

    for (int m = 0; m < given.n_methods; m++) {
        int64_t n_wrong = 0;
        run_bench(graph, &given.method[m], runs);
        for (size_t r = 0; r < n; r++) {
            us[r] = runs[r].seconds * 1e6;
            us[n + r] = runs[r].doubling_seconds * 1e6;
            n_wrong += runs[r].n_wrong;
        }
        MPI_Allreduce(MPI_IN_PLACE, us, (int)(2 * n), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, &n_wrong, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        for (size_t r = 0; r < n; r++) {
            expected[r] = m == 0 ? runs[r].checksum : expected[r];
            n_wrong += runs[r].checksum != expected[r];
        }
        struct totals totals = add_up(&runs[n - 1].counts);
        if (bench->rank == 0)
            report_method(bench, &given.method[m], us + n_before, us + n + n_before, n_wrong,
                          &runs[n - 1], &totals);
        all_wrong += n_wrong;
    }
    free(runs);
    free(us);
    free(expected);
    return all_wrong;
}

static int run(const struct bench *bench, struct bench_error *error)
{
    struct graph graph = {0};

    if (given.bench == WORK) {
        if (bench->rank == 0)
            graph_work(given.n_elements, bench->arguments.is_json);
        return 0;
    }
    if (given.bench != OVERLOAD)
        graph_make(&given.graph, given.bench != BORUVKA, &graph);
    int64_t n_wrong = run_methods(bench, &graph);
    graph_free(&graph);
    if (n_wrong)
        return bench_fail(error, "%lld results are wrong or differ between methods",
                          (long long)n_wrong);
    return 0;
}

const struct bench_program bench_program = {
    "graph", usage, "ask for a smaller graph", table, .takes_names = 1, .check = check, .run = run};
