/*
 * What all programs of this folder that run under MPI do alike: they read their arguments, tell
 * what is wrong with them, run and end.
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
    const char *remedy; /* when there is no memory: "ask for less" */
    const struct bench_option *options;
    int takes_names; /* arguments that are no options, which check looks at */
    /* Whether the arguments go together, the same on all ranks; NULL: they do. 0, or -1 with
     * *error written. */
    int (*check)(const struct bench *bench, struct bench_error *error);
    /* 0, 1 when something came wrong, or -1 with *error written on rank 0; alike on all ranks. */
    int (*run)(const struct bench *bench, struct bench_error *error);
};

/* The program's own. Its exit status: 0, 1 when it failed or something came wrong, 2 for bad
 * arguments. */
extern const struct bench_program bench_program;

/* Ends all ranks with a message: a lone one that cannot go on cannot leave by MPI_Finalize. */
void bench_abort(const char *format, ...) BENCH_PRINTF(1, 2) __attribute__((noreturn));

/* As bench_array, but without memory the ranks end. */
void *bench_need(size_t n, size_t size);

#endif
