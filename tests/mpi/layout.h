/*
 * Datatypes whose elements' places in memory are known: random ones, to be filled and hashed
 * (neighbors_type.c). One rank's matter: drawn from its own generator.
 */
#ifndef TESTS_MPI_LAYOUT_H
#define TESTS_MPI_LAYOUT_H

#include "common.h"

#define MAX_UNIT 12 /* elements in one instance of a datatype */

/* An element: `size` bytes of data at the start of every `extent` bytes. */
struct base {
    MPI_Datatype type;
    int size;
    int extent;
};

/* A datatype of `unit` elements, and where in memory they are. Every element of instance i lies
 * within [lb + i * extent, lb + (i + 1) * extent). */
struct layout {
    MPI_Datatype type;
    bool derived; /* to be freed */
    struct base base;
    int unit;
    MPI_Aint offset[MAX_UNIT];
    MPI_Aint lb;
    MPI_Aint extent;
};

struct base base_pick(struct test_rng *rng);
struct layout layout_make(struct test_rng *rng, struct base base, int unit, bool derived);
void layout_free(struct layout *layout);
/* Writes the content of `key` into `count` instances; `origin` is what MPI is given. */
void layout_put(const struct layout *layout, unsigned char *origin, int count, uint64_t key);
/* Hashes what is in `count` instances, in the order of the signature. */
uint64_t layout_hash(const struct layout *layout, const unsigned char *origin, int count,
                     uint64_t h);

#endif
