/* Packing of segments and items (memory.h). */
#include "memory.h"

#include "robust.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_PIECES   1024
#define DATA_BYTES (256 << 10) /* that pieces come from: a second-level cache holds it */
#define N_SAMPLES  200
#define N_PASSES   10 /* of a sample */

struct piece {
    uint32_t at, bytes;
};

struct memory {
    char data[DATA_BYTES];
    char packed[N_PIECES * 64];
    struct piece piece[N_PIECES];
    uint32_t item[N_PIECES];
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

__attribute__((noinline)) static void copy_segments(struct memory *memory)
{
    char *to = memory->packed;
    for (int k = 0; k < N_PIECES; k++) {
        memcpy(to, memory->data + memory->piece[k].at, memory->piece[k].bytes);
        to += memory->piece[k].bytes;
    }
    const char *from = memory->packed;
    for (int k = 0; k < N_PIECES; k++) {
        memcpy(memory->data + memory->piece[k].at, from, memory->piece[k].bytes);
        from += memory->piece[k].bytes;
    }
}

__attribute__((noinline)) static void copy_items(struct memory *memory)
{
    uint64_t *items = (uint64_t *)(void *)memory->data;
    uint64_t *packed = (uint64_t *)(void *)memory->packed;
    for (int k = 0; k < N_PIECES; k++)
        packed[k] = items[memory->item[k]];
    for (int k = 0; k < N_PIECES; k++)
        items[memory->item[k]] = packed[k];
}

/* Per piece and end. */
static double measure(struct memory *memory, void (*copy)(struct memory *memory))
{
    double value[N_SAMPLES];
    copy(memory);
    for (int k = 0; k < N_SAMPLES; k++) {
        double start = now_ns();
        for (int pass = 0; pass < N_PASSES; pass++)
            copy(memory);
        value[k] = (now_ns() - start) / (2.0 * N_PASSES * N_PIECES);
    }
    return cpl_robust_median(value, N_SAMPLES);
}

int cpl_memory_measure(double *segment_ns, double *item_ns)
{
    struct memory *memory = calloc(1, sizeof *memory);
    uint64_t random = 1;
    if (!memory)
        return -1;
    for (uint32_t k = 0; k < N_PIECES; k++) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        memory->item[k] = (uint32_t)(random >> 40) % (DATA_BYTES / 8);
        memory->piece[k].bytes = 8 * (1 + (uint32_t)(random >> 37) % 8);
        memory->piece[k].at = 8 * ((uint32_t)(random >> 42) % (DATA_BYTES / 8 - 8));
    }
    *segment_ns = measure(memory, copy_segments);
    *item_ns = measure(memory, copy_items);
    free(memory);
    return 0;
}
