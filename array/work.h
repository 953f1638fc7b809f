/* The array's own work: what it takes, for the chooser's model (choice.h) and for simulators that
 * do not measure processor time: bench/sim charges it to the rank that is simulated
 * (CPL_SIMULATED). Elsewhere nothing is called. The figures are rounded from those of
 * `bench/graph work`, which prints in a simulation what they make of the same (bench/README.md). */
#ifndef CARPOOL_ARRAY_WORK_H
#define CARPOOL_ARRAY_WORK_H

#include <stdint.h>

/* Nanoseconds a request. */
#define CPL_WORK_MATCH    7.0   /* merging sorted segments: each match */
#define CPL_WORK_DIGIT    3.0   /* sorting: each digit */
#define CPL_WORK_COUNTS   600.0 /* the same, in all: what is counted of a digit */
#define CPL_WORK_IN_ORDER 1.0   /* folding one sorted segment */
#define CPL_WORK_HASH     2.0   /* folding by hashing */
#define CPL_WORK_HASH_NEW 1.0   /* the same: the first request for an element, in addition */
#define CPL_WORK_HASH_FAR 6.0   /* the same where elements are more than a near cache has */
#define CPL_WORK_TREE     90.0  /* folding by the tree; sorted segments: one, and each match more */
#define CPL_WORK_TREE_ONE 25.0
#define CPL_WORK_TREE_LOG 9.0
#define CPL_WORK_MOVE     2.0  /* copying a request or a value to its place */
#define CPL_WORK_OWNER    5.0  /* finding the next rank, where the owner is not the last one's */
#define CPL_WORK_COMBINE  8.0  /* a write, into what is there */
#define CPL_WORK_REDUCE   65.0 /* the same by MPI_Reduce_local */
#define CPL_WORK_ENVELOPE 18.0 /* an answer by who asked for it, a stage */

#define CPL_WORK_NEAR 8192 /* elements in a near cache */
#define CPL_WORK_BYTE 0.02 /* a byte that is copied */

/* Sorting n requests by digits, folding them by hashing where so many are for new elements, and
 * merging segments, where the next request wins so many matches: ns. */
static inline double cpl_work_digits_ns(double n, int n_digits)
{
    return n_digits * (n * CPL_WORK_DIGIT + CPL_WORK_COUNTS);
}

static inline double cpl_work_hash_ns(double n, double n_new)
{
    return n * CPL_WORK_HASH +
           n_new * (n_new > CPL_WORK_NEAR ? CPL_WORK_HASH_FAR : CPL_WORK_HASH_NEW);
}

static inline double cpl_work_merge_ns(double n, int n_matches)
{
    return n * n_matches * CPL_WORK_MATCH;
}

#ifdef CPL_SIMULATED
void cpl_array_work(double ns);
#else
static inline void cpl_array_work(double ns)
{
    (void)ns;
}
#endif

/* So many requests were copied to their places, with so many bytes each. */
static inline void cpl_array_work_move(int64_t n, int64_t bytes)
{
    cpl_array_work((double)n * (CPL_WORK_MOVE + (double)bytes * CPL_WORK_BYTE));
}

#endif
