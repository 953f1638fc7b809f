/*
 * Functions for all programs of this folder: error texts, checked allocation, parsing of numbers in
 * arguments, hashing, random numbers, quantiles. No MPI, no global state.
 *
 * Random numbers and hashes are defined here bit by bit (64-bit unsigned arithmetic only), so that
 * a seed gives the same matrix and the same checksum on every machine.
 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define BENCH_PRINTF(text, values) __attribute__((format(printf, text, values)))
#else
#define BENCH_PRINTF(text, values)
#endif

/* The text of a failure. The caller owns it; only a function that fails writes it. */
struct bench_error {
    char text[1024];
};

/* Write the message and return -1, so that a failing function can say `return bench_fail(...)`. */
int bench_fail(struct bench_error *error, const char *format, ...) BENCH_PRINTF(2, 3);

/*
 * Room for n items of size bytes each, zeroed; free() it. Never NULL for n == 0, because MPI and
 * METIS dislike null arrays. NULL when n * size overflows or memory ran out.
 */
void *bench_array(size_t n, size_t size);

/* As bench_array, but grow (or shrink) an array made by it; after NULL the old one is unchanged. */
void *bench_resize(void *array, size_t n, size_t size);

/* Read all of text as a decimal number from least to most. 0, or -1 and *out untouched. */
int bench_parse_integer(const char *text, int64_t least, int64_t most, int64_t *out);

/* Read all of text as a finite number from least to most. 0, or -1 and *out untouched. */
int bench_parse_real(const char *text, double least, double most, double *out);

/* A bijection of 64-bit words in which every input bit flips half of the output bits. */
uint64_t bench_mix(uint64_t word);

/* A hash of two words under a seed. */
uint64_t bench_hash(uint64_t seed, uint64_t first, uint64_t second);

/* Writes n bytes of a message. Each hangs on the key, which is to be another for each message, and
 * on its place, so that bytes that came to another place are found. */
void bench_fill(unsigned char *bytes, int n, uint64_t key);

/* Whether n bytes are what bench_fill writes. */
int bench_is_filled(const unsigned char *bytes, int n, uint64_t key);

/* A stream of random numbers (splitmix64); start it with any seed. */
struct bench_random {
    uint64_t state;
};

/* The next 64 random bits. */
uint64_t bench_random_next(struct bench_random *random);

/* A random number from 0 to bound - 1, each as likely as the others; bound must not be 0. */
uint64_t bench_random_below(struct bench_random *random, uint64_t bound);

/* Sort n numbers upwards. */
void bench_sort(double *values, size_t n);

/* The q-quantile (0 <= q <= 1) of n >= 1 sorted values, interpolated between neighbours. */
double bench_quantile(const double *sorted, size_t n, double q);

/* Sort n >= 1 values and return their median. */
double bench_median(double *values, size_t n);

/* The mean of the middle half of n >= 1 sorted values: for numbers that alternate between two
 * levels, as those of coupled iterations do, it lies between the levels, while the median is one of
 * them. */
double bench_midmean(const double *sorted, size_t n);

#endif
