/* Distances of all pairs of ranks (distances.h). */
#include "distances.h"

#include "robust.h"

#define MOST_PAIR_S 0.02

/* What the pairs of a round measure, one after the other: a figure of all pairs is measured before
 * the next one begins, so that long messages do not disturb short ones. */
enum { FIGURE_SHORT, FIGURE_LONG, N_FIGURES };

static const int bytes_of[N_FIGURES] = {CPL_PROBE_PAIR, CPL_PROBE_BYTES};

/* All pairs of a round, n_turns of them at a time. Collective; returns this rank's figure. */
static double measure_round(const struct cpl_probe *probe, int partner, int bytes, int n_turns,
                            double seconds)
{
    int lower = partner < probe->rank ? partner : probe->rank;
    double us = 0;
    for (int turn = 0; turn < n_turns; turn++) {
        cpl_probe_barrier(probe);
        if (partner >= 0 && lower % n_turns == turn)
            us = cpl_probe_pair_us(probe, partner, bytes, seconds);
    }
    return us;
}

void cpl_distances_measure(const struct cpl_probe *probe, double seconds, int n_turns,
                           struct cpl_distance *row, struct cpl_distance *all)
{
    int n_rounds = cpl_rounds(probe->n_ranks);
    double slice_s = seconds / (N_FIGURES * n_rounds * n_turns + 1);
    if (slice_s > MOST_PAIR_S)
        slice_s = MOST_PAIR_S;
    row[probe->rank] = (struct cpl_distance){0, 0};
    for (int round = 0; round < n_rounds; round++) {
        int partner = cpl_round_partner(probe->n_ranks, round, probe->rank);
        double us[N_FIGURES];
        for (int figure = 0; figure < N_FIGURES; figure++)
            us[figure] = measure_round(probe, partner, bytes_of[figure], n_turns, slice_s);
        double more_us = us[FIGURE_LONG] - us[FIGURE_SHORT];
        double ns = more_us > 0 ? more_us * 1e3 / (CPL_PROBE_BYTES - CPL_PROBE_PAIR) : 0;
        if (partner >= 0)
            row[partner] = (struct cpl_distance){(float)us[FIGURE_SHORT], (float)ns};
    }
    cpl_probe_barrier(probe);
    MPI_Gather(row, 2 * probe->n_ranks, MPI_FLOAT, all, 2 * probe->n_ranks, MPI_FLOAT, 0,
               probe->comm);
}
