/* The exponential function (exponential.h). */
#include "planner/search/exponential.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* 2^n for -1022 <= n <= 1023. */
static double power_of_two(int64_t n)
{
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

double cpl_exponential(double x)
{
    const double log2_e = 1.4426950408889634, ln2 = 0.6931471805599453;
    if (x < -700)
        return 0;
    if (x > 700)
        x = 700;
    double halves = x * log2_e;
    int64_t n = (int64_t)(halves + (halves < 0 ? -0.5 : 0.5));
    double r = x - (double)n * ln2; /* |r| <= 0.35 */
    double sum = 1.0 / 362880;
    static const double factor[] = {1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24,
                                    1.0 / 6,     1.0 / 2,    1,         1};
    for (size_t k = 0; k < sizeof factor / sizeof factor[0]; k++)
        sum = factor[k] + r * sum;
    return sum * power_of_two(n);
}
