/* Measuring messages. One rank leads, all others serve it: they wait for its orders, sparing the
 * processor while there are none, so that a measurement between two ranks is not disturbed by the
 * rest. Who leads is known to all ranks.
 *
 * A measurement is repeated until its slice of time is over (twice that, for the first few samples)
 * or it has CPL_PROBE_SAMPLES samples; its result is the median. */
#ifndef CARPOOL_CALIBRATE_PROBE_H
#define CARPOOL_CALIBRATE_PROBE_H

#include <mpi.h>

#define CPL_PROBE_SAMPLES 400
#define CPL_PROBE_BURST   32         /* messages of a burst */
#define CPL_PROBE_WINDOW  8          /* messages of a flow that are on their way together */
#define CPL_PROBE_BYTES   (64 << 10) /* of the longest message of a flow */
#define CPL_PROBE_LENGTHS 5          /* of messages of a flow */
#define CPL_PROBE_MESSAGE 8          /* bytes of all other messages */

struct cpl_probe {
    MPI_Comm comm; /* of our own */
    int rank, n_ranks;
    double slice_s; /* for a measurement */
    char *buffer;   /* CPL_PROBE_WINDOW x CPL_PROBE_BYTES */
};

/* Messages in one direction. */
struct cpl_flow {
    int from, to;
};

/* Makes the private communicator and the buffer. Collective over MPI_COMM_WORLD. Returns 0, or -1
 * on all ranks when there is no memory on one. */
int cpl_probe_open(struct cpl_probe *probe);
void cpl_probe_close(struct cpl_probe *probe);

/* On all ranks but the lead: carries out its orders until it releases them. */
void cpl_probe_serve(const struct cpl_probe *probe, int lead);

/* On the lead: ends a turn. */
void cpl_probe_release(const struct cpl_probe *probe);

/* On the lead: half the time of a round trip to a peer, in microseconds. *disturbance is the larger
 * of two ratios, near 1 on an idle machine, high where others use the processors: of the time that
 * half of the round trips took to that of the fastest, and of the time that passed to the processor
 * time that the lead, which always works or spins, was given. */
double cpl_probe_half_trip(const struct cpl_probe *probe, int peer, double *disturbance);

/* On the lead: processor time per message of a burst to the peers, which expect it. */
double cpl_probe_send_us(const struct cpl_probe *probe, const int *peers, int n_peers);

/* On the lead: processor time per message of a burst from the peers that has arrived already: to
 * post the receive and to take the message. half_us is the half trip. */
double cpl_probe_recv_us(const struct cpl_probe *probe, const int *peers, int n_peers,
                         double half_us);

/* On the lead, which is the sender of the first flow: nanoseconds per byte of all flows together,
 * from messages of several lengths. Senders differ, receivers may not: as long as each rank has one
 * role and a receiver one sender. */
double cpl_probe_ns_per_byte(const struct cpl_probe *probe, const struct cpl_flow *flows,
                             int n_flows);

/* Between the two ranks of a pair, at the same time as others: half a round trip in microseconds,
 * alike on both. Takes about seconds. */
double cpl_probe_pair_us(const struct cpl_probe *probe, int peer, double seconds);

/* A barrier that spares the processor. */
void cpl_probe_barrier(const struct cpl_probe *probe);

#endif
