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
#define _GNU_SOURCE /* getopt_long */
#endif
#include "graph.h"
#include "arguments.h"
#include "report.h"

#include <getopt.h>
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

enum bench { BORUVKA, BORUVKA_OWNED, NEIGHBORHOOD, OVERLOAD, WORK, N_BENCHES };
static const char *const bench_names[] = {"boruvka", "boruvka-owned", "neighborhood", "overload",
                                          "work"};
static const char *const kind_names[] = {"rmat", "rgg", "gnm"};

struct options {
    enum bench bench;
    struct graph_options graph;
    char *methods; /* own; the names of method lie in it */
    struct graph_method method[MOST_METHODS];
    int n_methods;
    int64_t n_elements, memory, ranks_per_node, n_repetitions, n_warmup;
    int is_json, wants_help;
};

/* ---- arguments ---- */

static int find_name(const char *const *names, int n, const char *name)
{
    int k = 0;

    while (k < n && strcmp(names[k], name) != 0)
        k++;
    return k < n ? k : -1;
}

static int read_methods(const char *list, struct options *options, struct bench_error *error)
{
    free(options->methods);
    options->n_methods = 0;
    options->methods = strdup(list);
    for (char *at = options->methods, *name; at && (name = strsep(&at, ","));) {
        size_t length = strcspn(name, "/");
        const char *aggregation = name + length;
        if (options->n_methods == MOST_METHODS || length >= sizeof options->method[0].method)
            return bench_fail(error, "--method takes at most %d methods of some words",
                              MOST_METHODS);
        struct graph_method *method = &options->method[options->n_methods++];
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

static int take_option(int letter, void *to, struct bench_error *error)
{
    static const int64_t most = INT64_C(1) << 40;
    struct options *options = to;
    int kind;

    switch (letter) {
    case 'g':
        kind = find_name(kind_names, 3, optarg);
        options->graph.kind = (enum graph_kind)kind;
        return kind >= 0 ? 0
                         : bench_fail(error, "--graph wants rmat, rgg or gnm, not '%s'", optarg);
    case 'v':
        return bench_read_number("vertices", 2, INT64_C(1) << 30, &options->graph.n_vertices,
                                 error);
    case 'e':
        return bench_read_number("edges", 0, most, &options->graph.n_edges, error);
    case 'x':
        options->graph.is_scrambled = 1;
        return 0;
    case 'n':
        return bench_read_number("elements", 1, INT64_C(1) << 26, &options->n_elements, error);
    case 'm':
        return read_methods(optarg, options, error);
    case 'b':
        return bench_read_number("memory", 0, most, &options->memory, error);
    case 'p':
        return bench_read_number("ranks-per-node", 0, 1 << 20, &options->ranks_per_node, error);
    case 's':
        return bench_read_number("seed", 0, most, &options->graph.seed, error);
    case 'r':
        return bench_read_number("repetitions", 1, MOST_REPETITIONS, &options->n_repetitions,
                                 error);
    case 'w':
        return bench_read_number("warmup", 0, MOST_REPETITIONS, &options->n_warmup, error);
    case 'j':
        options->is_json = 1;
        return 0;
    default: /* help */
        options->wants_help = 1;
        return 0;
    }
}

static int check_options(int n_arguments, char **arguments, struct options *options,
                         struct bench_error *error)
{
    int64_t n = options->graph.n_vertices;

    if (options->wants_help)
        return 0;
    int bench = optind < n_arguments ? find_name(bench_names, N_BENCHES, arguments[optind]) : -1;
    if (bench < 0 || optind + 1 < n_arguments)
        return bench_fail(error, "expected one of boruvka, boruvka-owned, neighborhood, "
                                 "overload, work");
    options->bench = (enum bench)bench;
    if (options->graph.kind == GRAPH_RMAT && (n & (n - 1)) != 0)
        return bench_fail(error, "--vertices %lld is no power of two, which rmat needs",
                          (long long)n);
    if (options->graph.kind != GRAPH_RMAT && options->graph.is_scrambled)
        return bench_fail(error, "--scramble is for rmat");
    if (options->graph.n_edges < 0)
        options->graph.n_edges = 16 * n;
    return options->n_methods ? 0 : read_methods("plain/none,plain/local,auto", options, error);
}

static int read_options(int n_arguments, char **arguments, struct options *options,
                        struct bench_error *error)
{
    static const struct option names[] = {
        {"graph", required_argument, NULL, 'g'},
        {"vertices", required_argument, NULL, 'v'},
        {"edges", required_argument, NULL, 'e'},
        {"scramble", no_argument, NULL, 'x'},
        {"elements", required_argument, NULL, 'n'},
        {"method", required_argument, NULL, 'm'},
        {"memory", required_argument, NULL, 'b'},
        {"ranks-per-node", required_argument, NULL, 'p'},
        {"seed", required_argument, NULL, 's'},
        {"repetitions", required_argument, NULL, 'r'},
        {"warmup", required_argument, NULL, 'w'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *options = (struct options){
        .graph = {.kind = GRAPH_RMAT, .n_vertices = 65536, .n_edges = -1, .seed = 1},
        .n_elements = 256,
        .n_repetitions = 5,
    };
    if (bench_read_options(n_arguments, arguments, names, take_option, options, error) != 0)
        return -1;
    return check_options(n_arguments, arguments, options, error);
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
    char name[60], text[STAGES * 21];

    report_integer(report, "steps", counts->n_steps, "");
    report_integer(report, "rounds", counts->rounds, "");
    report_integer(report, "messages", totals->sum[2 * STAGES + 2], "");
    for (int kind = 0; kind < 2; kind++) {
        report_integer(report, kinds[kind], totals->sum[2 * STAGES + kind], "");
        snprintf(name, sizeof name, "%s sent by stage", kinds[kind]);
        write_stages(totals->sum + kind * STAGES, counts->n_stages, text, sizeof text);
        report_text(report, name, text);
        snprintf(name, sizeof name, "%s received last", kinds[kind]);
        report_integer(report, name, totals->last[kind], "");
    }
}

static void report_graph(struct report *report, const struct options *options)
{
    report_text(report, "benchmark", bench_names[options->bench]);
    if (options->bench == OVERLOAD) {
        report_integer(report, "elements", options->n_elements, "");
        return;
    }
    report_text(report, "graph",
                options->graph.is_scrambled ? "rmat-scrambled" : kind_names[options->graph.kind]);
    report_integer(report, "vertices", options->graph.n_vertices, "");
    report_integer(report, "edges", options->graph.n_edges, "");
    report_integer(report, "seed", options->graph.seed, "");
}

/* us: of all repetitions; doubling_us: of these, what pointer doubling took. */
static void report_method(const struct options *options, const struct graph_method *method,
                          double *us, double *doubling_us, int64_t n_wrong,
                          const struct graph_run *last, const struct totals *totals)
{
    struct report report = report_begin(stdout, options->is_json);
    size_t n = (size_t)options->n_repetitions;
    char checksum[30];
    int n_ranks;

    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    bench_sort(us, n);
    report_graph(&report, options);
    report_integer(&report, "ranks", n_ranks, "");
    report_text(&report, "method", method->name);
    report_text(&report, "taken", last->taken);
    report_real(&report, "time median", bench_quantile(us, n, 0.5), 1, "us");
    report_real(&report, "time least", us[0], 1, "us");
    report_real(&report, "time most", us[n - 1], 1, "us");
    if (options->bench == BORUVKA || options->bench == BORUVKA_OWNED) {
        bench_sort(doubling_us, n);
        report_real(&report, "doubling median", bench_quantile(doubling_us, n, 0.5), 1, "us");
    }
    report_counts(&report, &last->counts, totals);
    snprintf(checksum, sizeof checksum, "%016llx", (unsigned long long)last->checksum);
    report_text(&report, "checksum", checksum);
    report_integer(&report, "wrong", n_wrong, "");
    report_end(&report);
    if (!options->is_json)
        putchar('\n');
    fflush(stdout); /* a run that is cut off keeps what it has */
}

static void run_bench(const struct options *options, const struct graph *graph,
                      const struct graph_method *method, struct graph_run *runs)
{
    struct graph_setting setting = {method, options->memory, (int)options->ranks_per_node,
                                    options->n_elements};
    int n = (int)(options->n_warmup + options->n_repetitions);

    memset(runs, 0, (size_t)n * sizeof *runs);
    if (options->bench == BORUVKA)
        graph_boruvka(graph, &setting, options->graph.seed, n, runs);
    else if (options->bench == BORUVKA_OWNED)
        graph_boruvka_owned(graph, &setting, options->graph.seed, n, runs);
    else if (options->bench == NEIGHBORHOOD)
        graph_neighborhood(graph, &setting, options->graph.seed, n, runs);
    else
        graph_overload(&setting, n, runs);
}

/* All methods; returns how many results are wrong or differ from the first method's. */
static int64_t run_methods(const struct options *options, const struct graph *graph)
{
    size_t n_before = (size_t)options->n_warmup, n = n_before + (size_t)options->n_repetitions;
    struct graph_run *runs = bench_array(n, sizeof *runs);
    double *us = bench_array(2 * n, sizeof *us);
    uint64_t *expected = bench_array(n, sizeof *expected);
    int64_t all_wrong = 0;
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!runs || !us || !expected)
        graph_abort("no memory for the times");
    for (int m = 0; m < options->n_methods; m++) {
        int64_t n_wrong = 0;
        run_bench(options, graph, &options->method[m], runs);
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
        if (rank == 0)
            report_method(options, &options->method[m], us + n_before, us + n + n_before, n_wrong,
                          &runs[n - 1], &totals);
        all_wrong += n_wrong;
    }
    free(runs);
    free(us);
    free(expected);
    return all_wrong;
}

static int run_all(const struct options *options, int rank)
{
    struct graph graph = {0};

    if (options->bench == WORK) {
        if (rank == 0)
            graph_work(options->n_elements, options->is_json);
        return 0;
    }
    if (options->bench != OVERLOAD)
        graph_make(&options->graph, options->bench != BORUVKA, &graph);
    int64_t n_wrong = run_methods(options, &graph);
    graph_free(&graph);
    if (n_wrong && rank == 0)
        fprintf(stderr, "graph: %lld results are wrong or differ between methods\n",
                (long long)n_wrong);
    return n_wrong != 0;
}

int main(int n_arguments, char **arguments)
{
    struct options options;
    struct bench_error error;
    int rank, status;

    MPI_Init(&n_arguments, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    status = read_options(n_arguments, arguments, &options, &error) ? 2 : 0;
    if (rank == 0 && status)
        fprintf(stderr, "graph: %s\n%s", error.text, usage);
    if (rank == 0 && !status && options.wants_help)
        fputs(usage, stdout);
    if (!status && !options.wants_help)
        status = run_all(&options, rank);
    free(options.methods);
    MPI_Finalize();
    return status;
}
