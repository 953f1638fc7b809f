/* Memory that a rank must have, because other ranks would wait for it: it waits until it gets
 * some. */
#ifndef CARPOOL_MEMORY_H
#define CARPOOL_MEMORY_H

#include <stddef.h>

/* Call after an attempt that failed for lack of memory, then try again; *tries is 0 at the first
 * call. Frees the reserve, in later calls waits a millisecond. After a second without success it
 * logs what there is no memory for and ends the program. */
void cpl_memory_wait(int *tries, const char *what);

/* So many bytes, zeros, after waiting for them in that way; the caller frees them. */
void *cpl_memory_need(size_t bytes, const char *what);

/* The same for memory that is there, NULL: none, and must become so large: as realloc. */
void *cpl_memory_grow(void *memory, size_t bytes, const char *what);

/* Sets some memory aside as a reserve, unless there is one; frees it at the end. */
void cpl_memory_put_by(void);
void cpl_memory_free(void);

#endif
