/* failing_heap.h */
#include "failing_heap.h"

#include <stddef.h>

struct failing_heap heap;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);

bool heap_fails(void)
{
    if (!heap.counts)
        return false;
    heap.n_calls++;
    bool fail = heap.n_calls == heap.fail_at || (heap.goes_on && heap.n_calls > heap.fail_at);
    heap.n_failed += fail;
    return fail;
}

static void *count_live(void *memory)
{
    heap.n_live += memory != NULL;
    return memory;
}

void *__wrap_malloc(size_t size)
{
    return heap_fails() ? NULL : count_live(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return heap_fails() ? NULL : count_live(__real_calloc(n, size));
}

void *__wrap_realloc(void *memory, size_t size)
{
    if (heap_fails())
        return NULL;
    void *grown = __real_realloc(memory, size);
    return memory ? grown : count_live(grown);
}

void __wrap_free(void *memory)
{
    heap.n_live -= memory != NULL;
    __real_free(memory);
}
