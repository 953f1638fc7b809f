/* Distances of all pairs of ranks, in rounds of pairs that have no rank in common. */
#ifndef CARPOOL_CALIBRATE_DISTANCES_H
#define CARPOOL_CALIBRATE_DISTANCES_H

#include "probe.h"

/* Measures half a round trip for each pair in about `seconds` seconds, in P-1 rounds for P ranks (P
 * rounds when P is odd). The pairs of a round are spread over n_turns turns, so that no more ranks
 * measure at a time than there are processors. Collective. us: n_ranks x n_ranks entries on rank 0,
 * symmetric, 0 on the diagonal; row: n_ranks entries of scratch on every rank. */
void cpl_distances_measure(const struct cpl_probe *probe, double seconds, int n_turns, float *row,
                           float *us);

#endif
