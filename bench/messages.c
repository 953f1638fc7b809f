/*
 * messages: what a preloaded library adds to point-to-point messages.
 *
 * An ordinary MPI program. Every rank exchanges small messages with its next peers around the ring
 * of ranks (as many as there are ranks: the last is the rank itself): MPI_Irecv of each, MPI_Isend
 * of each, as much computation as is asked for, MPI_Waitall. It does so by the MPI_ names, which a
 * preload may have wrapped, and by MPI's own functions (alone.h), in alternating blocks; an
 * MPI_Allreduce after each block lets Carpool agree on managing the exchange. Blocks are short, so
 * that most see no interruption by other processes. Printed are medians over the blocks with
 * quartiles.
 *
 *     messages [--peers N] [--per-peer N] [--bytes N] [--iterations N] [--blocks N]
 *              [--traffic same|random|wildcard|probe] [--communicators N] [--work US] [--json]
 *
 *   same      the same exchange in every iteration
 *   random    other peers and tags in every iteration, the same on all ranks; nothing repeats
 *   wildcard  the same sends, received from MPI_ANY_SOURCE with MPI_ANY_TAG
 *   probe     the sends of random, received by MPI_Probe for any message and MPI_Recv
 *
 * The ratio is that of processor time, pair of blocks by pair of blocks, of rank 0 (with two ranks
 * and `--peers 1` the other does the same). Without a preload it is that of two names for one
 * function: the noise of the measurement. Exit status: 0, or 2 for bad arguments.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* clock_gettime, dladdr */
#endif
#include "alone.h"
#include "main.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    MOST_MESSAGES = 4096,
    MOST_BYTES = 65536,
    MOST_BLOCKS = 100000,
    MOST_COMMUNICATORS = 64,
    MOST_WORK = 1000000,
    WARMUP_BLOCKS = 80
};

static const char usage[] =
    "usage: messages [options]\n"
    "  times exchanges of messages by the MPI_ names against MPI's own functions\n"
    "  --peers N       ranks that a rank sends to (default 2; N ranks: with itself)\n"
    "  --per-peer N    messages to each (default 1)\n"
    "  --bytes N       of a message (default 8)\n"
    "  --iterations N  exchanges in a block (default 20)\n"
    "  --blocks N      pairs of blocks (default 501)\n"
    "  --traffic KIND  same, random, wildcard or probe (default same)\n"
    "  --communicators N  that messages take turns on, duplicates of MPI_COMM_WORLD; 1 (default):\n"
    "                  MPI_COMM_WORLD itself\n"
    "  --work US       microseconds of computation in each exchange (default 0)\n"
    "  --json          print one JSON object on one line\n"
    "  --help          print this\n";

enum traffic { SAME, RANDOM, WILDCARD, PROBE };

static const char *const traffic_names[] = {"same", "random", "wildcard", "probe", NULL};

struct options {
    int64_t n_peers, per_peer, n_bytes, n_iterations, n_blocks, n_communicators, work;
    int traffic;
};

static struct options given = {2, 1, 8, 20, 501, 1, 0, SAME};

