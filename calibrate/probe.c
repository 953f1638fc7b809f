/* Measuring messages (probe.h). */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "probe.h"

#include "robust.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum command_kind {
    COMMAND_ECHO, /* send back what the partner sends */
    COMMAND_TAKE, /* expect messages of the partner, tell the lead when ready and when done */
    COMMAND_SEND, /* tell the lead when ready, wait for its go, send to the partner */
    COMMAND_END
};

struct command {
    int32_t kind, partner, count, bytes;
};

enum { TAG_COMMAND, TAG_READY, TAG_GO, TAG_DONE, TAG_DATA };

#define ROUND_TRIPS    10 /* of a sample */
#define WARM_UP        2  /* samples that are not counted */
#define LEAST_SAMPLES  3
#define PAIR_SAMPLES   50
#define SPIN_S         300e-6
#define FIRST_SLEEP_NS 50000
#define LAST_SLEEP_NS  2000000

int cpl_probe_open(struct cpl_probe *probe)
{
    MPI_Comm_dup(MPI_COMM_WORLD, &probe->comm);
    MPI_Comm_rank(probe->comm, &probe->rank);
    MPI_Comm_size(probe->comm, &probe->n_ranks);
    probe->buffer = calloc(CPL_PROBE_WINDOW, CPL_PROBE_BYTES);
    int mine = probe->buffer != NULL, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, probe->comm);
    if (!all)
        cpl_probe_close(probe);
    return all ? 0 : -1;
}

void cpl_probe_close(struct cpl_probe *probe)
{
    free(probe->buffer);
    MPI_Comm_free(&probe->comm);
}

/* Waits for a request: spins for a moment, yielding the processor, then sleeps for growing
 * times. */
static void wait_patiently(MPI_Request *request)
{
    double start = MPI_Wtime();
    long sleep_ns = FIRST_SLEEP_NS;
    int done = 0;
    for (MPI_Test(request, &done, MPI_STATUS_IGNORE); !done;
         MPI_Test(request, &done, MPI_STATUS_IGNORE)) {
        if (MPI_Wtime() - start < SPIN_S) {
            sched_yield();
            continue;
        }
        nanosleep(&(struct timespec){.tv_nsec = sleep_ns}, NULL);
        sleep_ns = 2 * sleep_ns < LAST_SLEEP_NS ? 2 * sleep_ns : LAST_SLEEP_NS;
    }
}

void cpl_probe_barrier(const struct cpl_probe *probe)
{
    MPI_Request request;
    MPI_Ibarrier(probe->comm, &request);
    wait_patiently(&request);
}

static void say(const struct cpl_probe *probe, int to, int tag)
{
    MPI_Send(NULL, 0, MPI_BYTE, to, tag, probe->comm);
}

static void hear(const struct cpl_probe *probe, int from, int tag)
{
    MPI_Recv(NULL, 0, MPI_BYTE, from, tag, probe->comm, MPI_STATUS_IGNORE);
}

static void give_command(const struct cpl_probe *probe, int to, struct command command)
{
    MPI_Send(&command, sizeof command, MPI_BYTE, to, TAG_COMMAND, probe->comm);
}

/* Where message k of a burst or flow lies. */
static void *slot(const struct cpl_probe *probe, int k)
{
    return probe->buffer + (size_t)(k % CPL_PROBE_WINDOW) * CPL_PROBE_BYTES +
           (size_t)(k / CPL_PROBE_WINDOW) * CPL_PROBE_MESSAGE;
}

static void send_all(const struct cpl_probe *probe, const struct command *command)
{
    MPI_Request requests[CPL_PROBE_BURST];
    for (int k = 0; k < command->count; k++)
        MPI_Isend(slot(probe, k), command->bytes, MPI_BYTE, command->partner, TAG_DATA, probe->comm,
                  &requests[k]);
    MPI_Waitall(command->count, requests, MPI_STATUSES_IGNORE);
}

