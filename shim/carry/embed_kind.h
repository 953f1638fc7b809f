/* Kinds of small reductions: their operation, type and length of vectors, and whether the shim's
 * results are known to be MPI's, so that it may carry them out (embed.h). Leaf module but for the
 * settings. */
#ifndef CARPOOL_EMBED_KIND_H
#define CARPOOL_EMBED_KIND_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#define CPL_EMBED_KINDS  16   /* the most kinds of a communicator */
#define CPL_EMBED_VECTOR 1024 /* the most bytes of a small reduction's vector */

enum cpl_embed_verdict {
    CPL_EMBED_REFUSED,   /* MPI carries them out */
    CPL_EMBED_COMPARING, /* to be compared with MPI's on vectors of our own (embed_probe.c) */
    CPL_EMBED_UNDECIDED, /* to be compared, but nonblocking: MPI's until the ranks meet */
    CPL_EMBED_IN_ORDER,  /* the shim's results have MPI's bits when combined in the ranks' order */
    CPL_EMBED_ANY_ORDER  /* the result is the same in any order, or the user accepts any order */
};

/* What is known of one kind of reduction on a communicator: alike on all ranks. */
struct cpl_embed_kind {
    MPI_Op op;
    MPI_Datatype type;
    int64_t count;
    bool blocking;
    int64_t extent; /* extent of the type, in bytes */
    enum cpl_embed_verdict verdict;
};

struct cpl_embed_kinds {
    int n;
    struct cpl_embed_kind kind[CPL_EMBED_KINDS];
};

/* The verdict on a reduction that MPI accepts: REFUSED, COMPARING or ANY_ORDER. Alike on all ranks;
 * local. */
enum cpl_embed_verdict cpl_embed_judge(int64_t count, MPI_Datatype type, MPI_Op op);

/* Finds the kind of a reduction, or adds it, UNDECIDED if it is to be compared but does not block;
 * NULL: it is refused (the program's own operations, whose handles may differ between ranks, take
 * no place), or there are too many. The same on all ranks, because they make the same reductions.
 */
struct cpl_embed_kind *cpl_embed_kind_find(struct cpl_embed_kinds *kinds, MPI_Op op,
                                           MPI_Datatype type, int64_t count, bool blocking);

/* embed_probe.c: test vectors that show whether the shim's reductions have MPI's bits: both reduce
 * them, and the results are compared. The program's data would prove nothing: flags, zeros and
 * small whole numbers give the same result in any order of adding. The test vectors do not: they
 * have values of widely different magnitude, pairs of values that cancel each other, so that the
 * result depends on what is added between the two, and for minima and maxima zeros of both signs
 * and NaNs.
 *
 * cpl_embed_can_probe: whether there are some of a datatype. cpl_embed_probe_fill: fills the k-th
 * one of a rank: count elements, including padding bytes. Local. */
#define CPL_EMBED_PROBES 36 /* number of test vectors */
bool cpl_embed_can_probe(MPI_Datatype type);
void cpl_embed_probe_fill(void *vector, int64_t count, MPI_Datatype type, MPI_Op op, int k,
                          int rank, int n_ranks);

#endif
