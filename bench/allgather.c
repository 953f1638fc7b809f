/*
 * allgather: times MPI_Allgather against PMPI_Allgather, for SimGrid's MPI and others.
 *
 *     allgather [--bytes N[,N...]] [--cyclic N] [--warmup N] [--rounds N] [--json]
 *
 * An ordinary MPI program; a preloaded library carries MPI_Allgather, MPI itself PMPI_Allgather,
 * and the two take turns, for one size after the other. With --cyclic N the ranks of the
 * communicator are dealt in turn to nodes of N consecutive ranks of MPI_COMM_WORLD, which is as bad
 * a placement as there is; else they are where the launcher put them. All data is checked. A call
 * takes from the common start to the end of the slowest rank.
 * Exit status: 0, 1 when something came wrong, 2 for bad arguments.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* getopt_long */
#endif
#include "arguments.h"
#include "common.h"
#include "report.h"
#include "together.h"

#include <getopt.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SIZES = 32, MOST_BYTES = 1 << 24 };

static const char usage[] =
    "usage: allgather [options]\n"
    "  times MPI_Allgather against PMPI_Allgather\n"
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
    int is_json, wants_help;
};

typedef int allgather_function(const void *, int, MPI_Datatype, void *, int, MPI_Datatype,
                               MPI_Comm);

/* ---- arguments ---- */

static int read_sizes(struct options *options, struct bench_error *error)
{
    char *rest = optarg, *word;

    options->n_sizes = 0;
    while ((word = strsep(&rest, ",")) != NULL) {
        if (options->n_sizes == MOST_SIZES)
            return bench_fail(error, "--bytes takes at most %d sizes", MOST_SIZES);
        if (bench_parse_integer(word, 1, MOST_BYTES, &options->bytes[options->n_sizes++]) != 0)
            return bench_fail(error, "--bytes wants numbers from 1 to %d, not '%s'", MOST_BYTES,
                              word);
    }
    return 0;
}

static int take_option(int letter, void *to, struct bench_error *error)
{
    struct options *options = to;

    switch (letter) {
    case 'b':
        return read_sizes(options, error);
    case 'c':
        return bench_read_number("cyclic", 1, INT_MAX, &options->n_cyclic, error);
    case 'w':
        return bench_read_number("warmup", 0, 1000000, &options->n_warmup, error);
    case 'r':
        return bench_read_number("rounds", 1, 1000000, &options->n_rounds, error);
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
        {"bytes", required_argument, NULL, 'b'},
        {"cyclic", required_argument, NULL, 'c'},
        {"warmup", required_argument, NULL, 'w'},
        {"rounds", required_argument, NULL, 'r'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *options = (struct options){.n_warmup = 40, .n_rounds = 3, .n_sizes = 1, .bytes = {1024}};
    if (bench_read_options(n_arguments, arguments, names, take_option, options, error) != 0)
        return -1;
    if (optind != n_arguments && !options->wants_help)
        return bench_fail(error, "unexpected argument %s", arguments[optind]);
    return 0;
}

/* ---- calls ---- */

struct side {
    MPI_Comm comm;
    int rank, n_ranks, bytes, number;
    unsigned char *out, *in;
    int64_t n_wrong;
};

static unsigned char content(int from, int call)
{
    return (unsigned char)bench_hash((uint64_t)call, (uint64_t)from, 5);
}

/* A block that is not its sender's is found by its ends. */
static void count_wrong(struct side *side)
{
    for (int r = 0; r < side->n_ranks; r++) {
        const unsigned char *block = side->in + (size_t)r * (size_t)side->bytes;
        unsigned char expected = content(r, side->number);
        side->n_wrong += block[0] != expected || block[side->bytes - 1] != expected;
    }
}

/* Microseconds of one call on the slowest rank. */
static double call(allgather_function *function, struct side *side)
{
    side->number++;
    memset(side->out, content(side->rank, side->number), (size_t)side->bytes);
    bench_start_together(side->comm);
    double begin = MPI_Wtime();
    function(side->out, side->bytes, MPI_BYTE, side->in, side->bytes, MPI_BYTE, side->comm);
    double us = (MPI_Wtime() - begin) * 1e6, slowest_us = us;
    count_wrong(side);
    MPI_Reduce(&us, &slowest_us, 1, MPI_DOUBLE, MPI_MAX, 0, side->comm);
    return slowest_us;
}

static void print_time(struct report *report, const char *name, int bytes, double *us,
                       int64_t n_rounds)
{
    char text[64];
    bench_sort(us, (size_t)n_rounds);
    snprintf(text, sizeof text, "%s %d bytes", name, bytes);
    report_real(report, text, bench_quantile(us, (size_t)n_rounds, 0.5), 3, "us");
}

static int measure(const struct options *options, struct side *side, struct report *report)
{
    double *direct_us = bench_array((size_t)options->n_rounds, sizeof *direct_us);
    double *carried_us = bench_array((size_t)options->n_rounds, sizeof *carried_us);

    side->out = bench_array((size_t)side->bytes, 1);
    side->in = bench_array((size_t)side->n_ranks, (size_t)side->bytes);
    if (!direct_us || !carried_us || !side->out || !side->in)
        return -1;
    for (int64_t w = 0; w < options->n_warmup; w++)
        call(MPI_Allgather, side);
    for (int64_t r = 0; r < options->n_rounds; r++) {
        direct_us[r] = call(PMPI_Allgather, side);
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
    return 0;
}

/* The ranks in an order in which those that follow each other are on different nodes. */
static MPI_Comm make_comm(int64_t n_cyclic)
{
    int rank;
    MPI_Comm comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int key = n_cyclic > 0 ? (int)(rank % n_cyclic) : 0; /* ties: by rank */
    MPI_Comm_split(MPI_COMM_WORLD, 0, key, &comm);
    return comm;
}

static int64_t run(const struct options *options)
{
    struct side side = {.comm = make_comm(options->n_cyclic)};
    struct report report = {.file = NULL};
    int64_t n_wrong = 0;

    MPI_Comm_rank(side.comm, &side.rank);
    MPI_Comm_size(side.comm, &side.n_ranks);
    if (side.rank == 0) {
        report = report_begin(stdout, options->is_json);
        report_integer(&report, "ranks", side.n_ranks, "");
    }
    for (int k = 0; k < options->n_sizes; k++) {
        side.bytes = (int)options->bytes[k];
        if (measure(options, &side, &report) != 0) {
            fprintf(stderr, "allgather: out of memory\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    MPI_Allreduce(&side.n_wrong, &n_wrong, 1, MPI_INT64_T, MPI_SUM, side.comm);
    if (side.rank == 0) {
        report_integer(&report, "wrong", n_wrong, "");
        report_end(&report);
    }
    MPI_Comm_free(&side.comm);
    return n_wrong;
}

int main(int n_arguments, char **arguments)
{
    struct options options;
    struct bench_error error;
    int rank;

    MPI_Init(&n_arguments, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int status = read_options(n_arguments, arguments, &options, &error) ? 2 : 0;
    if (rank == 0 && status)
        fprintf(stderr, "allgather: %s\n%s", error.text, usage);
    if (rank == 0 && !status && options.wants_help)
        fputs(usage, stdout);
    if (!status && !options.wants_help)
        status = run(&options) ? 1 : 0;
    MPI_Finalize();
    return status;
}
