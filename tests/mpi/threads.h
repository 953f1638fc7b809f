/*
 * What the parts of the program `threads` share.
 */
#ifndef TESTS_MPI_THREADS_H
#define TESTS_MPI_THREADS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#define N_NEAR   3  /* neighbours on each side */
#define N_WORDS  40 /* ints of a message, at most */
#define N_STEPS  12 /* kinds of steps */
#define MOST_TAG 64 /* tags of a course */

/* A course: a sequence of steps on communicators of its own, and with tags of its own on the common
 * ones. One thread walks it, another one on each rank. */
struct course {
    int number, rank, n_ranks;
    MPI_Comm comm, graph; /* all ranks; each with its N_NEAR neighbours to the right and left */
    int near[2 * N_NEAR];
    uint64_t pause; /* state of the generator of pauses, other ones on each rank */
};

/* The k-th step of the course. Nothing printed; failures are counted. */
void course_step(struct course *course, int k);

/* Counts a failure; any thread. */
void course_fail(const struct course *course, int k, int from, const char *what);
int course_failures(void);

#endif
