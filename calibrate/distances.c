/* Distances of all pairs of ranks (distances.h). */
#include "distances.h"

#include "robust.h"

#define MOST_PAIR_S 0.02

void cpl_distances_measure(const struct cpl_probe *probe, double seconds, int n_turns, float *row,
                           float *us)
{
    int n_rounds = cpl_rounds(probe->n_ranks);
    double slice_s = seconds / (n_rounds * n_turns + 1);
    row[probe->rank] = 0;
    for (int round = 0; round < n_rounds; round++) {
        int partner = cpl_round_partner(probe->n_ranks, round, probe->rank);
        int lower = partner < probe->rank ? partner : probe->rank;
        for (int turn = 0; turn < n_turns; turn++) {
            cpl_probe_barrier(probe);
            if (partner >= 0 && lower % n_turns == turn)
                row[partner] = (float)cpl_probe_pair_us(
                    probe, partner, slice_s < MOST_PAIR_S ? slice_s : MOST_PAIR_S);
        }
    }
    cpl_probe_barrier(probe);
    MPI_Gather(row, probe->n_ranks, MPI_FLOAT, us, probe->n_ranks, MPI_FLOAT, 0, probe->comm);
}
