/*
 * Functions of MPI 4.1 beside messages that are carried. With an MPI that lacks
 * them the program only says so.
 *
 *   newer all | any | some     loops over MPI_Request_get_status_* until an exchange is complete
 *   newer mixed                the same of requests of two communicators, of which one is carried
 *   newer attach [BYTES]       MPI_Bsend with a buffer of the communicator
 *   newer automatic [BYTES]    with MPI_BUFFER_AUTOMATIC
 *   newer flush [BYTES]        MPI_Buffer_flush and MPI_Comm_flush_buffer before the receivers are
 * told newer iflush [BYTES]       MPI_Buffer_iflush, which waits for nobody, then what lets the
 * receivers go on newer agree                MPIX_Comm_agree, which some ranks enter late
 */
#include "promise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 8
#define TAG    6

#if MPI_VERSION * 100 + MPI_SUBVERSION < 401
static void lacks(void)
{
    say("this MPI is of before 4.1\n");
}
#define run_all   lacks
#define run_any   lacks
#define run_some  lacks
#define mixed     lacks
#define to_comm   lacks
#define automatic lacks
#define flush     lacks
#define iflush    lacks
#else
static int is_complete_all(struct batch *b)
{
    int flag;
    MPI_Status statuses[2 * MAX_RANKS];
    MPI_Request_get_status_all(b->n_requests, b->requests, &flag, statuses);
    return flag;
}

/* One after the other is found to be complete, and then waited for. */
static int is_complete_any(struct batch *b)
{
    int flag, index;
    MPI_Status status;
    MPI_Request_get_status_any(b->n_requests, b->requests, &index, &flag, &status);
    if (flag && index != MPI_UNDEFINED)
        MPI_Wait(&b->requests[index], &status);
    return flag && index == MPI_UNDEFINED;
}

static int is_complete_some(struct batch *b)
{
    int n, indices[2 * MAX_RANKS];
    MPI_Status statuses[2 * MAX_RANKS];
    MPI_Request_get_status_some(b->n_requests, b->requests, &n, indices, statuses);
    for (int k = 0; k < n; k++)
        MPI_Wait(&b->requests[indices[k]], MPI_STATUS_IGNORE);
    return n == MPI_UNDEFINED;
}

static void loop(MPI_Comm comm, int (*is_complete)(struct batch *b))
{
    for (int round = 0; round < ROUNDS; round++) {
        struct batch batch;
        batch_begin(&batch, comm, round);
        while (!is_complete(&batch))
            continue;
        batch_end(&batch);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    say("%d rounds\n", ROUNDS);
}

static void run_all(void)
{
    warm_up(MPI_COMM_WORLD);
    loop(MPI_COMM_WORLD, is_complete_all);
}

static void run_any(void)
{
    warm_up(MPI_COMM_WORLD);
    loop(MPI_COMM_WORLD, is_complete_any);
}

static void run_some(void)
{
    warm_up(MPI_COMM_WORLD);
    loop(MPI_COMM_WORLD, is_complete_some);
}

static void mixed(void)
{
    MPI_Comm other;
    warm_up(MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &other);
    for (int round = 0; round < ROUNDS; round++) {
        struct batch a, b;
        MPI_Request both[4 * MAX_RANKS];
        int flag = 0, index;
        MPI_Status status;
        batch_begin(&a, MPI_COMM_WORLD, round);
        batch_begin(&b, other, round + 50);
        int n = a.n_requests + b.n_requests;
        memcpy(both, a.requests, (size_t)a.n_requests * sizeof *both);
        memcpy(both + a.n_requests, b.requests, (size_t)b.n_requests * sizeof *both);
        while (!flag)
            MPI_Request_get_status_all(n, both, &flag, MPI_STATUSES_IGNORE);
        MPI_Request_get_status_any(n, both, &index, &flag, &status);
        if (!flag || index == MPI_UNDEFINED)
            wrong("all are complete, and none is");
        batch_end(&a);
        batch_end(&b);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Comm_free(&other);
    say("%d rounds\n", ROUNDS);
}

static int n;
static unsigned char *out, *in;

static void prepare(void)
{
    n = (int)option(0, 100);
    out = malloc((size_t)n);
    in = malloc((size_t)n);
    warm_up(MPI_COMM_WORLD);
}

static void send_round(int round)
{
    fill(out, (size_t)n, me + round);
    MPI_Bsend(out, n, MPI_BYTE, beside(1), TAG, MPI_COMM_WORLD);
    memset(out, 0, (size_t)n);
}

static void receive_round(int round)
{
    MPI_Recv(in, n, MPI_BYTE, beside(-1), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(in, (size_t)n, beside(-1) + round, "message");
}

static void finish(void)
{
    free(out);
    free(in);
    say("%d bytes\n", n);
}

static void to_comm(void)
{
    prepare();
    int size = n + MPI_BSEND_OVERHEAD, got;
    void *room = malloc((size_t)size), *address;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm_attach_buffer(MPI_COMM_WORLD, room, size);
        send_round(round);
        receive_round(round);
        MPI_Comm_detach_buffer(MPI_COMM_WORLD, &address, &got);
        if (address != room || got != size)
            wrong("another buffer was detached");
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    free(room);
    finish();
}

static void automatic(void)
{
    void *address;
    int size;
    prepare();
    MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
    for (int round = 0; round < ROUNDS; round++) {
        send_round(round);
        send_round(round + 1);
        receive_round(round);
        receive_round(round + 1);
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    MPI_Buffer_detach(&address, &size);
    finish();
}

static void flush(void)
{
    void *address;
    int size;
    prepare();
    MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request posted;
        MPI_Irecv(in, n, MPI_BYTE, beside(-1), TAG, MPI_COMM_WORLD, &posted);
        send_round(round);
        if (round % 2)
            MPI_Buffer_flush();
        else
            MPI_Comm_flush_buffer(MPI_COMM_WORLD);
        MPI_Wait(&posted, MPI_STATUS_IGNORE);
        expect(in, (size_t)n, beside(-1) + round, "message");
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    MPI_Buffer_detach(&address, &size);
    finish();
}

/* The receiver posts its receive when it has heard of what comes after the flush was started. */
static void iflush(void)
{
    void *address;
    int size, go = 1;
    prepare();
    MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request flushed;
        send_round(round);
        MPI_Buffer_iflush(&flushed);
        MPI_Request heard;
        int from = 0;
        MPI_Irecv(&from, 1, MPI_INT, beside(-1), TAG + 1, MPI_COMM_WORLD, &heard);
        MPI_Send(&go, 1, MPI_INT, beside(1), TAG + 1, MPI_COMM_WORLD);
        MPI_Wait(&heard, MPI_STATUS_IGNORE);
        receive_round(round);
        if (round % 2) {
            MPI_Wait(&flushed, MPI_STATUS_IGNORE);
        } else {
            for (int flag = 0; !flag;)
                MPI_Test(&flushed, &flag, MPI_STATUS_IGNORE);
        }
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    MPI_Buffer_detach(&address, &size);
    finish();
}
#endif

static const struct promise_case cases[] = {
    {"all", run_all},    {"any", run_any},         {"some", run_some}, {"mixed", mixed},
    {"attach", to_comm}, {"automatic", automatic}, {"flush", flush},   {"iflush", iflush},
};

int main(int argc, char **argv)
{
    return promise_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
