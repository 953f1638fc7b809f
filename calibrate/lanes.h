/* Measuring lanes: what it takes to hand over a message in memory that two ranks share, as plans do
 * inside a node. A slot has one writer and one reader, a flag that says whether it is full, and
 * bytes beside the flag.
 *
 * One rank leads, its peers follow, and nobody sends MPI messages meanwhile: they say in slots what
 * comes next. Who waits gives the processor away after a moment, for ranks that share one. */
#ifndef CARPOOL_CALIBRATE_LANES_H
#define CARPOOL_CALIBRATE_LANES_H

#include "probe.h"

#include <mpi.h>

struct cpl_lanes {
    MPI_Comm comm; /* of the ranks that share memory with this one */
    unsigned char *memory;
    int64_t bytes;
    int *group; /* of each rank of MPI_COMM_WORLD: equal for ranks that share memory */
};

/* A number that ranks of the same node share, as the preloaded library finds nodes. Collective over
 * MPI_COMM_WORLD. */
int64_t cpl_lanes_node(void);

/* Makes the memory. Collective over MPI_COMM_WORLD. Returns 0, or -1 on all ranks when one has
 * none. */
int cpl_lanes_open(const struct cpl_probe *probe, struct cpl_lanes *lanes);
void cpl_lanes_close(struct cpl_lanes *lanes);

/* The most peers of a lead. */
#define CPL_LANES_PEERS CPL_PROBE_BURST

/* What a lead measures: medians. */
struct cpl_lane_figures {
    double half_us;          /* half a round trip of a short message */
    double send_us, recv_us; /* processor time per short message of a burst */
    double ns_per_byte;      /* at each end */
};

/* On the lead: measures with its peers (1 .. CPL_LANES_PEERS of its group) for about so many
 * seconds. */
struct cpl_lane_figures cpl_lanes_lead(const struct cpl_lanes *lanes, int n_peers, double seconds);

/* On the lead's peer number k of n: does what the lead needs. lead: its rank in MPI_COMM_WORLD. */
void cpl_lanes_follow(const struct cpl_lanes *lanes, int lead, int k, int n_peers);

#endif
