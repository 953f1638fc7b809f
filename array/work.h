/* Processor time of the array's own work, for the chooser's model (choice.h) and for simulators
 * that do not measure it: bench/sim charges it to the simulated rank (CPL_SIMULATED). Elsewhere the
 * functions do nothing. The figures are rounded from those of `bench/graph work`, which prints in a
 * simulation what the figures predict for the same work (bench/results/array.md). */
#ifndef CARPOOL_ARRAY_WORK_H
#define CARPOOL_ARRAY_WORK_H

#include <stdint.h>

/* Nanoseconds per request. */
#define CPL_WORK_MATCH    7.0   /* merging sorted segments: each match */
#define CPL_WORK_DIGIT    3.0   /* sorting: each digit */
#define CPL_WORK_COUNTS   600.0 /* sorting: counting, per digit and not per request */
#define CPL_WORK_IN_ORDER 1.0   /* folding one sorted segment */
#define CPL_WORK_HASH     2.0   /* folding by hashing */
#define CPL_WORK_HASH_NEW 1.0   /* additional: the first request for an element */
#define CPL_WORK_HASH_FAR 6.0   /* instead, when there are more elements than a near cache holds */
#define CPL_WORK_TREE     90.0  /* folding by the tree; next two: of sorted runs, per match */
#define CPL_WORK_TREE_ONE 25.0
#define CPL_WORK_TREE_LOG 9.0
#define CPL_WORK_MOVE     2.0  /* copying a request or a value to its place */
#define CPL_WORK_OWNER    5.0  /* finding the next rank, when the owner changes */
#define CPL_WORK_COMBINE  8.0  /* combining a write into a value */
#define CPL_WORK_REDUCE   65.0 /* combining by MPI_Reduce_local */
#define CPL_WORK_ENVELOPE 18.0 /* an answer to its asker, per stage */

#define CPL_WORK_NEAR 8192 /* elements that fit a near cache */
#define CPL_WORK_BYTE 0.02 /* copying a byte */

/* Nanoseconds of sorting n requests by digits, of folding n requests by hashing of which n_new are
 * for new elements, and of merging sorted runs with n_matches comparisons per request. */
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

/* Charges copying n requests of `bytes` bytes to their places. */
static inline void cpl_array_work_move(int64_t n, int64_t bytes)
{
    cpl_array_work((double)n * (CPL_WORK_MOVE + (double)bytes * CPL_WORK_BYTE));
}

#endif
