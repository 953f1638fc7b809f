/* Which of two ways takes less time, by times that were taken in turns: of each pair of
 * neighbouring times the relative difference counts, and a paired t test says whether there is one.
 * Leaf module.
 */
#ifndef CARPOOL_PAIRS_H
#define CARPOOL_PAIRS_H

#define CPL_MOST_PAIRS  8
#define CPL_LEAST_GAIN  0.02
#define CPL_LEAST_PAIRS 3
#define CPL_MUCH_SLOWER -0.5 /* for one pair to tell */

enum cpl_verdict { CPL_UNDECIDED, CPL_FASTER, CPL_NOT_FASTER };

struct cpl_pairs {
    int n;
    double sum, squares; /* of (usual - other) / usual */
    double usual, other; /* sums */
};

static inline void cpl_pairs_add(struct cpl_pairs *pairs, double usual, double other)
{
    double d = (usual - other) / usual;
    pairs->n++;
    pairs->sum += d;
    pairs->squares += d * d;
    pairs->usual += usual;
    pairs->other += other;
}

/* Student's t for so many pairs, which is exceeded by chance in one of twenty cases. */
static inline double cpl_pairs_student(int n)
{
    static const double t[CPL_MOST_PAIRS - 1] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36};
    return t[(n > CPL_MOST_PAIRS ? CPL_MOST_PAIRS : n) - 2];
}

/* Whether the other way is faster than the usual one, by two hundredths at least. After
 * CPL_MOST_PAIRS it is decided: what cannot be told apart is not faster. */
static inline enum cpl_verdict cpl_pairs_judge(const struct cpl_pairs *pairs)
{
    const int n = pairs->n;
    const double mean = n > 0 ? pairs->sum / n : 0;
    if (n > 0 && mean < CPL_MUCH_SLOWER)
        return CPL_NOT_FASTER;
    if (n < CPL_LEAST_PAIRS)
        return CPL_UNDECIDED;
    /* comparing squares needs no square root */
    double margin = mean - CPL_LEAST_GAIN;
    double error =
        cpl_pairs_student(n) * cpl_pairs_student(n) * (pairs->squares / n - mean * mean) / (n - 1);
    if (margin * margin <= error && n < CPL_MOST_PAIRS)
        return CPL_UNDECIDED;
    return margin > 0 && margin * margin > error ? CPL_FASTER : CPL_NOT_FASTER;
}

#endif
