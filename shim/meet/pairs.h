/* Which of two ways takes less time, by times that were taken in turns: of each pair of
 * neighbouring times the relative difference counts, and a paired t test says whether there is one.
 * Leaf module.
 */
#ifndef CARPOOL_PAIRS_H
#define CARPOOL_PAIRS_H

#define CPL_MOST_PAIRS 8

enum cpl_verdict { CPL_UNDECIDED, CPL_FASTER, CPL_NOT_FASTER };

struct cpl_pairs {
    int n;
    double sum, squares; /* of (usual - other) / usual */
    double usual, other; /* sums */
};

void cpl_pairs_add(struct cpl_pairs *pairs, double usual, double other);

/* Whether the other way is faster than the usual one, by two hundredths at least. After
 * CPL_MOST_PAIRS it is decided: what cannot be told apart is not faster. */
enum cpl_verdict cpl_pairs_judge(const struct cpl_pairs *pairs);

#endif