static void take_all(const struct cpl_probe *probe, const struct command *command, int lead)
{
    MPI_Request requests[CPL_PROBE_BURST];
    for (int k = 0; k < command->count; k++)
        MPI_Irecv(slot(probe, k), command->bytes, MPI_BYTE, command->partner, TAG_DATA, probe->comm,
                  &requests[k]);
    say(probe, lead, TAG_READY);
    MPI_Waitall(command->count, requests, MPI_STATUSES_IGNORE);
    say(probe, lead, TAG_DONE);
}

static void echo_all(const struct cpl_probe *probe, const struct command *command)
{
    for (int k = 0; k < command->count; k++) {
        MPI_Recv(probe->buffer, command->bytes, MPI_BYTE, command->partner, TAG_DATA, probe->comm,
                 MPI_STATUS_IGNORE);
        MPI_Send(probe->buffer, command->bytes, MPI_BYTE, command->partner, TAG_DATA, probe->comm);
    }
}

void cpl_probe_serve(const struct cpl_probe *probe, int lead)
{
    for (;;) {
        struct command command;
        MPI_Request request;
        MPI_Irecv(&command, sizeof command, MPI_BYTE, lead, TAG_COMMAND, probe->comm, &request);
        wait_patiently(&request);
        switch ((enum command_kind)command.kind) {
        case COMMAND_ECHO:
            echo_all(probe, &command);
            break;
        case COMMAND_TAKE:
            take_all(probe, &command, lead);
            break;
        case COMMAND_SEND:
            say(probe, lead, TAG_READY);
            hear(probe, lead, TAG_GO);
            send_all(probe, &command);
            break;
        case COMMAND_END:
            return;
        }
    }
}

void cpl_probe_release(const struct cpl_probe *probe)
{
    for (int i = 0; i < probe->n_ranks; i++)
        if (i != probe->rank)
            give_command(probe, i, (struct command){.kind = COMMAND_END});
}

/* The samples of a measurement. If time is over before warming up is, the last warm-up sample
 * counts. */
struct samples {
    double start, slice_s;
    int n; /* negative: warming up */
    int most;
    double value[CPL_PROBE_SAMPLES];
};

static void start_samples(double slice_s, int most, struct samples *samples)
{
    samples->start = MPI_Wtime();
    samples->slice_s = slice_s;
    samples->most = most;
    samples->n = -WARM_UP;
}

static bool wants_more(const struct samples *samples)
{
    double slices = (MPI_Wtime() - samples->start) / samples->slice_s;
    return samples->n == -WARM_UP || (samples->n < LEAST_SAMPLES && slices < 2) ||
           (samples->n < samples->most && slices < 1);
}

static void add_sample(struct samples *samples, double value)
{
    samples->value[samples->n > 0 ? samples->n : 0] = value;
    samples->n++;
}

/* Sorts the values. */
static double median_of(struct samples *samples)
{
    if (samples->n < 1)
        samples->n = 1;
    return cpl_robust_median(samples->value, samples->n);
}

static void ping(const struct cpl_probe *probe, int peer)
{
    MPI_Send(probe->buffer, CPL_PROBE_MESSAGE, MPI_BYTE, peer, TAG_DATA, probe->comm);
    MPI_Recv(probe->buffer, CPL_PROBE_MESSAGE, MPI_BYTE, peer, TAG_DATA, probe->comm,
             MPI_STATUS_IGNORE);
}

