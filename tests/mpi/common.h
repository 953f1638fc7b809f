/*
 * What the MPI test programs share: a seeded generator, a hash, guarded memory areas, options, and
 * the counting of failures.
 *
 * Order of use: test_start, then anything, then `return test_finish();`. Everything printed is the
 * same in every run with the same arguments: no times, no addresses. One thread per process.
 */
#ifndef TESTS_MPI_COMMON_H
#define TESTS_MPI_COMMON_H

#include "../mpi3.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined __GLIBC__ && !__GLIBC_PREREQ(2, 33)
#define mallinfo2 mallinfo
#endif

#define TEST_HASH_START UINT64_C(0xcbf29ce484222325)
#define TEST_GUARD      64 /* bytes of pattern on each side of an area */

struct test_rng {
    uint64_t state;
};

/* A piece of memory filled with a pattern, with guards on both sides. */
struct test_area {
    unsigned char *all;  /* guard, data, guard; owned */
    unsigned char *data; /* the n bytes in the middle */
    size_t n;
    uint64_t key; /* of the pattern */
};

/* Initialises MPI, unless the program has; exits with 2 when an option is not in `known` (names
 * ending in NULL). */
void test_start(int *argc, char ***argv, const char *const known[]);
/* Collective on MPI_COMM_WORLD: sums the failures, prints the verdict on rank 0, finalizes MPI.
 * Returns the exit code: 0 or 1. */
int test_finish(void);
/* Counts a failure and prints it (the first few of a rank). */
void test_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int test_rank(void);
int test_size(void);
/* Prints on rank 0 only. */
void test_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The value after option `name`, or the default; a flag is an option without a value. */
long test_option(int argc, char **argv, const char *name, long otherwise);
const char *test_option_text(int argc, char **argv, const char *name, const char *otherwise);
bool test_flag(int argc, char **argv, const char *name);
/* Index of a name in a list that ends with NULL, that of the NULL for `otherwise`; aborts with 2
 * for an unknown one. */
int test_find_name(const char *name, const char *const names[], const char *otherwise);

/* splitmix64. A key made from a key and a value depends on both; keys seed generators. */
uint64_t test_key(uint64_t key, int64_t value);
uint64_t test_next(struct test_rng *rng);
int test_below(struct test_rng *rng, int n); /* 0 <= result < n; n > 0 */
bool test_chance(struct test_rng *rng, int one_in);
void test_shuffle(struct test_rng *rng, int n, int items[]);

/* FNV-1a, continued from h. */
uint64_t test_hash(uint64_t h, const void *bytes, size_t n);
/* Collective on MPI_COMM_WORLD: for each of n values, the hash over all ranks' values in rank
 * order; valid on rank 0. The caller frees the result. */
uint64_t *test_hash_ranks(int n, const uint64_t mine[]);

/* The message content that belongs to a key: n bytes from position `at` on. */
void test_stream(uint64_t key, size_t at, size_t n, unsigned char *bytes);

/* Memory, or exit. n may be 0; the result is never NULL. */
void *test_alloc(size_t n);
struct test_area test_area_make(size_t n, uint64_t key);
void test_area_fill(struct test_area *area); /* the pattern again, guards included */
void test_area_free(struct test_area *area);
/* Position in data of the first byte in which two areas of one size differ (negative: in the
 * guard before it), or PTRDIFF_MAX when there is none. */
ptrdiff_t test_area_differ(const struct test_area *a, const struct test_area *b);

#endif
