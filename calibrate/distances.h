/* Distances of all pairs of ranks, in rounds of pairs that have no rank in common. */
#ifndef CARPOOL_CALIBRATE_DISTANCES_H
#define CARPOOL_CALIBRATE_DISTANCES_H

#include "probe.h"

/* What a message between two ranks takes. Two floats, which travel as such. */
struct cpl_distance {
    float us;          /* half a round trip of CPL_PROBE_PAIR bytes */
    float ns_per_byte; /* what each byte adds, up to CPL_PROBE_BYTES of them, while all other pairs
                          of the round send, too: so links that pairs share show */
};

/* Measures each pair in about `seconds` seconds in all, in P-1 rounds for P ranks (P rounds when P
 * is odd). The pairs of a round are spread over n_turns turns, so that no more ranks measure at a
 * time than there are processors. Collective. all: n_ranks x n_ranks entries on rank 0, symmetric,
 * 0 on the diagonal; row: n_ranks entries of scratch on every rank. */
void cpl_distances_measure(const struct cpl_probe *probe, double seconds, int n_turns,
                           struct cpl_distance *row, struct cpl_distance *all);

#endif
