/*
 * allgather: times MPI_Allgather against MPI's own, for SimGrid's MPI and others.
 *
 *     allgather [--bytes N[,N...]] [--cyclic N] [--warmup N] [--rounds N] [--json]
 *
 * An ordinary MPI program; a preloaded library carries MPI_Allgather, MPI itself its own function
 * (alone.h), and the two take turns, for one size after the other. With --cyclic N the ranks of the
 * communicator are dealt in turn to nodes of N consecutive ranks of MPI_COMM_WORLD, which is as bad
 * a placement as there is; else they are where the launcher put them. All data is checked. A call
 * takes from the common start to the end of the slowest rank.
 * Exit status: 0, 1 when something came wrong, 2 for bad arguments.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strsep */
#endif
#include "alone.h"
#include "main.h"
#include "report.h"
#include "together.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SIZES = 32, MOST_BYTES = 1 << 24 };

static const char usage[] =
    "usage: allgather [options]\n"
    "  times MPI_Allgather against MPI's own\n"
    "  --bytes N,...  bytes of every rank, several one after the other (default 1024)\n"
    "  --cyclic N     deal the ranks in turn to nodes of N ranks (default: as launched)\n"
    "  --warmup N     calls of each size before the first measured one (default 40)\n"
    "  --rounds N     measured calls of each size and kind (default 3)\n"
    "  --json         print one JSON object on one line\n"
    "  --help         print this\n";

struct options {
    int64_t n_cyclic, n_warmup, n_rounds;
    int n_sizes;
    int64_t bytes[MOST_SIZES];
};

static struct options given = {.n_warmup = 40, .n_rounds = 3, .n_sizes = 1, .bytes = {1024}};

typedef int allgather_function(const void *, int, MPI_Datatype, void *, int, MPI_Datatype,
                               MPI_Comm);

/* ---- arguments ---- */

static int read_sizes(const struct bench_option *option, char *value, struct bench_error *error)
{
    char *word;

    given.n_sizes = 0;
    while ((word = strsep(&value, ",")) != NULL) {
        if (given.n_sizes == MOST_SIZES)
            return bench_fail(error, "--bytes takes at most %d sizes", MOST_SIZES);
        if (bench_parse_integer(word, option->least, option->most, &given.bytes[given.n_sizes++]))
            return bench_fail(error, "--bytes wants numbers from 1 to %d, not '%s'", MOST_BYTES,
                              word);
    }
    return 0;
}

static const struct bench_option table[] = {
    {"bytes", .take = read_sizes, .least = 1, .most = MOST_BYTES},
    {"cyclic", .number = &given.n_cyclic, .least = 1, .most = INT_MAX},
    {"warmup", .number = &given.n_warmup, .most = 1000000},
    {"rounds", .number = &given.n_rounds, .least = 1, .most = 1000000},
    {NULL},
};

/* ---- calls ---- */

struct side {
    MPI_Comm comm;
    int rank, n_ranks, bytes, number;
    unsigned char *out, *in;
    int64_t n_wrong;
};

static uint64_t key_of(int from, int call)
{
    return bench_hash((uint64_t)call, (uint64_t)from, 5);
}

static void count_wrong(struct side *side)
{
    for (int r = 0; r < side->n_ranks; r++)
        side->n_wrong += !bench_is_filled(side->in + (size_t)r * (size_t)side->bytes, side->bytes,
                                          key_of(r, side->number));
}

/* Microseconds of one call on the slowest rank. */
static double call(allgather_function *function, struct side *side)
{
    side->number++;
    bench_fill(side->out, side->bytes, key_of(side->rank, side->number));
    bench_start_together(side->comm);
    double begin = MPI_Wtime();
    function(side->out, side->bytes, MPI_BYTE, side->in, side->bytes, MPI_BYTE, side->comm);
    double us = (MPI_Wtime() - begin) * 1e6;
    count_wrong(side);
    bench_slowest(&us, 1, side->comm);
    return us;
}

static void print_time(struct report *report, const char *name, int bytes, double *us,
                       int64_t n_rounds)
{
    char text[64];
    snprintf(text, sizeof text, "%s %d bytes", name, bytes);
    report_real(report, text, bench_median(us, (size_t)n_rounds), 3, "us");
}

static void measure(const struct options *options, struct side *side, struct report *report)
{
    double *direct_us = bench_need((size_t)options->n_rounds, sizeof *direct_us);
    double *carried_us = bench_need((size_t)options->n_rounds, sizeof *carried_us);

    side->out = bench_need((size_t)side->bytes, 1);
    side->in = bench_need((size_t)side->n_ranks, (size_t)side->bytes);
    for (int64_t w = 0; w < options->n_warmup; w++)
        call(MPI_Allgather, side);
    for (int64_t r = 0; r < options->n_rounds; r++) {
        direct_us[r] = call(ALONE(Allgather), side);
        carried_us[r] = call(MPI_Allgather, side);
    }
    if (side->rank == 0) {
        print_time(report, "direct", side->bytes, direct_us, options->n_rounds);
        print_time(report, "carried", side->bytes, carried_us, options->n_rounds);
    }
    free(direct_us);
    free(carried_us);
    free(side->out);
    free(side->in);
}

/* The ranks in an order in which those that follow each other are on different nodes. */
static MPI_Comm make_comm(int rank, int64_t n_cyclic)
{
    MPI_Comm comm;
    int key = n_cyclic > 0 ? (int)(rank % n_cyclic) : 0; /* ties: by rank */
    MPI_Comm_split(MPI_COMM_WORLD, 0, key, &comm);
    return comm;
}

static int run(const struct bench *bench, struct bench_error *error)
{
    struct side side = {.comm = make_comm(bench->rank, given.n_cyclic), .n_ranks = bench->n_ranks};
    struct report report = {.file = NULL};

    (void)error;
    MPI_Comm_rank(side.comm, &side.rank);
    if (side.rank == 0) {
        report = report_begin(stdout, bench->arguments.is_json);
        report_integer(&report, "ranks", side.n_ranks, "");
    }
    for (int k = 0; k < given.n_sizes; k++) {
        side.bytes = (int)given.bytes[k];
        measure(&given, &side, &report);
    }
    int64_t n_wrong = (int64_t)bench_sum((uint64_t)side.n_wrong, side.comm);
    if (side.rank == 0) {
        report_integer(&report, "wrong", n_wrong, "");
        report_end(&report);
    }
    MPI_Comm_free(&side.comm);
    return n_wrong != 0;
}

const struct bench_program bench_program = {"allgather", usage, "ask for fewer --bytes or --rounds",
                                            table, .run = run};
