/* An arena: many allocations, one release. Everything that belongs to one plan or pattern lives in
 * one arena, so that unwinding after a failure is a single call.
 *
 * Cost: an allocation is a bump of a pointer; chunks grow geometrically. Thread rule: one thread at
 * a time per arena. */
#ifndef CARPOOL_ARENA_H
#define CARPOOL_ARENA_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cpl_arena_chunk;

struct cpl_arena {
    struct cpl_arena_chunk *last; /* newest chunk, NULL when empty */
};

#ifdef __cplusplus
#define CPL_ARENA_EMPTY (cpl_arena{NULL})
#else
#define CPL_ARENA_EMPTY ((struct cpl_arena){NULL})
#endif

/* Memory for count elements of size bytes, zeroed and aligned for any type. NULL when memory ran
 * out or count * size overflows. A count of 0 gives a valid pointer. */
void *cpl_arena_alloc(struct cpl_arena *arena, size_t count, size_t size);

/* cpl_arena_alloc for an array of a type. */
#define CPL_ARENA_ARRAY(arena, type, count)                                                        \
    ((type *)cpl_arena_alloc((arena), (size_t)(count), sizeof(type)))

/* Releases all memory of the arena and leaves it empty and usable. */
void cpl_arena_free(struct cpl_arena *arena);

#ifdef __cplusplus
}
#endif

#endif
