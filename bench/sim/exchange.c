/*
 * exchange: repeats a communication pattern by MPI_Neighbor_alltoallv, for SimGrid's MPI and
 * others.
 *
 *     exchange [--bytes N | --unit N] [--warmup N] [--rounds N] [--carried] [--json]
 *              PATTERN
 *
 * An ordinary MPI program; a preloaded library carries MPI_Neighbor_alltoallv, MPI itself
 * PMPI_Neighbor_alltoallv, and the two take turns. Rank 0 reads PATTERN (planner/pattern.h) and
 * tells the others whom they send to and hear from. Every message is checked. An exchange takes
 * from the common start to the end of the slowest rank.
 * Exit status: 0, 1 when something went wrong or came wrong, 2 for bad arguments.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* getopt_long */
#endif
#include "bench/arguments.h"
#include "bench/common.h"
#include "bench/report.h"
#include "bench/together.h"
#include "planner/pattern.h"

#include <getopt.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: exchange [options] PATTERN\n"
    "  repeats a pattern by MPI_Neighbor_alltoallv and by PMPI_Neighbor_alltoallv in turns\n"
    "  --bytes N    bytes of every message (default 64)\n"
    "  --unit N     or bytes of a unit of the pattern's volume\n"
    "  --warmup N   calls before the first measured one (default 10)\n"
    "  --rounds N   measured calls of each (default 1)\n"
    "  --carried    only by MPI_Neighbor_alltoallv\n"
    "  --json       print one JSON object on one line\n"
    "  --help       print this\n";

struct options {
    int64_t bytes, unit, n_warmup, n_rounds;
    int only_carried, is_json, wants_help;
    const char *pattern;
};

/* One side: the neighbours of this rank and its messages in one buffer. */
struct side {
    int n;
    int *peer, *count, *displ; /* bytes */
    int64_t n_bytes;
    unsigned char *buffer;
};

typedef int alltoallv_function(const void *, const int *, const int *, MPI_Datatype, void *,
                               const int *, const int *, MPI_Datatype, MPI_Comm);

/* ---- arguments ---- */

