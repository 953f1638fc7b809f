/* A program of the ranks of pt2pt_ranks.h: exchanges with a collective after each. */
#ifndef CARPOOL_TESTS_PT2PT_PROGRAM_H
#define CARPOOL_TESTS_PT2PT_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

enum { N = 4, LATE_TAG = 9 };

/* What the program of each test goes by. */
struct pt2pt_program {
    int n_collectives;  /* that fibers_run is to make */
    int64_t managed_at; /* the first rank's collective after which it was managed; 0: never */
    int64_t alone_at;   /* or MPI's again, for good or for a while */
    int from, late; /* a message that is received so many collectives after the from-th; 0: none */
    bool plain;     /* each rank sends to one other only */
};

extern struct pt2pt_program plan;

/* begin: N ranks, in mode auto. run: the program on all of them. */
void begin(uint64_t seed);
void run(int n_collectives);

/* After a collective of the rank: notes what it is in now. */
void note_phase(int rank);

#endif
