/* Kinds of small reductions: by which operation, on vectors of which type and length, and what is
 * known of their result, so that the shim may carry them out (embed.h). Leaf module but for the
 * settings. */
#ifndef CARPOOL_EMBED_KIND_H
#define CARPOOL_EMBED_KIND_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#define CPL_EMBED_KINDS  16   /* of a communicator */
#define CPL_EMBED_VECTOR 1024 /* bytes of a small reduction */

enum cpl_embed_verdict {
    CPL_EMBED_REFUSED,   /* MPI's */
    CPL_EMBED_NEW,       /* MPI's for once: it checks the arguments */
    CPL_EMBED_COMPARING, /* to be compared with MPI's on vectors of our own (embed_probe.h) */
    CPL_EMBED_UNDECIDED, /* the same of a nonblocking one: MPI's until the ranks meet */
    CPL_EMBED_IN_ORDER,  /* ours are MPI's bits when the ranks are combined in their order */
    CPL_EMBED_ANY_ORDER  /* the same result in any order, or the user says that any will do */
};

/* What is known of one kind of reduction on a communicator: alike on all ranks. */
struct cpl_embed_kind {
    MPI_Op op;
    MPI_Datatype type;
    int64_t count;
    bool blocking;
    int64_t extent; /* of the type, in bytes */
    enum cpl_embed_verdict verdict;
};

struct cpl_embed_kinds {
    int n;
    struct cpl_embed_kind kind[CPL_EMBED_KINDS];
};

/* How a reduction would be treated that MPI has carried out once: REFUSED, COMPARING or ANY_ORDER.
 * Alike on all ranks; local. */
enum cpl_embed_verdict cpl_embed_judge(int64_t count, MPI_Datatype type, MPI_Op op, bool blocking);

/* The kind of a reduction, noted when it is NEW; NULL: there are too many. The same on all ranks,
 * which make the same reductions. */
struct cpl_embed_kind *cpl_embed_kind_find(struct cpl_embed_kinds *kinds, MPI_Op op,
                                           MPI_Datatype type, int64_t count, bool blocking);

#endif
