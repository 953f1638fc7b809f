/*
 * What the programs of the promise share: a start with an alarm, an exchange that becomes managed,
 * printing in an order of its own, and the counting of wrong data.
 *
 * The promise: a correct program prints under the preload, byte for byte, what it prints without
 * it, and ends. So everything printed by these programs comes from rank 0 and is the same in every
 * run with the same arguments (no times, no addresses); only lines with WRONG come from any rank.
 * A program that hangs is ended by its alarm (50 s, or PROMISE_ALARM seconds) and so exits with
 * another code than 0.
 *
 * Order of use: promise_start, then anything, then `return promise_finish();`.
 */
#ifndef TESTS_PROMISE_H
#define TESTS_PROMISE_H

#include "../mpi3.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#define WARM_ROUNDS 24 /* after so many an exchange is managed, whatever the settings */
#define BATCH_TAG   7
#define MAX_RANKS   64

extern int me, n_ranks; /* rank in and size of MPI_COMM_WORLD */

/* A case of a program: `program NAME [NUMBER...]`. */
struct promise_case {
    const char *name;
    void (*run)(void);
};

/* The messages of one round, under way: an int to each other rank and one from each. */
struct batch {
    MPI_Comm comm;
    int rank, size, round, n_requests;
    int out[MAX_RANKS], in[MAX_RANKS];
    MPI_Request requests[2 * MAX_RANKS];
};

void promise_alarm(void); /* before anything else, where MPI_Init is not called by promise_start */
void promise_start(int *argc, char ***argv);
void promise_started(void); /* after an MPI_Init of the program's own */
/* Collective on MPI_COMM_WORLD: sums what was wrong, prints the verdict, finalizes. Exit code. */
int promise_finish(void);
/* promise_start, the case that argv[1] names (2 when there is none of that name), promise_finish.
 * Ends a program: `return promise_main(argc, argv, cases, n);`. */
int promise_main(int argc, char **argv, const struct promise_case *cases, size_t n_cases);
/* The number in argv[2 + i], or what is taken when there is none. */
long option(int i, long otherwise);
const char *word(int i, const char *otherwise); /* the same for words */

/* Counts a failure and prints it (the first few of a rank). */
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say(const char *format, ...) __attribute__((format(printf, 1, 2))); /* rank 0 alone prints */
/* Collective on MPI_COMM_WORLD: a line from each rank, printed by rank 0 in order of ranks. */
void say_all(const char *format, ...) __attribute__((format(printf, 1, 2)));
int class_of(int error); /* 0 for MPI_SUCCESS */

/* One round, in two halves or at once. */
void batch_begin(struct batch *batch, MPI_Comm comm, int round);
void batch_end(struct batch *batch);
/* Collective: WARM_ROUNDS rounds, each followed by a barrier or a small sum. */
void warm_up(MPI_Comm comm);
void warm_rounds(MPI_Comm comm, int rounds);

int beside(int by);      /* the rank so many to the right, cyclically */
int partner_of_me(void); /* the rank that differs in the last bit, or -1 */
void fill(void *buffer, size_t n, int key);
void expect(const void *buffer, size_t n, int key, const char *what);
void expect_int(int got, int wanted, const char *what);

/* Out of band: flags in memory that all ranks share, set and awaited without any call of MPI. */
void flags_open(void); /* collective */
void flag_set(int flag, int value);
int flag_get(int flag);
void flag_await(int flag, int value);
void nap(double seconds);

#endif