static double processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double cpl_probe_half_trip(const struct cpl_probe *probe, int peer, double *disturbance)
{
    struct samples samples;
    double processor_start = processor_s();
    for (start_samples(probe->slice_s, CPL_PROBE_SAMPLES, &samples); wants_more(&samples);) {
        give_command(
            probe, peer,
            (struct command){COMMAND_ECHO, probe->rank, 1 + ROUND_TRIPS, CPL_PROBE_MESSAGE});
        ping(probe, peer); /* the peer is there */
        double start = MPI_Wtime();
        for (int k = 0; k < ROUND_TRIPS; k++)
            ping(probe, peer);
        add_sample(&samples, (MPI_Wtime() - start) * 1e6 / (2 * ROUND_TRIPS));
    }
    double median = median_of(&samples);
    double scarcity = (MPI_Wtime() - samples.start) / (processor_s() - processor_start);
    *disturbance = median / samples.value[0];
    if (*disturbance < scarcity)
        *disturbance = scarcity;
    return median;
}

/* Tells the peers their parts of a burst. Returns the messages of each. */
static int command_burst(const struct cpl_probe *probe, enum command_kind kind, const int *peers,
                         int n_peers)
{
    int count = CPL_PROBE_BURST / n_peers;
    for (int k = 0; k < n_peers; k++)
        give_command(probe, peers[k],
                     (struct command){(int32_t)kind, probe->rank, count, CPL_PROBE_MESSAGE});
    for (int k = 0; k < n_peers; k++)
        hear(probe, peers[k], TAG_READY);
    return count;
}

double cpl_probe_send_us(const struct cpl_probe *probe, const int *peers, int n_peers)
{
    struct samples samples;
    MPI_Request requests[CPL_PROBE_BURST];
    for (start_samples(probe->slice_s, CPL_PROBE_SAMPLES, &samples); wants_more(&samples);) {
        int n = command_burst(probe, COMMAND_TAKE, peers, n_peers) * n_peers;
        double start = MPI_Wtime();
        for (int k = 0; k < n; k++)
            MPI_Isend(slot(probe, k), CPL_PROBE_MESSAGE, MPI_BYTE, peers[k % n_peers], TAG_DATA,
                      probe->comm, &requests[k]);
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        add_sample(&samples, (MPI_Wtime() - start) * 1e6 / n);
        for (int k = 0; k < n_peers; k++)
            hear(probe, peers[k], TAG_DONE);
    }
    return median_of(&samples);
}

/* Lets time pass without calling MPI, which would receive messages. */
static void stay_away(double us)
{
    double end = MPI_Wtime() + us * 1e-6;
    while (MPI_Wtime() < end)
        sched_yield();
}

double cpl_probe_recv_us(const struct cpl_probe *probe, const int *peers, int n_peers,
                         double half_us)
{
    struct samples samples;
    MPI_Request requests[CPL_PROBE_BURST];
    for (start_samples(probe->slice_s, CPL_PROBE_SAMPLES, &samples); wants_more(&samples);) {
        int n = command_burst(probe, COMMAND_SEND, peers, n_peers) * n_peers;
        double start = MPI_Wtime();
        for (int k = 0; k < n; k++)
            MPI_Irecv(slot(probe, k), CPL_PROBE_MESSAGE, MPI_BYTE, peers[k % n_peers], TAG_DATA,
                      probe->comm, &requests[k]);
        double posted = MPI_Wtime();
        for (int k = 0; k < n_peers; k++)
            say(probe, peers[k], TAG_GO);
        stay_away(20 + (6 + n) * half_us); /* the last one has left and arrived */
        double arrived = MPI_Wtime();
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        add_sample(&samples, (MPI_Wtime() - arrived + posted - start) * 1e6 / n);
    }
    return median_of(&samples);
}

