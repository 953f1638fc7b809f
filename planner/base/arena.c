/* Arena of chunks (arena.h). */
#include "planner/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#define FIRST_CHUNK   ((size_t)1 << 10) /* many arenas hold a few hundred bytes */
#define LARGEST_CHUNK ((size_t)4 << 20)

struct cpl_arena_chunk {
    struct cpl_arena_chunk *previous;
    size_t size; /* bytes of data */
    size_t used;
    alignas(max_align_t) unsigned char data[];
};

static size_t next_chunk_size(const struct cpl_arena *arena, size_t bytes)
{
    size_t size = arena->last ? arena->last->size * 2 : FIRST_CHUNK;
    if (size > LARGEST_CHUNK)
        size = LARGEST_CHUNK;
    return size < bytes ? bytes : size;
}

static struct cpl_arena_chunk *add_chunk(struct cpl_arena *arena, size_t bytes)
{
    size_t size = next_chunk_size(arena, bytes);
    if (size > SIZE_MAX - sizeof(struct cpl_arena_chunk))
        return NULL;
    /* Zeroed here and handed out once: large chunks come zeroed from the kernel at no cost. */
    struct cpl_arena_chunk *chunk = calloc(1, sizeof *chunk + size);
    if (!chunk)
        return NULL;
    chunk->previous = arena->last;
    chunk->size = size;
    arena->last = chunk;
    return chunk;
}

void *cpl_arena_alloc(struct cpl_arena *arena, size_t count, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size && count > (SIZE_MAX - align) / size)
        return NULL;
    size_t bytes = (count * size + align - 1) / align * align;
    struct cpl_arena_chunk *chunk = arena->last;
    if (!chunk || bytes > chunk->size - chunk->used)
        chunk = add_chunk(arena, bytes);
    if (!chunk)
        return NULL;
    void *memory = chunk->data + chunk->used;
    chunk->used += bytes;
    return memory;
}

void cpl_arena_free(struct cpl_arena *arena)
{
    while (arena->last) {
        struct cpl_arena_chunk *chunk = arena->last;
        arena->last = chunk->previous;
        free(chunk);
    }
}
