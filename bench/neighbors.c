/*
 * neighbors: what an exchange takes with a preloaded library, beside the MPI library's own.
 *
 * An ordinary MPI program. Each rank exchanges messages of one size with its nearest ranks in a
 * ring, in blocks of exchanges: by MPI_Neighbor_alltoallv, by MPI_Irecv, MPI_Isend and MPI_Waitall,
 * or by persistent requests. A block takes as long as its slowest rank. The first form alternates
 * with blocks by MPI's own function (alone.h); the gain is the median over the pairs of blocks of
 * the time by that divided by the time by the name, which a preload may have wrapped. While a
 * library carries messages nobody may call MPI past it, so the other forms are compared with a run
 * without it. The bytes that come are checked.
 *
 *     neighbors [--form collective|messages|persistent] [--neighbors N] [--bytes N] [--calls N]
 *               [--blocks N] [--learn SECONDS] [--first N] [--json]
 *
 * With --first N it tells instead how long the first N calls take, with all that the library
 * learns, plans and tries in them: what a short program has of it.
 *
 * The exchanges of the first two seconds (--learn), 100 at least, are not timed: the library
 * learns, plans and tries in them. Exit status: 0, 1 when bytes differ, 2 for bad arguments.
 */
#include "alone.h"
#include "main.h"
#include "report.h"
#include "together.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CALLS = 1000000, MOST_BLOCKS = 100000, MOST_BYTES = 1 << 24, LEARNING = 100 };

enum form { COLLECTIVE, MESSAGES, PERSISTENT };
static const char *const forms[] = {"collective", "messages", "persistent", NULL};

static const char usage[] =
    "usage: neighbors [options]\n"
    "  times exchanges with the nearest ranks of a ring against MPI's own\n"
    "  --form FORM    collective (MPI_Neighbor_alltoallv, default), messages or persistent\n"
    "  --neighbors N  of each rank (default: all others)\n"
    "  --bytes N      of a message (default 64)\n"
    "  --calls N      exchanges in a block (default 20)\n"
    "  --blocks N     pairs of blocks (default 101)\n"
    "  --learn N      seconds of exchanges before them (default 2)\n"
    "  --first N      only time the first N exchanges together, by MPI's names\n"
    "  --json         print one JSON object on one line\n"
    "  --help         print this\n";

static int form;
static int64_t n_neighbors, n_bytes = 64, n_calls = 20, n_blocks = 101, n_seconds = 2, n_first;

static const struct bench_option table[] = {
    {"form", .word = &form, .words = forms},
    {"neighbors", .number = &n_neighbors, .least = 1, .most = MOST_BLOCKS},
    {"bytes", .number = &n_bytes, .least = 1, .most = MOST_BYTES},
    {"calls", .number = &n_calls, .least = 1, .most = MOST_CALLS},
    {"blocks", .number = &n_blocks, .least = 1, .most = MOST_BLOCKS},
    {"learn", .number = &n_seconds, .most = MOST_BLOCKS},
    {"first", .number = &n_first, .least = 1, .most = MOST_CALLS},
    {NULL},
};

typedef __typeof__(&PMPI_Neighbor_alltoallv) alltoallv_function;

/* One rank's messages. */
struct messages {
    MPI_Comm graph;
    int n;
    int *to, *from, *count, *displ;
    unsigned char *out, *in;
    MPI_Request *request; /* receives, then sends; persistent ones in that form */
};

/* The rank that is `steps` to the right. */
static int rank_at(const struct bench *bench, int steps)
{
    return (bench->rank + steps + bench->n_ranks) % bench->n_ranks;
}

static void make_requests(const struct messages *m)
{
    for (int k = 0; k < m->n; k++) {
        MPI_Recv_init(m->in + m->displ[k], m->count[k], MPI_CHAR, m->from[k], k, m->graph,
                      &m->request[k]);
        MPI_Send_init(m->out + m->displ[k], m->count[k], MPI_CHAR, m->to[k], k, m->graph,
                      &m->request[m->n + k]);
    }
}

static struct messages messages_make(const struct bench *bench)
{
    struct messages m = {.n = (int)n_neighbors};
    size_t n = (size_t)m.n, bytes = (size_t)n_bytes;

    m.to = bench_need(n, sizeof *m.to);
    m.from = bench_need(n, sizeof *m.from);
    m.count = bench_need(n, sizeof *m.count);
    m.displ = bench_need(n, sizeof *m.displ);
    m.out = bench_need(n, bytes);
    m.in = bench_need(n, bytes);
    m.request = bench_need(2 * n, sizeof *m.request);
    for (int k = 0; k < m.n; k++) {
        int steps = k % 2 ? -(k / 2 + 1) : k / 2 + 1; /* right, left, second to the right, ... */
        m.to[k] = rank_at(bench, steps);
        m.from[k] = rank_at(bench, -steps);
        m.count[k] = (int)n_bytes;
        m.displ[k] = k * (int)n_bytes;
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, m.n, m.from, MPI_UNWEIGHTED, m.n, m.to,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &m.graph);
    if (form == PERSISTENT)
        make_requests(&m);
    return m;
}

static void messages_free(struct messages *m)
{
    for (int k = 0; k < 2 * m->n && form == PERSISTENT; k++)
        MPI_Request_free(&m->request[k]);
    MPI_Comm_free(&m->graph);
    free(m->to);
    free(m->from);
    free(m->count);
    free(m->displ);
    free(m->out);
    free(m->in);
    free(m->request);
}

static unsigned char byte_of(int64_t block, int rank, int64_t at)
{
    return (unsigned char)bench_hash((uint64_t)block, (uint64_t)rank, (uint64_t)at);
}

