/*
 * What the parts of the program `collectives` share: a place is a communicator that the calls are
 * made on, and what they received there.
 */
#ifndef TESTS_MPI_COLLECTIVES_H
#define TESTS_MPI_COLLECTIVES_H

#include "common.h"

enum { MAX_RESULTS = 64 };

struct place {
    const char *name;
    MPI_Comm comm;
    bool inter;
    int rank;
    int n; /* ranks that this rank exchanges with: of the other group if inter */
    int64_t my_side, far_side; /* alike for all ranks of a group, different for the two groups */
    int root;                  /* as the calls want it */
    bool at_root;
    bool reached; /* by what the root sends */
    int n_results;
    struct {
        const char *name;
        uint64_t hash;
    } results[MAX_RESULTS];
};

/* Adds to the hash of what was received; the first call with a name makes its line. */
void place_note(struct place *place, const char *name, const void *bytes, size_t n);

/* The calls that only move data, with their large-count forms. */
void collectives_move(struct place *place, int round);
/* Reductions; bits that depend on the order of summation are noted, not checked. */
void collectives_reduce(struct place *place);
/* Calls that make and end communicators, windows and files (intracommunicators only). */
void collectives_make(struct place *place);

#endif