/* The names under which a block calls MPI. */
struct names {
    int (*irecv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    int (*isend)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    int (*waitall)(int, MPI_Request *, MPI_Status *);
    int (*probe)(int, int, MPI_Comm, MPI_Status *);
    int (*recv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
};

struct program {
    struct options options;
    int rank, n_ranks, n_messages;
    char *sent, *received;
    MPI_Request *requests;
    MPI_Comm communicators[MOST_COMMUNICATORS];
    int64_t n_steps; /* of computation in an exchange */
};

/* Of each block, in microseconds a message. */
struct times {
    double *wall, *processor;
};

/* ---- arguments ---- */

static const struct bench_option table[] = {
    {"peers", .number = &given.n_peers, .least = 1, .most = MOST_MESSAGES},
    {"per-peer", .number = &given.per_peer, .least = 1, .most = MOST_MESSAGES},
    {"bytes", .number = &given.n_bytes, .least = 1, .most = MOST_BYTES},
    {"iterations", .number = &given.n_iterations, .least = 1, .most = MOST_BLOCKS},
    {"blocks", .number = &given.n_blocks, .least = 1, .most = MOST_BLOCKS},
    {"communicators", .number = &given.n_communicators, .least = 1, .most = MOST_COMMUNICATORS},
    {"work", .number = &given.work, .least = 1, .most = MOST_WORK},
    {"traffic", .word = &given.traffic, .words = traffic_names},
    {NULL},
};

static int check(const struct bench *bench, struct bench_error *error)
{
    if (given.n_peers > bench->n_ranks)
        return bench_fail(error, "--peers %lld is more than there are ranks, %d",
                          (long long)given.n_peers, bench->n_ranks);
    if (given.n_peers * given.per_peer > MOST_MESSAGES)
        return bench_fail(error, "more than %d messages in an exchange", MOST_MESSAGES);
    return 0;
}

/* ---- measuring ---- */

static double processor_time(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Computation that takes as long whatever else the machine does. */
static void compute(int64_t n_steps)
{
    double x = 1;

    for (int64_t k = 0; k < n_steps; k++)
        x += 1 / x;
    volatile double value = x; /* so that it is done */
    (void)value;
}

/* How many steps take so many microseconds: by the fastest of some tries. */
static int64_t count_steps(int64_t us)
{
    const int64_t tried = 20000;
    double best = 1;

    for (int k = 0; k < 50 && us > 0; k++) {
        double start = processor_time();
        compute(tried);
        double seconds = processor_time() - start;
        best = seconds < best ? seconds : best;
    }
    return us > 0 ? (int64_t)((double)us * 1e-6 / best * (double)tried) : 0;
}

/* How far around the ring message k of an iteration goes, and its tag: alike on all ranks. */
static void choose(const struct program *p, uint64_t iteration, int k, int *distance, int *tag)
{
    uint64_t word = bench_hash(1, iteration, (uint64_t)k);

    *distance = 1 + k % (int)p->options.n_peers;
    *tag = k / (int)p->options.n_peers;
    if (p->options.traffic != RANDOM && p->options.traffic != PROBE)
        return;
    *distance = p->n_ranks > 1 ? 1 + (int)(word % (uint64_t)(p->n_ranks - 1)) : 1;
    *tag = (int)(word >> 40 & 0xffff);
}

static MPI_Comm communicator(const struct program *p, int k)
{
    return p->communicators[k % (int)p->options.n_communicators];
}

static void post(const struct program *p, const struct names *names, uint64_t iteration)
{
    int n = p->n_messages, n_bytes = (int)p->options.n_bytes, distance, tag;
    int is_wild = p->options.traffic == WILDCARD;

    for (int k = 0; k < n; k++) {
        choose(p, iteration, k, &distance, &tag);
        int source = (p->rank + p->n_ranks - distance) % p->n_ranks;
        names->irecv(p->received + k * n_bytes, n_bytes, MPI_CHAR,
                     is_wild ? MPI_ANY_SOURCE : source, is_wild ? MPI_ANY_TAG : tag,
                     communicator(p, k), &p->requests[k]);
    }
}

static void receive(const struct program *p, const struct names *names)
{
    MPI_Status status;

    for (int k = 0; k < p->n_messages; k++) {
        names->probe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator(p, k), &status);
        names->recv(p->received, (int)p->options.n_bytes, MPI_CHAR, status.MPI_SOURCE,
                    status.MPI_TAG, communicator(p, k), MPI_STATUS_IGNORE);
    }
}

static void exchange(const struct program *p, const struct names *names, uint64_t iteration)
{
    int n = p->n_messages, n_bytes = (int)p->options.n_bytes, distance, tag;
    int posts = p->options.traffic != PROBE;

    if (posts)
        post(p, names, iteration);
    for (int k = 0; k < n; k++) {
        choose(p, iteration, k, &distance, &tag);
        names->isend(p->sent + k * n_bytes, n_bytes, MPI_CHAR, (p->rank + distance) % p->n_ranks,
                     tag, communicator(p, k), &p->requests[n + k]);
    }
    compute(p->n_steps);
    if (posts) {
        names->waitall(2 * n, p->requests, MPI_STATUSES_IGNORE);
        return;
    }
    receive(p, names);
    names->waitall(n, p->requests + n, MPI_STATUSES_IGNORE);
}

/* A block, after which all ranks meet: by the MPI_ name, so that a preload sees a collective. */
static void time_block(const struct program *p, const struct names *names, uint64_t block,
                       struct times *times, int64_t at)
{
    double per_message = 1e6 / (double)(p->options.n_iterations * p->n_messages);
    int n_iterations = (int)p->options.n_iterations, one = 1, all;
    double processor = processor_time(), wall = MPI_Wtime();

    for (int i = 0; i < n_iterations; i++)
        exchange(p, names, block * (uint64_t)n_iterations + (uint64_t)i);
    times->wall[at] = per_message * (MPI_Wtime() - wall);
    times->processor[at] = per_message * (processor_time() - processor);
    for (int k = 0; k < p->options.n_communicators; k++)
        MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, p->communicators[k]);
}

static void time_all(const struct program *p, struct times *wrapped, struct times *plain)
{
    static const struct names mpi = {MPI_Irecv, MPI_Isend, MPI_Waitall, MPI_Probe, MPI_Recv};
    const struct names own = {ALONE(Irecv), ALONE(Isend), ALONE(Waitall), ALONE(Probe),
                              ALONE(Recv)};
    int64_t n_blocks = p->options.n_blocks + WARMUP_BLOCKS;

    for (int64_t b = 0; b < n_blocks; b++) {
        int64_t at = b < WARMUP_BLOCKS ? 0 : b - WARMUP_BLOCKS;
        time_block(p, &mpi, (uint64_t)(2 * b), wrapped, at);
        time_block(p, &own, (uint64_t)(2 * b + 1), plain, at);
    }
}

/* ---- results ---- */

static struct times make_times(size_t n)
{
    return (struct times){bench_need(n, sizeof(double)), bench_need(n, sizeof(double))};
}

static void free_times(struct times *times)
{
    free(times->wall);
    free(times->processor);
}

static void print_results(const struct program *p, int is_json, struct times *wrapped,
                          struct times *plain, double *ratio)
{
    const struct options *o = &p->options;
    struct report report = report_begin(stdout, is_json);
    size_t n = (size_t)o->n_blocks;

