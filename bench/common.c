/* The helpers of common.h; see there. */
#include "common.h"

#include "planner/base/hash.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int bench_fail(struct bench_error *error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return -1;
}

void *bench_array(size_t n, size_t size)
{
    if (n == 0)
        n = 1;
    return calloc(n, size); /* calloc checks the product */
}

void *bench_resize(void *array, size_t n, size_t size)
{
    if (n == 0)
        n = 1;
    if (size != 0 && n > SIZE_MAX / size)
        return NULL;
    return realloc(array, n * size);
}

int bench_parse_integer(const char *text, int64_t least, int64_t most, int64_t *out)
{
    char *end;

    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < least || value > most)
        return -1;
    *out = value;
    return 0;
}

int bench_parse_real(const char *text, double least, double most, double *out)
{
    char *end;
    double value = strtod(text, &end);

    /* Written so that a NaN fails too. */
    if (end == text || *end != '\0' || !(value >= least && value <= most))
        return -1;
    *out = value;
    return 0;
}

uint64_t bench_mix(uint64_t word)
{
    return cpl_hash_mix(word);
}

#define GOLDEN_STEP UINT64_C(0x9e3779b97f4a7c15)

uint64_t bench_hash(uint64_t seed, uint64_t first, uint64_t second)
{
    uint64_t word = bench_mix(seed + GOLDEN_STEP);

    word = bench_mix(word + first + GOLDEN_STEP);
    return bench_mix(word + second + GOLDEN_STEP);
}

static unsigned char byte_at(uint64_t key, int place)
{
    return (unsigned char)((key + (uint64_t)place * GOLDEN_STEP) >> 56);
}

void bench_fill(unsigned char *bytes, int n, uint64_t key)
{
    for (int k = 0; k < n; k++)
        bytes[k] = byte_at(key, k);
}

int bench_is_filled(const unsigned char *bytes, int n, uint64_t key)
{
    int k = 0;
    while (k < n && bytes[k] == byte_at(key, k))
        k++;
    return k == n;
}

uint64_t bench_random_next(struct bench_random *random)
{
    return cpl_random_next(&random->state);
}

uint64_t bench_random_below(struct bench_random *random, uint64_t bound)
{
    /* Draws beyond the last whole multiple of bound would favour small results: draw again. */
    uint64_t surplus = (UINT64_MAX % bound + 1) % bound;
    uint64_t draw;

    do
        draw = bench_random_next(random);
    while (draw > UINT64_MAX - surplus);
    return draw % bound;
}

static int compare_reals(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

void bench_sort(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare_reals);
}

double bench_quantile(const double *sorted, size_t n, double q)
{
    double place = q * (double)(n - 1);
    size_t below = (size_t)place;
    double rest = place - (double)below;

    if (below + 1 >= n)
        return sorted[n - 1];
    return sorted[below] + rest * (sorted[below + 1] - sorted[below]);
}

double bench_median(double *values, size_t n)
{
    bench_sort(values, n);
    return bench_quantile(values, n, 0.5);
}

double bench_midmean(const double *sorted, size_t n)
{
    size_t first = n / 4, end = n - n / 4;
    double sum = 0;

    for (size_t i = first; i < end; i++)
        sum += sorted[i];
    return sum / (double)(end - first);
}
