/* Medians, slopes, rounds (robust.h). */
#include "robust.h"

#include <stdint.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double cpl_robust_median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare_doubles);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

struct pair_slope {
    double slope; /* first: sorted by compare_doubles */
    double weight;
};

double cpl_robust_slope(const double *x, const double *y, int n)
{
    struct pair_slope slopes[CPL_ROBUST_POINTS * (CPL_ROBUST_POINTS - 1) / 2];
    int n_slopes = 0;
    double total = 0, sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            double apart = x[j] - x[i];
            slopes[n_slopes++] = (struct pair_slope){(y[j] - y[i]) / apart, apart};
            total += apart;
        }
    qsort(slopes, (size_t)n_slopes, sizeof *slopes, compare_doubles);
    int k = 0;
    for (sum = slopes[0].weight; 2 * sum < total; sum += slopes[k].weight)
        k++;
    return slopes[k].slope > 0 ? slopes[k].slope : 0;
}

/* An odd number of players is made even by one whom nobody meets. */
static int make_even(int n_players)
{
    return n_players + n_players % 2;
}

int cpl_rounds(int n_players)
{
    return n_players < 2 ? 0 : make_even(n_players) - 1;
}

/* The circle method: all but the last player stand in a circle; in round r those meet whose numbers
 * add up to 2 r around it, and the one who would meet himself meets the last. */
int cpl_round_partner(int n_players, int round, int player)
{
    int last = make_even(n_players) - 1;
    int partner = (int)((2 * (int64_t)round + last - player) % last);
    if (player == last)
        partner = round;
    else if (partner == player)
        partner = last;
    return partner < n_players ? partner : -1;
}