    report_text(&report, "traffic", traffic_names[o->traffic]);
    report_integer(&report, "ranks", p->n_ranks, "");
    report_integer(&report, "messages per exchange", p->n_messages, "");
    report_integer(&report, "bytes", o->n_bytes, "");
    report_integer(&report, "communicators", o->n_communicators, "");
    report_integer(&report, "work", o->work, "us");
    for (size_t b = 0; b < n; b++)
        ratio[b] = wrapped->processor[b] / plain->processor[b];
    report_quartiles(&report, "MPI processor", wrapped->processor, n, 3, "us");
    report_quartiles(&report, "PMPI processor", plain->processor, n, 3, "us");
    report_quartiles(&report, "MPI wall", wrapped->wall, n, 3, "us");
    report_quartiles(&report, "PMPI wall", plain->wall, n, 3, "us");
    report_quartiles(&report, "ratio", ratio, n, 4, "");
    report_end(&report);
}

static void make_communicators(struct program *p)
{
    p->communicators[0] = MPI_COMM_WORLD;
    for (int k = 0; k < p->options.n_communicators && p->options.n_communicators > 1; k++)
        MPI_Comm_dup(MPI_COMM_WORLD, &p->communicators[k]);
}

static void free_communicators(struct program *p)
{
    for (int k = 0; k < p->options.n_communicators && p->options.n_communicators > 1; k++)
        MPI_Comm_free(&p->communicators[k]);
}

static int run(const struct bench *bench, struct bench_error *error)
{
    struct program p = {.options = given,
                        .rank = bench->rank,
                        .n_ranks = bench->n_ranks,
                        .n_messages = (int)(given.n_peers * given.per_peer)};
    size_t n_blocks = (size_t)given.n_blocks, n = (size_t)p.n_messages;
    struct times wrapped = make_times(n_blocks), plain = make_times(n_blocks);
    double *ratio = bench_need(n_blocks, sizeof *ratio);

    (void)error;
    p.sent = bench_need(n, (size_t)given.n_bytes);
    p.received = bench_need(n, (size_t)given.n_bytes);
    p.requests = bench_need(2 * n, sizeof *p.requests);
    p.n_steps = count_steps(given.work);
    make_communicators(&p);
    time_all(&p, &wrapped, &plain);
    free_communicators(&p);
    if (bench->rank == 0)
        print_results(&p, bench->arguments.is_json, &wrapped, &plain, ratio);
    free_times(&wrapped);
    free_times(&plain);
    free(ratio);
    free(p.sent);
    free(p.received);
    free(p.requests);
    return 0;
}

const struct bench_program bench_program = {
    "messages", usage, "ask for fewer --blocks or --bytes", table, .check = check, .run = run};
