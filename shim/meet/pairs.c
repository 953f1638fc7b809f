/* A paired t test (pairs.h). */
#include "shim/meet/pairs.h"

#define LEAST_GAIN  0.02
#define LEAST_PAIRS 3
#define MUCH_SLOWER -0.5 /* for one pair to tell */

void cpl_pairs_add(struct cpl_pairs *pairs, double usual, double other)
{
    double d = (usual - other) / usual;
    pairs->n++;
    pairs->sum += d;
    pairs->squares += d * d;
    pairs->usual += usual;
    pairs->other += other;
}

/* Student's t for so many pairs, which is exceeded by chance in one of twenty cases. */
static double student(int n)
{
    static const double t[CPL_MOST_PAIRS - 1] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36};
    return t[(n > CPL_MOST_PAIRS ? CPL_MOST_PAIRS : n) - 2];
}

enum cpl_verdict cpl_pairs_judge(const struct cpl_pairs *pairs)
{
    const int n = pairs->n;
    const double mean = n > 0 ? pairs->sum / n : 0;
    if (n > 0 && mean < MUCH_SLOWER)
        return CPL_NOT_FASTER;
    if (n < LEAST_PAIRS)
        return CPL_UNDECIDED;
    /* comparing squares needs no square root */
    double margin = mean - LEAST_GAIN;
    double error = student(n) * student(n) * (pairs->squares / n - mean * mean) / (n - 1);
    if (margin * margin <= error && n < CPL_MOST_PAIRS)
        return CPL_UNDECIDED;
    return margin > 0 && margin * margin > error ? CPL_FASTER : CPL_NOT_FASTER;
}
