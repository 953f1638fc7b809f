/* Test vectors that show whether the shim's reductions have MPI's bits: both reduce them, and the
 * results are compared (embed.h). The program's data would prove nothing: flags, zeros and small
 * whole numbers give the same result in any order of adding. The test vectors do not: they have
 * values of widely different magnitude, pairs of values that cancel each other, so that the result
 * depends on what is added between the two, and for minima and maxima zeros of both signs and NaNs.
 * Leaf module. */
#ifndef CARPOOL_EMBED_PROBE_H
#define CARPOOL_EMBED_PROBE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#define CPL_EMBED_PROBES 36 /* number of test vectors */

/* Whether there are test vectors of a datatype. Local. */
bool cpl_embed_can_probe(MPI_Datatype type);

/* Fills the k-th test vector of a rank: count elements, including padding bytes. Local. */
void cpl_embed_probe_fill(void *vector, int64_t count, MPI_Datatype type, MPI_Op op, int k,
                          int rank, int n_ranks);

#endif
