/*
 * Helpers of the MPI test programs; common.h says what they do.
 */
#include "common.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PRINTED 5 /* failures that one rank prints */

static long n_failures;

static bool is_known(const char *word, const char *const known[])
{
    for (int i = 0; known[i] != NULL; i++) {
        if (strcmp(word, known[i]) == 0)
            return true;
    }
    return false;
}

void test_start(int *argc, char ***argv, const char *const known[])
{
    int started;
    MPI_Initialized(&started);
    if (!started)
        MPI_Init(argc, argv);
    for (int i = 1; i < *argc; i++) {
        if (strncmp((*argv)[i], "--", 2) == 0 && !is_known((*argv)[i], known)) {
            fprintf(stderr, "unknown option %s\n", (*argv)[i]);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
}

int test_finish(void)
{
    long total = 0;
    MPI_Allreduce(&n_failures, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (total > 0)
        test_print("FAIL: %ld mismatches\n", total);
    else
        test_print("ok\n");
    MPI_Finalize();
    return total > 0;
}

void test_fail(const char *format, ...)
{
    char text[400];
    va_list args;

    if (n_failures++ >= MAX_PRINTED)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("FAIL: rank %d: %s\n", test_rank(), text);
    fflush(stdout);
}

int test_rank(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

int test_size(void)
{
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

void test_print(const char *format, ...)
{
    va_list args;

    if (test_rank() != 0)
        return;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    fflush(stdout);
}

const char *test_option_text(int argc, char **argv, const char *name, const char *otherwise)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    }
    return otherwise;
}

long test_option(int argc, char **argv, const char *name, long otherwise)
{
    const char *text = test_option_text(argc, argv, name, NULL);
    return text != NULL ? strtol(text, NULL, 0) : otherwise;
}

bool test_flag(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return true;
    }
    return false;
}

int test_find_name(const char *name, const char *const names[], const char *otherwise)
{
    int i = 0;
    while (names[i] != NULL && strcmp(names[i], name) != 0)
        i++;
    if (names[i] == NULL && strcmp(name, otherwise) != 0) {
        fprintf(stderr, "unknown name %s\n", name);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return i;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t test_key(uint64_t key, int64_t value)
{
    return mix(mix(key + UINT64_C(0x9e3779b97f4a7c15)) ^ ((uint64_t)value * 0x2545f4914f6cdd1d));
}

uint64_t test_next(struct test_rng *rng)
{
    rng->state += UINT64_C(0x9e3779b97f4a7c15);
    return mix(rng->state);
}

int test_below(struct test_rng *rng, int n)
{
    return (int)((test_next(rng) >> 33) % (uint64_t)n);
}

bool test_chance(struct test_rng *rng, int one_in)
{
    return test_below(rng, one_in) == 0;
}

void test_shuffle(struct test_rng *rng, int n, int items[])
{
    for (int i = n - 1; i > 0; i--) {
        int other = test_below(rng, i + 1);
        int item = items[i];
        items[i] = items[other];
        items[other] = item;
    }
}

uint64_t test_hash(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < n; i++)
        h = (h ^ byte[i]) * UINT64_C(0x100000001b3);
    return h;
}

uint64_t *test_hash_ranks(int n, const uint64_t mine[])
{
    int n_ranks = test_size();
    size_t n_all = (size_t)n * (size_t)n_ranks;
    uint64_t *result = test_alloc((size_t)n * sizeof *result);
    uint64_t *all = test_alloc(n_all * sizeof *all);

    MPI_Gather(mine, n, MPI_UINT64_T, all, n, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    for (int i = 0; i < n && test_rank() == 0; i++) {
        result[i] = TEST_HASH_START;
        for (int rank = 0; rank < n_ranks; rank++)
            result[i] = test_hash(result[i], &all[(size_t)rank * (size_t)n + (size_t)i], 8);
    }
    free(all);
    return result;
}

void test_stream(uint64_t key, size_t at, size_t n, unsigned char *bytes)
{
    while (n > 0) {
        uint64_t word = mix(key + (at / 8) * UINT64_C(0x9e3779b97f4a7c15));
        size_t skip = at % 8;
        size_t piece = n < 8 - skip ? n : 8 - skip;
        memcpy(bytes, (unsigned char *)&word + skip, piece);
        bytes += piece;
        at += piece;
        n -= piece;
    }
}

void *test_alloc(size_t n)
{
    void *memory = malloc(n > 0 ? n : 1);
    if (memory == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    return memory;
}

struct test_area test_area_make(size_t n, uint64_t key)
{
    struct test_area area = {.n = n, .key = key};
    area.all = test_alloc(n + 2 * TEST_GUARD);
    area.data = area.all + TEST_GUARD;
    test_area_fill(&area);
    return area;
}

void test_area_fill(struct test_area *area)
{
    test_stream(area->key, 0, area->n + 2 * TEST_GUARD, area->all);
}

void test_area_free(struct test_area *area)
{
    free(area->all);
    memset(area, 0, sizeof *area);
}

ptrdiff_t test_area_differ(const struct test_area *a, const struct test_area *b)
{
    size_t n = a->n + 2 * TEST_GUARD;
    if (memcmp(a->all, b->all, n) == 0)
        return PTRDIFF_MAX;
    size_t at = 0;
    while (a->all[at] == b->all[at])
        at++;
    return (ptrdiff_t)at - TEST_GUARD;
}