/* New bytes for a block. */
static void fill(const struct messages *m, const struct bench *bench, int64_t block)
{
    for (int64_t at = 0; at < m->n * n_bytes; at++)
        m->out[at] = byte_of(block, bench->rank, at);
    memset(m->in, 0, (size_t)(m->n * n_bytes));
}

/* Whether other bytes have come than those of the block. */
static int differs(const struct messages *m, int64_t block)
{
    for (int64_t at = 0; at < m->n * n_bytes; at++)
        if (m->in[at] != byte_of(block, m->from[at / n_bytes], at))
            return 1;
    return 0;
}

static void exchange(const struct messages *m, alltoallv_function alltoallv)
{
    if (form == COLLECTIVE) {
        alltoallv(m->out, m->count, m->displ, MPI_CHAR, m->in, m->count, m->displ, MPI_CHAR,
                  m->graph);
        return;
    }
    if (form == PERSISTENT)
        MPI_Startall(2 * m->n, m->request);
    for (int k = 0; k < m->n && form == MESSAGES; k++)
        MPI_Irecv(m->in + m->displ[k], m->count[k], MPI_CHAR, m->from[k], k, m->graph,
                  &m->request[k]);
    for (int k = 0; k < m->n && form == MESSAGES; k++)
        MPI_Isend(m->out + m->displ[k], m->count[k], MPI_CHAR, m->to[k], k, m->graph,
                  &m->request[m->n + k]);
    MPI_Waitall(2 * m->n, m->request, MPI_STATUSES_IGNORE);
}

static double time_calls(int64_t n, const struct messages *m, alltoallv_function alltoallv)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int64_t i = 0; i < n; i++)
        exchange(m, alltoallv);
    return MPI_Wtime() - begin;
}

/* Exchanges until the library has had time to choose. The first ones, in which MPI connects the
 * ranks, may take seconds and teach nothing. */
static void let_it_learn(const struct messages *m)
{
    (void)time_calls(n_calls, m, MPI_Neighbor_alltoallv);
    double begin = MPI_Wtime(), seconds = 0;
    for (int64_t n = 0; n < LEARNING || seconds < (double)n_seconds; n += n_calls) {
        (void)time_calls(n_calls, m, MPI_Neighbor_alltoallv);
        seconds = MPI_Wtime() - begin;
        MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
}

static void print_results(const struct bench *bench, double *wrapped, double *plain, int differ)
{
    struct report report = report_begin(stdout, bench->arguments.is_json);
    size_t n = (size_t)n_blocks;
    double *gain = bench_need(n, sizeof *gain);

    for (size_t b = 0; b < n && form == COLLECTIVE; b++)
        gain[b] = plain[b] / wrapped[b];
    report_integer(&report, "ranks", bench->n_ranks, "");
    report_text(&report, "form", forms[form]);
    report_integer(&report, "neighbors", n_neighbors, "");
    report_integer(&report, "bytes", n_bytes, "");
    report_real(&report, "MPI call", 1e6 / (double)n_calls * bench_median(wrapped, n), 2, "us");
    if (form == COLLECTIVE) {
        report_real(&report, "PMPI call", 1e6 / (double)n_calls * bench_median(plain, n), 2, "us");
        report_quartiles(&report, "gain", gain, n, 2, "");
    }
    report_text(&report, "results", differ ? "differ" : "same");
    report_end(&report);
    free(gain);
}

/* The first calls, together. */
static void time_first(const struct bench *bench, const struct messages *m)
{
    double seconds = time_calls(n_first, m, MPI_Neighbor_alltoallv);
    bench_slowest(&seconds, 1, MPI_COMM_WORLD);
    if (bench->rank > 0)
        return;
    struct report report = report_begin(stdout, bench->arguments.is_json);
    report_integer(&report, "ranks", bench->n_ranks, "");
    report_integer(&report, "first calls", n_first, "");
    report_real(&report, "together", 1e3 * seconds, 1, "ms");
    report_end(&report);
}

static int check(const struct bench *bench, struct bench_error *error)
{
    if (n_neighbors == 0)
        n_neighbors = bench->n_ranks - 1;
    if (n_neighbors < bench->n_ranks && bench->n_ranks > 1)
        return 0;
    return bench_fail(error, "%d ranks have no %lld neighbors; ask for fewer --neighbors",
                      bench->n_ranks, (long long)n_neighbors);
}

static int run(const struct bench *bench, struct bench_error *error)
{
    size_t n = (size_t)n_blocks;
    double *wrapped = bench_need(n, sizeof *wrapped), *plain = bench_need(n, sizeof *plain);
    struct messages m = messages_make(bench);
    int differ = 0, any = 0;

    (void)error;
    if (n_first > 0)
        time_first(bench, &m);
    else
        let_it_learn(&m);
    for (int64_t b = 0; b < n_blocks && n_first == 0; b++) {
        fill(&m, bench, b);
        wrapped[b] = time_calls(n_calls, &m, MPI_Neighbor_alltoallv);
        differ |= differs(&m, b);
        if (form != COLLECTIVE)
            continue;
        plain[b] = time_calls(n_calls, &m, ALONE(Neighbor_alltoallv));
        differ |= differs(&m, b);
    }
    MPI_Allreduce(&differ, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    bench_slowest(wrapped, n, MPI_COMM_WORLD);
    bench_slowest(plain, n, MPI_COMM_WORLD);
    if (bench->rank == 0 && n_first == 0)
        print_results(bench, wrapped, plain, any);
    messages_free(&m);
    free(wrapped);
    free(plain);
    return any;
}

const struct bench_program bench_program = {
    "neighbors", usage, "ask for fewer --bytes or --blocks", table, .check = check, .run = run};
