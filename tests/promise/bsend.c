/*
 * Buffered sends: MPI_Bsend returns whether or not a receive is posted (MPI 4.0, 3.4: its
 * completion is local), so all ranks may send first and receive then, whatever the size.
 *
 *   bsend ring [BYTES]        MPI_Bsend to the right, then MPI_Recv from the left
 *   bsend all [BYTES]         to all others, then receives from all others
 *   bsend nonblocking [BYTES] MPI_Ibsend, waited for before anything is received
 *   bsend persistent [BYTES]  MPI_Bsend_init, started and waited for before anything is received
 *   bsend detach [BYTES]      MPI_Buffer_detach waits for the messages: the receivers get them
 *   bsend beside [BYTES]      between the halves of an exchange
 *   bsend freed [BYTES]       a managed communicator is freed before the message is received
 *   bsend across [BYTES]      received after the collectives that follow, at any of which managing
 * may end
 */
#include "promise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 8
#define TAG    6

static int n;
static unsigned char *out, *in, *room;

static void attach(int messages)
{
    n = (int)option(0, 100);
    int size = messages * (n + MPI_BSEND_OVERHEAD);
    out = malloc((size_t)n);
    in = malloc((size_t)n);
    room = malloc((size_t)size);
    MPI_Buffer_attach(room, size);
    warm_up(MPI_COMM_WORLD);
}

static void detach(void)
{
    void *address;
    int size;
    MPI_Buffer_detach(&address, &size);
    if (address != room)
        wrong("another buffer was detached");
    free(out);
    free(in);
    free(room);
    say("%d bytes\n", n);
}

static void receive(int from, int key)
{
    MPI_Status status;
    int count;
    memset(in, 0, (size_t)n);
    MPI_Recv(in, n, MPI_BYTE, from, TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    expect_int(count, n, "count");
    expect(in, (size_t)n, key, "message");
}

static void ring(void)
{
    attach(1);
    for (int round = 0; round < ROUNDS; round++) {
        void *address;
        int size;
        fill(out, (size_t)n, me + round);
        MPI_Bsend(out, n, MPI_BYTE, beside(1), TAG, MPI_COMM_WORLD);
        memset(out, 0, (size_t)n); /* ours again */
        receive(beside(-1), beside(-1) + round);
        MPI_Buffer_detach(&address, &size);
        MPI_Buffer_attach(address, size);
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    detach();
}

static void all(void)
{
    attach(n_ranks * 2);
    for (int round = 0; round < ROUNDS; round++) {
        void *address;
        int size;
        for (int i = 1; i < n_ranks; i++) {
            fill(out, (size_t)n, me + round + i);
            MPI_Bsend(out, n, MPI_BYTE, beside(i), TAG, MPI_COMM_WORLD);
        }
        for (int i = 1; i < n_ranks; i++)
            receive(beside(-i), beside(-i) + round + i);
        MPI_Buffer_detach(&address, &size);
        MPI_Buffer_attach(address, size);
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    detach();
}

static void nonblocking(void)
{
    attach(2 * ROUNDS);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        fill(out, (size_t)n, me + round);
        MPI_Ibsend(out, n, MPI_BYTE, beside(1), TAG, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        receive(beside(-1), beside(-1) + round);
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    detach();
}

static void persistent(void)
{
    MPI_Request request;
    attach(2 * ROUNDS);
    MPI_Bsend_init(out, n, MPI_BYTE, beside(1), TAG, MPI_COMM_WORLD, &request);
    for (int round = 0; round < ROUNDS; round++) {
        fill(out, (size_t)n, me + round);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        receive(beside(-1), beside(-1) + round);
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    MPI_Request_free(&request);
    detach();
}

/* Even ranks send and detach; odd ones receive with a delay, without other calls before. */
static void detached(void)
{
    attach(1);
    int partner = partner_of_me();
    for (int round = 0; round < ROUNDS; round++) {
        void *address;
        int size;
        if (partner >= 0 && me % 2 == 0) {
            fill(out, (size_t)n, me + round);
            MPI_Bsend(out, n, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
            MPI_Buffer_detach(&address, &size);
            MPI_Buffer_attach(address, size);
        } else if (partner >= 0) {
            nap(0.002);
            receive(partner, partner + round);
        }
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    detach();
}

static void half_way(void)
{
    attach(2 * ROUNDS);
    for (int round = 0; round < ROUNDS; round++) {
        struct batch batch;
        batch_begin(&batch, MPI_COMM_WORLD, round);
        fill(out, (size_t)n, me + round);
        MPI_Bsend(out, n, MPI_BYTE, beside(1), TAG, MPI_COMM_WORLD);
        receive(beside(-1), beside(-1) + round);
        batch_end(&batch);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    detach();
}

/* Freeing a communicator is collective, and receiving on another one comes after it. */
static void freed(void)
{
    attach(2 * ROUNDS);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm copy;
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        warm_up(copy);
        fill(out, (size_t)n, me + round);
        MPI_Bsend(out, n, MPI_BYTE, beside(1), TAG, MPI_COMM_WORLD);
        MPI_Comm_free(&copy);
        receive(beside(-1), beside(-1) + round);
    }
    detach();
}

/* Slow rounds make rides late, so that managing ends at some collective. */
static void across(void)
{
    attach(2 * ROUNDS);
    for (int round = 0; round < ROUNDS; round++) {
        fill(out, (size_t)n, me + round);
        MPI_Bsend(out, n, MPI_BYTE, beside(1), TAG, MPI_COMM_WORLD);
        for (int k = 0; k < 8; k++) {
            struct batch batch;
            batch_begin(&batch, MPI_COMM_WORLD, k);
            if (me % 2)
                nap(0.002);
            batch_end(&batch);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        receive(beside(-1), beside(-1) + round);
    }
    detach();
}

int main(int argc, char **argv)
{
    static const struct promise_case cases[] = {
        {"ring", ring},
        {"all", all},
        {"nonblocking", nonblocking},
        {"persistent", persistent},
        {"detach", detached},
        {"beside", half_way},
        {"freed", freed},
        {"across", across},
    };
    return promise_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
