/* A heap whose allocations fail when told, for programs linked with --wrap for malloc, calloc,
 * realloc and free: calls in the objects of the program come here, those of shared libraries do
 * not. One thread. */
#ifndef CARPOOL_TESTS_FAILING_HEAP_H
#define CARPOOL_TESTS_FAILING_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct failing_heap {
    bool counts;  /* allocations are counted, and fail */
    bool goes_on; /* all after fail_at fail too */
    int64_t fail_at;
    int64_t n_calls;
    int64_t n_failed;
    int64_t n_live; /* blocks that have not been freed, whether counted or not */
};

extern struct failing_heap heap;

/* Counts an allocation. Returns whether it is to fail. */
bool heap_fails(void);

#endif
