/*
 * The common part of all programs of this folder that run under MPI: they read their arguments,
 * report what is wrong with them, run and end.
 *
 * Use: define bench_program; main is here.
 */
#ifndef BENCH_MAIN_H
#define BENCH_MAIN_H

#include "arguments.h"
#include "common.h"

#include <mpi.h>

/* A program as it was called. */
struct bench {
    int rank, n_ranks; /* in MPI_COMM_WORLD */
    struct bench_arguments arguments;
};

struct bench_program {
    const char *name, *usage;
    const char *remedy; /* advice when there is no memory: "ask for less" */
    const struct bench_option *options;
    int takes_names; /* arguments that are no options, which check looks at */
    /* Checks whether the arguments fit together, with the same result on all ranks: 0, or -1 with
     * *error written. NULL: no check. */
    int (*check)(const struct bench *bench, struct bench_error *error);
    /* Runs the program: 0, 1 when a result was wrong, or -1 with *error written on rank 0; alike on
     * all ranks. */
    int (*run)(const struct bench *bench, struct bench_error *error);
};

/* Defined by the program. Exit status: 0, 1 when it failed or a result was wrong, 2 for bad
 * arguments. */
extern const struct bench_program bench_program;

/* Ends all ranks with a message: when only one rank cannot go on, it cannot end by MPI_Finalize. */
void bench_abort(const char *format, ...) BENCH_PRINTF(1, 2) __attribute__((noreturn));

/* As bench_array, but ends all ranks when memory ran out. */
void *bench_need(size_t n, size_t size);

#endif
