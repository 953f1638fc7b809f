/* The array's own work: what it takes, for the chooser's model (choice.h) and for simulators that
 * do not measure processor time: bench/sim charges it to the rank that is simulated
 * (CPL_SIMULATED). Elsewhere nothing is called. The figures are rounded from those of
 * `bench/graph work`, which prints in a simulation what they make of the same (bench/README.md). */
#ifndef CARPOOL_ARRAY_WORK_H
#define CARPOOL_ARRAY_WORK_H

#include <stdint.h>

/* Nanoseconds a request. */
#define CPL_WORK_MATCH    7.0  /* merging sorted segments: each match, log2 of the segments */
#define CPL_WORK_DIGIT    4.0  /* sorting: each digit */
#define CPL_WORK_IN_ORDER 1.0  /* folding one sorted segment */
#define CPL_WORK_HASH     2.0  /* folding by hashing */
#define CPL_WORK_HASH_NEW 6.0  /* the same: the first request for an element, in addition */
#define CPL_WORK_TREE     90.0 /* folding by the tree */
#define CPL_WORK_MOVE     2.0  /* copying a request or a value to its place */
#define CPL_WORK_OWNER    4.0  /* finding the next rank, where the owner is not the last one's */
#define CPL_WORK_COMBINE  8.0  /* a write, into what is there */
#define CPL_WORK_REDUCE   65.0 /* the same by MPI_Reduce_local */
#define CPL_WORK_ENVELOPE 12.0 /* an answer by who asked for it, a stage */

#define CPL_WORK_BYTE 0.02 /* a byte that is copied */

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