static int take_option(int letter, void *to, struct bench_error *error)
{
    struct options *options = to;

    switch (letter) {
    case 'b':
        return bench_read_number("bytes", 0, INT_MAX, &options->bytes, error);
    case 'u':
        return bench_read_number("unit", 1, INT_MAX, &options->unit, error);
    case 'w':
        return bench_read_number("warmup", 0, 1000000, &options->n_warmup, error);
    case 'r':
        return bench_read_number("rounds", 1, 1000000, &options->n_rounds, error);
    case 'c':
        options->only_carried = 1;
        return 0;
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
        {"bytes", required_argument, NULL, 'b'},  {"unit", required_argument, NULL, 'u'},
        {"warmup", required_argument, NULL, 'w'}, {"rounds", required_argument, NULL, 'r'},
        {"carried", no_argument, NULL, 'c'},      {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    *options = (struct options){.bytes = 64, .n_warmup = 10, .n_rounds = 1};
    if (bench_read_options(n_arguments, arguments, names, take_option, options, error) != 0)
        return -1;
    if (options->wants_help)
        return 0;
    if (optind + 1 != n_arguments)
        return bench_fail(error, "expected one PATTERN");
    options->pattern = arguments[optind];
    return 0;
}

/* ---- the pattern, from rank 0 to all ---- */

static void die(const char *text)
{
    fprintf(stderr, "exchange: %s\n", text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void *array(size_t n, size_t size)
{
    void *memory = bench_array(n, size);
    if (!memory)
        die("out of memory");
    return memory;
}

static int message_bytes(const struct options *options, int64_t volume)
{
    if (options->unit == 0)
        return (int)options->bytes;
    if (volume > INT_MAX / options->unit)
        die("--unit makes messages of more than 2 GiB");
    return (int)(volume * options->unit);
}

/* What rank 0 hands out: for every rank its peers and the bytes of their messages. */
struct lists {
    int *n, *first; /* per rank */
    int *peer, *bytes;
};

static struct lists make_lists(const struct cpl_pattern *pattern)
{
    size_t n_ranks = (size_t)pattern->n_ranks, n_messages = (size_t)pattern->n_messages;
    if (pattern->n_messages > INT_MAX)
        die("more messages than an int can count");
    return (struct lists){array(n_ranks + 1, sizeof(int)), array(n_ranks + 1, sizeof(int)),
                          array(n_messages, sizeof(int)), array(n_messages, sizeof(int))};
}

static void free_lists(struct lists *lists)
{
    free(lists->n);
    free(lists->first);
    free(lists->peer);
    free(lists->bytes);
}

/* The senders' lists, or the receivers' (by counting). */
static struct lists fill_lists(const struct cpl_pattern *pattern, int of_receivers,
                               const struct options *options)
{
    struct lists lists = make_lists(pattern);
    for (int i = 0; i < pattern->n_ranks; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++)
            lists.n[of_receivers ? pattern->dst[m] : i]++;
    for (int i = 0; i < pattern->n_ranks; i++) {
        lists.first[i + 1] = lists.first[i] + lists.n[i];
        lists.n[i] = 0;
    }
    for (int i = 0; i < pattern->n_ranks; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++) {
            int owner = of_receivers ? pattern->dst[m] : i;
            int at = lists.first[owner] + lists.n[owner]++;
            lists.peer[at] = of_receivers ? i : pattern->dst[m];
            lists.bytes[at] = message_bytes(options, pattern->volume[m]);
        }
    return lists;
}

static struct side take_side(struct lists *lists)
{
    struct side side = {.n = 0};
    MPI_Scatter(lists->n, 1, MPI_INT, &side.n, 1, MPI_INT, 0, MPI_COMM_WORLD);
    side.peer = array((size_t)side.n, sizeof(int));
    side.count = array((size_t)side.n, sizeof(int));
    side.displ = array((size_t)side.n, sizeof(int));
    MPI_Scatterv(lists->peer, lists->n, lists->first, MPI_INT, side.peer, side.n, MPI_INT, 0,
                 MPI_COMM_WORLD);
    MPI_Scatterv(lists->bytes, lists->n, lists->first, MPI_INT, side.count, side.n, MPI_INT, 0,
                 MPI_COMM_WORLD);
    for (int k = 0; k < side.n; k++) {
        if (side.n_bytes > INT_MAX - side.count[k])
            die("a rank has more than 2 GiB to send or receive");
        side.displ[k] = (int)side.n_bytes;
        side.n_bytes += side.count[k];
    }
    side.buffer = array((size_t)side.n_bytes + 1, 1);
    return side;
}

static void read_sides(const struct options *options, int rank, int n_ranks, struct side *out,
                       struct side *in)
{
    struct lists senders = {NULL, NULL, NULL, NULL}, receivers = {NULL, NULL, NULL, NULL};
    if (rank == 0) {
        struct cpl_pattern pattern;
        struct cpl_error error;
        if (cpl_pattern_read(options->pattern, &pattern, &error))
            die(error.text);
        if (pattern.n_ranks != n_ranks)
            die("the pattern is for another number of ranks");
        const struct cpl_pattern *pairs = pattern.pairs ? pattern.pairs : &pattern;
        senders = fill_lists(pairs, 0, options);
        receivers = fill_lists(pairs, 1, options);
        cpl_pattern_free(&pattern);
    }
    *out = take_side(&senders);
    *in = take_side(&receivers);
    free_lists(&senders);
    free_lists(&receivers);
}

/* ---- exchanges ---- */

static unsigned char content(int from, int to, int call)
{
    return (unsigned char)bench_hash((uint64_t)call, (uint64_t)from, (uint64_t)to);
}

static void fill(struct side *out, int rank, int call)
{
    for (int k = 0; k < out->n; k++)
        memset(out->buffer + out->displ[k], content(rank, out->peer[k], call),
               (size_t)out->count[k]);
}

static int64_t count_wrong(const struct side *in, int rank, int call)
{
    int64_t n_wrong = 0;
    for (int k = 0; k < in->n; k++) {
        unsigned char expected = content(in->peer[k], rank, call);
        for (int b = 0; b < in->count[k]; b++)
            if (in->buffer[in->displ[k] + b] != expected) {
                n_wrong++;
                break;
            }
    }
    return n_wrong;
}

/* Microseconds of one exchange on this rank. Adds up messages that came wrong. */
static double exchange(alltoallv_function *call, int number, struct side *out, struct side *in,
                       int rank, MPI_Comm graph, int64_t *n_wrong)
{
    fill(out, rank, number);
    memset(in->buffer, 0xa5, (size_t)in->n_bytes);
    bench_start_together(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    call(out->buffer, out->count, out->displ, MPI_BYTE, in->buffer, in->count, in->displ, MPI_BYTE,
         graph);
    double us = (MPI_Wtime() - begin) * 1e6;
    *n_wrong += count_wrong(in, rank, number);
    return us;
}

static MPI_Comm make_graph(const struct side *out, const struct side *in)
{
    MPI_Comm graph;
    int *weights = array((size_t)(out->n > in->n ? out->n : in->n), sizeof(int));
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in->n, in->peer, weights, out->n, out->peer,
                                   weights, MPI_INFO_NULL, 0, &graph);
    free(weights);
    return graph;
}

/* ---- results ---- */

/* Per measured call of each kind: time of the slowest rank; messages and bytes as they were
 * simulated (0 elsewhere). */
struct figures {
    double us;
    int64_t sends_max, recvs_max, n_messages, n_bytes;
};

struct counts {
    int64_t n_sends, n_recvs, bytes;
};

static struct counts count_now(void)
{
#ifdef CPL_SIMULATED
    struct cpl_sim_count c = cpl_sim_counted();
    return (struct counts){c.n_sends, c.n_recvs, c.bytes};
#else
    return (struct counts){0, 0, 0};
#endif
}

static void measure(alltoallv_function *call, int number, struct side *out, struct side *in,
                    int rank, MPI_Comm graph, int64_t *n_wrong, double *us, struct figures *figures)
{
    struct counts before = count_now();
    *us = exchange(call, number, out, in, rank, graph, n_wrong);
    struct counts after = count_now();
    int64_t mine[4] = {after.n_sends - before.n_sends, after.n_recvs - before.n_recvs,
                       after.n_sends - before.n_sends, after.bytes - before.bytes};
    int64_t largest[2], sum[2];
    MPI_Allreduce(MPI_IN_PLACE, us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Reduce(mine, largest, 2, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(mine + 2, sum, 2, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        *figures = (struct figures){*us, largest[0], largest[1], sum[0], sum[1]};
}

static void print_figures(struct report *report, const char *name, const struct figures *figures,
                          double *us, size_t n_rounds)
{
    char text[64];
    bench_sort(us, n_rounds);
    snprintf(text, sizeof text, "%s time", name);
    report_real(report, text, bench_quantile(us, n_rounds, 0.5), 3, "us");
    snprintf(text, sizeof text, "%s busiest sends", name);
    report_integer(report, text, figures->sends_max, "");
    snprintf(text, sizeof text, "%s busiest receives", name);
    report_integer(report, text, figures->recvs_max, "");
    snprintf(text, sizeof text, "%s messages", name);
    report_integer(report, text, figures->n_messages, "");
    snprintf(text, sizeof text, "%s bytes", name);
    report_integer(report, text, figures->n_bytes, "");
}

static int64_t run(const struct options *options, int rank, int n_ranks)
{
    struct side out, in;
    struct figures direct = {0}, carried = {0};
    size_t n_rounds = (size_t)options->n_rounds;
    double *direct_us = array(n_rounds, sizeof *direct_us);
    double *carried_us = array(n_rounds, sizeof *carried_us);
    int64_t n_wrong = 0, all_wrong = 0;
    int number = 0;

    read_sides(options, rank, n_ranks, &out, &in);
    MPI_Comm graph = make_graph(&out, &in);
    for (int64_t w = 0; w < options->n_warmup; w++)
        exchange(MPI_Neighbor_alltoallv, ++number, &out, &in, rank, graph, &n_wrong);
    for (size_t r = 0; r < n_rounds; r++) {
        if (!options->only_carried)
            measure(PMPI_Neighbor_alltoallv, ++number, &out, &in, rank, graph, &n_wrong,
                    &direct_us[r], &direct);
        measure(MPI_Neighbor_alltoallv, ++number, &out, &in, rank, graph, &n_wrong, &carried_us[r],
                &carried);
    }
    MPI_Allreduce(&n_wrong, &all_wrong, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        struct report report = report_begin(stdout, options->is_json);
        report_integer(&report, "ranks", n_ranks, "");
        if (!options->only_carried)
            print_figures(&report, "direct", &direct, direct_us, n_rounds);
        print_figures(&report, "carried", &carried, carried_us, n_rounds);
        report_integer(&report, "wrong", all_wrong, "");
        report_end(&report);
    }
    MPI_Comm_free(&graph);
    struct side *sides[] = {&out, &in};
    for (int k = 0; k < 2; k++) {
        free(sides[k]->peer);
        free(sides[k]->count);
        free(sides[k]->displ);
        free(sides[k]->buffer);
    }
    free(direct_us);
    free(carried_us);
    return all_wrong;
}

int main(int n_arguments, char **arguments)
{
    struct options options;
    struct bench_error error;
    int rank, n_ranks;

    MPI_Init(&n_arguments, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    int status = read_options(n_arguments, arguments, &options, &error) ? 2 : 0;
    if (rank == 0 && status)
        fprintf(stderr, "exchange: %s\n%s", error.text, usage);
    if (rank == 0 && !status && options.wants_help)
        fputs(usage, stdout);
    if (!status && !options.wants_help)
        status = run(&options, rank, n_ranks) ? 1 : 0;
    MPI_Finalize();
    return status;
}
