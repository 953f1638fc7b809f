/* Distances of all pairs of ranks (distances.h). */
#include "distances.h"

#include "robust.h"

#define MOST_PAIR_S 0.02

/* Both figures of a pair, of which other pairs measure theirs at the same time. */
static void measure_pair(const struct cpl_probe *probe, int partner, double seconds,
                         struct cpl_distance *distance)
{
    double short_us = cpl_probe_pair_us(probe, partner, CPL_PROBE_PAIR, seconds / 2);
    double long_us = cpl_probe_pair_us(probe, partner, CPL_PROBE_BYTES, seconds / 2);
    double more_us = long_us > short_us ? long_us - short_us : 0;
    distance->us = (float)short_us;
    distance->ns_per_byte = (float)(more_us * 1e3 / (CPL_PROBE_BYTES - CPL_PROBE_PAIR));
}

void cpl_distances_measure(const struct cpl_probe *probe, double seconds, int n_turns,
                           struct cpl_distance *row, struct cpl_distance *all)
{
    int n_rounds = cpl_rounds(probe->n_ranks);
    double slice_s = seconds / (n_rounds * n_turns + 1);
    row[probe->rank] = (struct cpl_distance){0, 0};
    for (int round = 0; round < n_rounds; round++) {
        int partner = cpl_round_partner(probe->n_ranks, round, probe->rank);
        int lower = partner < probe->rank ? partner : probe->rank;
        for (int turn = 0; turn < n_turns; turn++) {
            cpl_probe_barrier(probe);
            if (partner >= 0 && lower % n_turns == turn)
                measure_pair(probe, partner, slice_s < MOST_PAIR_S ? slice_s : MOST_PAIR_S,
                             &row[partner]);
        }
    }
    cpl_probe_barrier(probe);
    MPI_Gather(row, 2 * probe->n_ranks, MPI_FLOAT, all, 2 * probe->n_ranks, MPI_FLOAT, 0,
               probe->comm);
}
