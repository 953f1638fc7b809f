/* A binary heap in an array of any type: what comes before all others is on top. The array is the
 * caller's, and so is its room. Leaf module. */
#ifndef CARPOOL_HEAP_H
#define CARPOOL_HEAP_H

#include <stdint.h>

/* Defines, for entries of `type` of which `before(const type *, const type *)` says whether the one
 * comes before the other:
 *   NAME_push  adds an entry behind n others
 *   NAME_sink  makes a heap of n entries again, of which the one at `at` may come too late, while
 *              all below it are a heap
 *   NAME_pop   takes the top of n entries out; n - 1 are left */
#define CPL_HEAP(name, type, before)                                                               \
    static inline void name##_push(type *heap, int64_t n, type entry)                              \
    {                                                                                              \
        for (; n > 0 && before(&entry, &heap[(n - 1) / 2]); n = (n - 1) / 2)                       \
            heap[n] = heap[(n - 1) / 2];                                                           \
        heap[n] = entry;                                                                           \
    }                                                                                              \
    static inline void name##_sink(type *heap, int64_t n, int64_t at)                              \
    {                                                                                              \
        type entry = heap[at];                                                                     \
        for (int64_t child = 2 * at + 1; child < n; child = 2 * at + 1) {                          \
            child += child + 1 < n && before(&heap[child + 1], &heap[child]);                      \
            if (!before(&heap[child], &entry))                                                     \
                break;                                                                             \
            heap[at] = heap[child];                                                                \
            at = child;                                                                            \
        }                                                                                          \
        heap[at] = entry;                                                                          \
    }                                                                                              \
    static inline type name##_pop(type *heap, int64_t n)                                           \
    {                                                                                              \
        type top = heap[0];                                                                        \
        heap[0] = heap[n - 1];                                                                     \
        if (n > 1)                                                                                 \
            name##_sink(heap, n - 1, 0);                                                           \
        return top;                                                                                \
    }

#endif
