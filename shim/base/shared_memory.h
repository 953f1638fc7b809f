/* Memory that processes of one machine share: one makes it, the others attach it by what the maker
 * tells them, then the maker takes its name away, so that nothing is left when a process dies.
 *
 * Order of calls: make; attach on the others; unname, when all have tried; free on each. Leaf
 * module: no MPI calls. */
#ifndef CARPOOL_SHARED_MEMORY_H
#define CARPOOL_SHARED_MEMORY_H

#include <stdint.h>

/* What the others must know. It also lies at the beginning of the memory, in the first
 * CPL_SHARED_HEAD bytes: two machines may have different memory under one name. */
struct cpl_shared_name {
    char name[64]; /* "": there is no memory */
    int64_t bytes, nonce;
};

#define CPL_SHARED_HEAD 128

/* Room for why something failed. */
#define CPL_SHARED_WHY 160

/* Makes zeroed memory, all of it at once: a page that cannot be had later would end the program.
 * bytes: with the head. Returns NULL and a text in `why` when that fails. */
void *cpl_shared_make(int64_t bytes, struct cpl_shared_name *name, char why[CPL_SHARED_WHY]);

/* The same memory in another process. Returns NULL and a text in `why` when it cannot be opened
 * here, or is not the same. */
void *cpl_shared_attach(const struct cpl_shared_name *name, char why[CPL_SHARED_WHY]);

/* How many processors the ranks of a node have together. */
long cpl_shared_processors(void);

void cpl_shared_unname(const struct cpl_shared_name *name);
void cpl_shared_free(void *memory, int64_t bytes);

#endif
