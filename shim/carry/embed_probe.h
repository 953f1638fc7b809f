/* Whether our reductions have MPI's bits: vectors of our own are reduced by both, and compared
 * (embed.h). The program's data prove nothing: flags, zeros and small whole numbers come out alike
 * in any order of adding. These do not: values of widely different magnitude, values of which two
 * cancel each other so that only what is added outside of the two's meeting is left, and for minima
 * and maxima zeros of both signs and no numbers. Leaf module. */
#ifndef CARPOOL_EMBED_PROBE_H
#define CARPOOL_EMBED_PROBE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#define CPL_EMBED_PROBES 36 /* vectors that are compared */

/* Whether there are such vectors of a datatype. Local. */
bool cpl_embed_can_probe(MPI_Datatype type);

/* Fills the k-th vector of a rank: count elements, all bytes. Local. */
void cpl_embed_probe_fill(void *vector, int64_t count, MPI_Datatype type, MPI_Op op, int k,
                          int rank, int n_ranks);

#endif