/* The time of all flows, a window of messages each, in nanoseconds. */
static double time_flows(const struct cpl_probe *probe, const struct cpl_flow *flows, int n_flows,
                         int32_t bytes)
{
    for (int k = 0; k < n_flows; k++) {
        give_command(probe, flows[k].to,
                     (struct command){COMMAND_TAKE, flows[k].from, CPL_PROBE_WINDOW, bytes});
        if (k > 0)
            give_command(probe, flows[k].from,
                         (struct command){COMMAND_SEND, flows[k].to, CPL_PROBE_WINDOW, bytes});
    }
    for (int k = 0; k < n_flows; k++) {
        hear(probe, flows[k].to, TAG_READY);
        if (k > 0)
            hear(probe, flows[k].from, TAG_READY);
    }
    double start = MPI_Wtime();
    for (int k = 1; k < n_flows; k++)
        say(probe, flows[k].from, TAG_GO);
    send_all(probe, &(struct command){COMMAND_SEND, flows[0].to, CPL_PROBE_WINDOW, bytes});
    for (int k = 0; k < n_flows; k++)
        hear(probe, flows[k].to, TAG_DONE);
    return (MPI_Wtime() - start) * 1e9;
}

double cpl_probe_ns_per_byte(const struct cpl_probe *probe, const struct cpl_flow *flows,
                             int n_flows)
{
    struct samples samples[CPL_PROBE_LENGTHS];
    double bytes[CPL_PROBE_LENGTHS], ns[CPL_PROBE_LENGTHS];
    for (int l = 0; l < CPL_PROBE_LENGTHS; l++)
        start_samples(probe->slice_s, CPL_PROBE_SAMPLES, &samples[l]);
    /* Lengths take turns, so that all see the same times. */
    while (wants_more(&samples[0]))
        for (int l = 0; l < CPL_PROBE_LENGTHS; l++) {
            int32_t length = CPL_PROBE_BYTES >> 2 * (CPL_PROBE_LENGTHS - 1 - l);
            add_sample(&samples[l], time_flows(probe, flows, n_flows, length));
            bytes[l] = (double)length * CPL_PROBE_WINDOW * n_flows;
        }
    for (int l = 0; l < CPL_PROBE_LENGTHS; l++)
        ns[l] = median_of(&samples[l]);
    return cpl_robust_slope(bytes, ns, CPL_PROBE_LENGTHS);
}

/* What the message that goes to and fro begins with: the lower rank of the pair says when it has
 * enough samples, and then the result. */
struct pair_word {
    int64_t goes_on;
    double us;
};

_Static_assert(sizeof(struct pair_word) == CPL_PROBE_PAIR, "the shortest message is the word");

static struct pair_word hear_word(const struct cpl_probe *probe, int peer, int bytes)
{
    struct pair_word word;
    MPI_Recv(probe->buffer, bytes, MPI_BYTE, peer, TAG_DATA, probe->comm, MPI_STATUS_IGNORE);
    memcpy(&word, probe->buffer, sizeof word);
    return word;
}

static void say_word(const struct cpl_probe *probe, int peer, int bytes, struct pair_word word)
{
    memcpy(probe->buffer, &word, sizeof word);
    MPI_Send(probe->buffer, bytes, MPI_BYTE, peer, TAG_DATA, probe->comm);
}

static double pair_lead(const struct cpl_probe *probe, int peer, int bytes, double seconds)
{
    struct samples samples;
    say_word(probe, peer, bytes, (struct pair_word){.goes_on = 1});
    hear_word(probe, peer, bytes); /* the peer is there: it may have slept */
    for (start_samples(seconds, PAIR_SAMPLES, &samples); wants_more(&samples);) {
        double start = MPI_Wtime();
        say_word(probe, peer, bytes, (struct pair_word){.goes_on = 1});
        hear_word(probe, peer, bytes);
        add_sample(&samples, (MPI_Wtime() - start) * 1e6 / 2);
    }
    double us = median_of(&samples);
    say_word(probe, peer, bytes, (struct pair_word){0, us});
    return us;
}

double cpl_probe_pair_us(const struct cpl_probe *probe, int peer, int bytes, double seconds)
{
    if (probe->rank < peer)
        return pair_lead(probe, peer, bytes, seconds);
    for (;;) {
        struct pair_word word = hear_word(probe, peer, bytes);
        if (!word.goes_on)
            return word.us;
        say_word(probe, peer, bytes, word);
    }
}
