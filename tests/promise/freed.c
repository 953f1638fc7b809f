/*
 * MPI_Request_free of active requests and MPI_Cancel. Freeing marks a request for deallocation and
 * does not wait; what it stands for completes all the same (MPI 4.0, 3.7.3 and 3.9). Cancelling is
 * local, and the request must be completed or freed then (3.8.4).
 *
 *   freed recv | ssend | send | bsend        active persistent requests, of a kind
 *   freed both                               a freed Ssend_init to a rank that waits at a barrier
 *   freed issend | isend | irecv | large     nonblocking ones; large: 20,000 bytes
 *   freed cancel                             cancelled receives: waited for, freed, persistent ones
 *   freed recancel                           the same among receives that match later
 *
 * The receiver's memory of a freed receive is looked at after a later message of the same sender
 * and tag was received: that one cannot have passed it.
 */
#include "promise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 12
#define TAG    6
#define TOKEN  8
#define LARGE  20000

static unsigned char out[LARGE], in[LARGE];

static void token_to(int to)
{
    int token = 7;
    MPI_Send(&token, 1, MPI_INT, to, TOKEN, MPI_COMM_WORLD);
}

static void token_from(int from)
{
    int token = 0;
    MPI_Recv(&token, 1, MPI_INT, from, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect_int(token, 7, "token");
}

/* Starts a send of n bytes of `out` by `kind`, and frees it. */
static void send_and_free(const char *kind, int n, int to)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request request;
    bool start = true;
    if (strcmp(kind, "ssend") == 0)
        MPI_Ssend_init(out, n, MPI_BYTE, to, TAG, comm, &request);
    else if (strcmp(kind, "send") == 0)
        MPI_Send_init(out, n, MPI_BYTE, to, TAG, comm, &request);
    else if (strcmp(kind, "bsend") == 0)
        MPI_Bsend_init(out, n, MPI_BYTE, to, TAG, comm, &request);
    else
        start = false;
    if (start)
        MPI_Start(&request);
    else if (strcmp(kind, "issend") == 0)
        MPI_Issend(out, n, MPI_BYTE, to, TAG, comm, &request);
    else
        MPI_Isend(out, n, MPI_BYTE, to, TAG, comm, &request);
    MPI_Request_free(&request);
    if (request != MPI_REQUEST_NULL)
        wrong("the request is not null");
}

