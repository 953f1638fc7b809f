/* The arguments of spmv. Every rank reads them and comes to the same result. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* getopt_long */
#endif
#include "arguments.h"
#include "spmv.h"

#include <getopt.h>
#include <string.h>

enum { MOST_ITERATIONS = 10000000 };

const char spmv_usage[] =
    "usage: spmv [options] MATRIX.mtx[.gz]\n"
    "  repeats y = A x, x = y mod 8191 and times the exchange (MPI_Neighbor_alltoallv)\n"
    "  --form column|row       what a rank owns: columns, sending partial sums (default),\n"
    "                          or rows, sending entries of x\n"
    "  --partition block|metis|FILE\n"
    "                          contiguous blocks (default), METIS, or a part number per line\n"
    "  --iterations N          timed iterations (default 100)\n"
    "  --warmup N              iterations before those (default 10)\n"
    "  --seed S                of the values and of METIS (default 1)\n"
    "  --compare               exchange twice an iteration, also by the library's PMPI name: with "
    "a\n"
    "                          preloaded library, the speedup in one run\n"
    "  --pattern FILE --parts N\n"
    "                          write who sends how much to whom with N ranks, and stop\n"
    "  --items                 in it list the entries of x that are sent (row form)\n"
    "  --json                  print one JSON object on one line\n"
    "  --help                  print this\n";

static const struct option long_options[] = {
    {"form", required_argument, NULL, 'f'},
    {"partition", required_argument, NULL, 'p'},
    {"iterations", required_argument, NULL, 'i'},
    {"warmup", required_argument, NULL, 'w'},
    {"seed", required_argument, NULL, 's'},
    {"pattern", required_argument, NULL, 'o'},
    {"parts", required_argument, NULL, 'n'},
    {"items", no_argument, NULL, 'l'},
    {"compare", no_argument, NULL, 'c'},
    {"json", no_argument, NULL, 'j'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int read_form(const char *text, struct spmv_options *options, struct bench_error *error)
{
    if (strcmp(text, "column") != 0 && strcmp(text, "row") != 0)
        return bench_fail(error, "--form wants column or row, not '%s'", text);
    options->form = strcmp(text, "row") == 0 ? SPMV_ROW : SPMV_COLUMN;
    return 0;
}

static int read_count(const char *name, const char *text, int least, int *out,
                      struct bench_error *error)
{
    int64_t value;

    if (bench_parse_integer(text, least, MOST_ITERATIONS, &value) != 0)
        return bench_fail(error, "%s wants a number from %d to %d, not '%s'", name, least,
                          MOST_ITERATIONS, text);
    *out = (int)value;
    return 0;
}

static int take_option(int letter, void *to, struct bench_error *error)
{
    struct spmv_options *options = to;

    switch (letter) {
    case 'f':
        return read_form(optarg, options, error);
    case 'p':
        options->partition = optarg;
        return 0;
    case 'i':
        return read_count("--iterations", optarg, 1, &options->n_iterations, error);
    case 'w':
        return read_count("--warmup", optarg, 0, &options->n_warmup, error);
    case 's':
        if (bench_parse_integer(optarg, 0, INT64_MAX, &options->seed) != 0)
            return bench_fail(error, "--seed wants a number from 0, not '%s'", optarg);
        return 0;
    case 'o':
        options->pattern = optarg;
        return 0;
    case 'n':
        return read_count("--parts", optarg, 1, &options->n_parts, error);
    case 'l':
        options->lists_items = 1;
        return 0;
    case 'c':
        options->compares = 1;
        return 0;
    case 'j':
        options->is_json = 1;
        return 0;
    default: /* help */
        options->wants_help = 1;
        return 0;
    }
}

int spmv_options_read(int n_arguments, char **arguments, struct spmv_options *out,
                      struct bench_error *error)
{
    struct spmv_options options = {
        .partition = "block", .n_iterations = 100, .n_warmup = 10, .seed = 1};
    if (bench_read_options(n_arguments, arguments, long_options, take_option, &options, error) != 0)
        return -1;
    if (!options.wants_help && optind != n_arguments - 1)
        return bench_fail(error, optind == n_arguments ? "no matrix given; name one file"
                                                       : "more than one matrix given; name one");
    if (!options.pattern != !options.n_parts)
        return bench_fail(error, "--pattern FILE and --parts N go together");
    if (options.lists_items && (!options.pattern || options.form != SPMV_ROW))
        return bench_fail(error, "--items goes with --pattern FILE and --form row: partial sums "
                                 "have one destination each");
    options.matrix = options.wants_help ? NULL : arguments[optind];
    *out = options;
    return 0;
}
