/*
 * What programs of this folder share of reading their arguments: the loop over getopt_long with its
 * errors, and numbers. Call before or after MPI_Init; nothing is printed here.
 */
#ifndef BENCH_ARGUMENTS_H
#define BENCH_ARGUMENTS_H

#include "common.h"

#include <getopt.h>
#include <stdint.h>

/* Take the option with this letter of the table, its value in optarg, into options. 0, or -1 with
 * *error written. */
typedef int bench_option(int letter, void *options, struct bench_error *error);

/*
 * Read all options of the table `names` (which ends with zeros); optind is then the first argument
 * that is none. 0, or -1 with *error written: an option is unknown, lacks its value, or was not
 * taken.
 */
int bench_read_options(int n_arguments, char **arguments, const struct option *names,
                       bench_option *take, void *options, struct bench_error *error);

/* Read optarg, the value of --name, as a whole number from least to most. 0, or -1 with *error
 * written and *value untouched. */
int bench_read_number(const char *name, int64_t least, int64_t most, int64_t *value,
                      struct bench_error *error);

#endif
