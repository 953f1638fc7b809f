/* Measuring messages. One rank leads, all others serve it: they wait for its commands without using
 * the processor, so that they do not disturb a measurement between two ranks. All ranks know who
 * leads.
 *
 * A measurement is repeated until its slice of time is over (twice the slice, if it has only a few
 * samples by then) or it has CPL_PROBE_SAMPLES samples; its result is the median. */
#ifndef CARPOOL_CALIBRATE_PROBE_H
#define CARPOOL_CALIBRATE_PROBE_H

#include <mpi.h>

#define CPL_PROBE_SAMPLES 400
#define CPL_PROBE_BURST   32         /* messages of a burst */
#define CPL_PROBE_WINDOW  8          /* messages of a flow that are under way at the same time */
#define CPL_PROBE_BYTES   (64 << 10) /* length of the longest message of a flow */
#define CPL_PROBE_LENGTHS 5          /* number of different message lengths of a flow */
#define CPL_PROBE_PAIR    16         /* length of the shortest message of a pair */
#define CPL_PROBE_MESSAGE 8          /* length of all other messages */

struct cpl_probe {
    MPI_Comm comm; /* private */
    int rank, n_ranks;
    double slice_s; /* seconds for a measurement */
    char *buffer;   /* CPL_PROBE_WINDOW x CPL_PROBE_BYTES */
};

/* Messages in one direction. */
struct cpl_flow {
    int from, to;
};

/* Makes the private communicator and the buffer. Collective over MPI_COMM_WORLD. Returns 0, or -1
 * on all ranks when one has no memory. */
int cpl_probe_open(struct cpl_probe *probe);
void cpl_probe_close(struct cpl_probe *probe);

/* On all ranks but the lead: carries out the lead's commands until it releases them. */
void cpl_probe_serve(const struct cpl_probe *probe, int lead);

/* On the lead: ends a turn. */
void cpl_probe_release(const struct cpl_probe *probe);

/* On the lead: half the time of a round trip to a peer, in microseconds. *disturbance is the larger
 * of two ratios, which are near 1 on an idle machine and high where others use the processors: the
 * median round trip to the fastest one, and the elapsed time to the processor time of the lead,
 * which always works or spins. */
double cpl_probe_half_trip(const struct cpl_probe *probe, int peer, double *disturbance);

/* On the lead: processor time, in microseconds, to send one message of a burst to the peers, which
 * expect it. */
double cpl_probe_send_us(const struct cpl_probe *probe, const int *peers, int n_peers);

/* On the lead: processor time, in microseconds, to post a receive and take a message that has
 * arrived, in a burst from the peers. half_us is half a round trip. */
double cpl_probe_recv_us(const struct cpl_probe *probe, const int *peers, int n_peers,
                         double half_us);

/* On the lead, which is the sender of the first flow: nanoseconds per byte of all flows together,
 * from messages of several lengths. All senders differ; each rank sends or receives, not both, and
 * a receiver has one sender. */
double cpl_probe_ns_per_byte(const struct cpl_probe *probe, const struct cpl_flow *flows,
                             int n_flows);

/* Half a round trip of messages of so many bytes (CPL_PROBE_PAIR to CPL_PROBE_BYTES) between this
 * rank and peer, in microseconds, the same value on both; other pairs may measure at the same time.
 * Takes about `seconds` seconds. */
double cpl_probe_pair_us(const struct cpl_probe *probe, int peer, int bytes, double seconds);

/* A barrier that sleeps while it waits. */
void cpl_probe_barrier(const struct cpl_probe *probe);

#endif