static void freed_send(const char *kind, int n)
{
    static char room[ROUNDS * (100 + MPI_BSEND_OVERHEAD)];
    int partner = partner_of_me(), size;
    void *address;
    warm_up(MPI_COMM_WORLD);
    MPI_Buffer_attach(room, sizeof room);
    for (int round = 0; round < ROUNDS; round++) {
        if (partner >= 0 && me % 2 == 0) {
            fill(out, (size_t)n, me + round);
            send_and_free(kind, n, partner);
            token_to(partner);
            token_from(partner); /* it has the message: `out` may be filled again */
        } else if (partner >= 0) {
            token_from(partner); /* before the message */
            memset(in, 0, (size_t)n);
            MPI_Recv(in, n, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            expect(in, (size_t)n, partner + round, "of a freed send");
            token_to(partner);
        }
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    MPI_Buffer_detach(&address, &size);
    say("freed: %s\n", kind);
}

static void freed_ssend(void)
{
    freed_send("ssend", 40);
}

static void freed_standard(void)
{
    freed_send("send", 40);
}

static void freed_bsend(void)
{
    freed_send("bsend", 40);
}

static void freed_issend(void)
{
    freed_send("issend", 40);
}

static void freed_isend(void)
{
    freed_send("isend", 40);
}

static void freed_large(void)
{
    freed_send("isend", LARGE);
}

static void freed_receive(bool persistent)
{
    int partner = partner_of_me();
    warm_up(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        int last = -1;
        if (partner >= 0 && me % 2 == 0) {
            memset(in, 0, 40);
            if (persistent) {
                MPI_Recv_init(in, 40, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &request);
                MPI_Start(&request);
            } else {
                MPI_Irecv(in, 40, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &request);
            }
            MPI_Request_free(&request);
            token_to(partner);
            MPI_Recv(&last, 1, MPI_INT, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            expect_int(last, round, "the message behind");
            expect(in, 40, partner + round, "of a freed receive");
        } else if (partner >= 0) {
            token_from(partner);
            fill(out, 40, me + round);
            MPI_Send(out, 40, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
            MPI_Ssend(&round, 1, MPI_INT, partner, TAG, MPI_COMM_WORLD);
        }
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    say("freed: receive\n");
}

static void freed_recv_init(void)
{
    freed_receive(true);
}

static void freed_irecv(void)
{
    freed_receive(false);
}

static void freed_both(void)
{
    int partner = partner_of_me();
    warm_up(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request receive = MPI_REQUEST_NULL;
        if (partner >= 0)
            MPI_Irecv(in, 40, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &receive);
        MPI_Barrier(MPI_COMM_WORLD);
        if (partner >= 0) {
            fill(out, 40, me + round);
            send_and_free("ssend", 40, partner);
        }
        MPI_Wait(&receive, MPI_STATUS_IGNORE);
        if (partner >= 0)
            expect(in, 40, partner + round, "of a freed Ssend_init");
        MPI_Barrier(MPI_COMM_WORLD); /* all is received: `out` may be filled again */
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    say("freed: both\n");
}

static int cancel_one(int *buffer, int from, int tag, bool persistent)
{
    MPI_Request request;
    MPI_Status status;
    int cancelled = -1;
    if (persistent) {
        MPI_Recv_init(buffer, 1, MPI_INT, from, tag, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
    } else {
        MPI_Irecv(buffer, 1, MPI_INT, from, tag, MPI_COMM_WORLD, &request);
    }
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    if (persistent)
        MPI_Request_free(&request);
    return cancelled;
}

static void cancel(void)
{
    int x = -1, n_cancelled = 0;
    warm_up(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        int from = round % 2 ? beside(1) : MPI_ANY_SOURCE;
        n_cancelled += cancel_one(&x, from, 55, false);
        n_cancelled += cancel_one(&x, from, round % 3 ? 55 : MPI_ANY_TAG, true);
        MPI_Irecv(&x, 1, MPI_INT, from, 55, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Request_free(&request);
        MPI_Barrier(MPI_COMM_WORLD);
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    say_all("cancelled %d of %d", n_cancelled, 2 * ROUNDS);
}

/* Cancelled receives of the exchange's own tag, before those that are to match. */
static void cancel_among(void)
{
    int n_cancelled = 0;
    warm_up(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        int x = -1, got = -1, token = me * 100 + round;
        struct batch batch;
        MPI_Request requests[2];
        MPI_Status status;
        n_cancelled += cancel_one(&x, beside(-1), BATCH_TAG, round % 2);
        MPI_Barrier(MPI_COMM_WORLD);
        batch_begin(&batch, MPI_COMM_WORLD, round);
        MPI_Irecv(&x, 1, MPI_INT, beside(-1), TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&got, 1, MPI_INT, beside(-1), TAG, MPI_COMM_WORLD, &requests[1]);
        MPI_Cancel(&requests[0]);
        MPI_Wait(&requests[0], &status);
        MPI_Barrier(MPI_COMM_WORLD); /* no message before all have cancelled */
        MPI_Send(&token, 1, MPI_INT, beside(1), TAG, MPI_COMM_WORLD);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        expect_int(got, beside(-1) * 100 + round, "after a cancelled receive");
        batch_end(&batch);
        expect_int(x, -1, "memory of cancelled receives");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    say_all("cancelled %d of %d", n_cancelled, ROUNDS);
}

int main(int argc, char **argv)
{
    static const struct promise_case cases[] = {
        {"recv", freed_recv_init}, {"ssend", freed_ssend},     {"send", freed_standard},
        {"bsend", freed_bsend},    {"both", freed_both},       {"issend", freed_issend},
        {"isend", freed_isend},    {"irecv", freed_irecv},     {"large", freed_large},
        {"cancel", cancel},        {"recancel", cancel_among},
    };
    return promise_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
