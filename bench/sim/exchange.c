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
#include "bench/main.h"
#include "bench/report.h"
#include "bench/together.h"
#include "planner/pattern.h"

#include <limits.h>
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
    int only_carried;
    const char *pattern;
};

static struct options given = {.bytes = 64, .n_warmup = 10, .n_rounds = 1};

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

static const struct bench_option table[] = {
    {"bytes", .number = &given.bytes, .most = INT_MAX},
    {"unit", .number = &given.unit, .least = 1, .most = INT_MAX},
    {"warmup", .number = &given.n_warmup, .most = 1000000},
    {"rounds", .number = &given.n_rounds, .least = 1, .most = 1000000},
    {"carried", .flag = &given.only_carried},
    {NULL},
};

static int check(const struct bench *bench, struct bench_error *error)
{
    if (bench->arguments.n_names != 1)
        return bench_fail(error, "expected one PATTERN");
    given.pattern = bench->arguments.names[0];
    return 0;
}

/* ---- the pattern, from rank 0 to all ---- */

static int message_bytes(const struct options *options, int64_t volume)
{
    if (options->unit == 0)
        return (int)options->bytes;
    if (volume > INT_MAX / options->unit)
        bench_abort("--unit makes messages of more than 2 GiB");
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
        bench_abort("more messages than an int can count");
    return (struct lists){bench_need(n_ranks + 1, sizeof(int)),
                          bench_need(n_ranks + 1, sizeof(int)), bench_need(n_messages, sizeof(int)),
                          bench_need(n_messages, sizeof(int))};
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
    side.peer = bench_need((size_t)side.n, sizeof(int));
    side.count = bench_need((size_t)side.n, sizeof(int));
    side.displ = bench_need((size_t)side.n, sizeof(int));
    MPI_Scatterv(lists->peer, lists->n, lists->first, MPI_INT, side.peer, side.n, MPI_INT, 0,
                 MPI_COMM_WORLD);
    MPI_Scatterv(lists->bytes, lists->n, lists->first, MPI_INT, side.count, side.n, MPI_INT, 0,
                 MPI_COMM_WORLD);
    for (int k = 0; k < side.n; k++) {
        if (side.n_bytes > INT_MAX - side.count[k])
            bench_abort("a rank has more than 2 GiB to send or receive");
        side.displ[k] = (int)side.n_bytes;
        side.n_bytes += side.count[k];
    }
    side.buffer = bench_need((size_t)side.n_bytes + 1, 1);
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
            bench_abort("%s", error.text);
        if (pattern.n_ranks != n_ranks)
            bench_abort("the pattern is for another number of ranks");
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

static uint64_t key_of(int from, int to, int call)
{
    return bench_hash((uint64_t)call, (uint64_t)from, (uint64_t)to);
}

static void fill(struct side *out, int rank, int call)
{
    for (int k = 0; k < out->n; k++)
        bench_fill(out->buffer + out->displ[k], out->count[k], key_of(rank, out->peer[k], call));
}

static int64_t count_wrong(const struct side *in, int rank, int call)
{
    int64_t n_wrong = 0;
    for (int k = 0; k < in->n; k++)
        n_wrong += !bench_is_filled(in->buffer + in->displ[k], in->count[k],
                                    key_of(in->peer[k], rank, call));
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
    int *weights = bench_need((size_t)(out->n > in->n ? out->n : in->n), sizeof(int));
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
    report->about = name;
    report_real(report, "time", bench_median(us, n_rounds), 3, "us");
    report_integer(report, "busiest sends", figures->sends_max, "");
    report_integer(report, "busiest receives", figures->recvs_max, "");
    report_integer(report, "messages", figures->n_messages, "");
    report_integer(report, "bytes", figures->n_bytes, "");
    report->about = "";
}

static void free_side(struct side *side)
{
    free(side->peer);
    free(side->count);
    free(side->displ);
    free(side->buffer);
}

static int run(const struct bench *bench, struct bench_error *error)
{
    struct side out, in;
    struct figures direct = {0}, carried = {0};
    size_t n_rounds = (size_t)given.n_rounds;
    double *direct_us = bench_need(n_rounds, sizeof *direct_us);
    double *carried_us = bench_need(n_rounds, sizeof *carried_us);
    int64_t n_wrong = 0;
    int number = 0, rank = bench->rank;

    (void)error;
    read_sides(&given, rank, bench->n_ranks, &out, &in);
    MPI_Comm graph = make_graph(&out, &in);
    double warm_us = 0;
    for (int64_t w = 0; w < given.n_warmup; w++)
        warm_us += exchange(MPI_Neighbor_alltoallv, ++number, &out, &in, rank, graph, &n_wrong);
    for (size_t r = 0; r < n_rounds; r++) {
        if (!given.only_carried)
            measure(PMPI_Neighbor_alltoallv, ++number, &out, &in, rank, graph, &n_wrong,
                    &direct_us[r], &direct);
        measure(MPI_Neighbor_alltoallv, ++number, &out, &in, rank, graph, &n_wrong, &carried_us[r],
                &carried);
    }
    MPI_Allreduce(MPI_IN_PLACE, &warm_us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    n_wrong = (int64_t)bench_sum((uint64_t)n_wrong, MPI_COMM_WORLD);
    if (rank == 0) {
        struct report report = report_begin(stdout, bench->arguments.is_json);
        report_integer(&report, "ranks", bench->n_ranks, "");
        if (!given.only_carried)
            print_figures(&report, "direct", &direct, direct_us, n_rounds);
        print_figures(&report, "carried", &carried, carried_us, n_rounds);
        report_real(&report, "warmup_together", warm_us * 1e-3, 3, "ms");
        report_integer(&report, "wrong", n_wrong, "");
        report_end(&report);
    }
    MPI_Comm_free(&graph);
    free_side(&out);
    free_side(&in);
    free(direct_us);
    free(carried_us);
    return n_wrong != 0;
}

const struct bench_program bench_program = {
    "exchange",     usage,     "ask for fewer --bytes", table, .takes_names = 1,
    .check = check, .run = run};
