/* Robust statistics: figures from noisy samples that outliers do not move. No MPI. */
#ifndef CARPOOL_CALIBRATE_ROBUST_H
#define CARPOOL_CALIBRATE_ROBUST_H

/* The median of n >= 1 values, which are sorted. */
double cpl_robust_median(double *values, int n);

#define CPL_ROBUST_POINTS 16

/* The slope of y over x: the median of the slopes of all pairs of points, each weighed by how far
 * its points are apart (Theil and Sen, weighted), not below 0. x is strictly ascending; 2 <= n <=
 * CPL_ROBUST_POINTS. */
double cpl_robust_slope(const double *x, const double *y, int n);

/* The partner of a player in a round of a tournament in which all meet once, or -1: none in this
 * round. There are cpl_rounds(n_players) rounds. */
int cpl_rounds(int n_players);
int cpl_round_partner(int n_players, int round, int player);

#endif
