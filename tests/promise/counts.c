/*
 * The calls whose counts are MPI_Count, while messages are managed: data, counts in statuses, and
 * sizes come as they do with the calls whose counts are int, which the other side uses in part.
 *
 *   counts blocking [BYTES] | nonblocking [BYTES] | replace [BYTES] | persistent [BYTES]
 *   counts matched [BYTES] | buffered [BYTES]
 *
 * Pairs of ranks that differ in the last bit.
 */
#include "promise.h"

#include <stdlib.h>
#include <string.h>

#define COMM   MPI_COMM_WORLD
#define TAG    5
#define ROUNDS 6

static MPI_Count n;
static int partner;
static unsigned char *out, *in;

static void set_up(void)
{
    n = option(0, 40);
    out = malloc((size_t)n);
    in = malloc((size_t)n);
    partner = partner_of_me();
    warm_up(COMM);
}

/* The data of a round, before it. */
static void begin(int round)
{
    fill(out, (size_t)n, me + round);
    memset(in, 0, (size_t)n);
}

/* What came, and what its status tells. */
static void end(int round, const MPI_Status *status)
{
    MPI_Count count = -1;
    expect(in, (size_t)n, partner + round, "data");
    MPI_Get_elements_x(status, MPI_BYTE, &count);
    expect_int((int)count, (int)n, "count");
    expect_int(status->MPI_SOURCE, partner, "source");
    expect_int(status->MPI_TAG, TAG, "tag");
}

static void over(const char *what)
{
    say("%s of %d bytes\n", what, (int)n);
    free(out);
    free(in);
}

static void send_by_turns(int round)
{
    if (round % 3 == 0)
        MPI_Send_c(out, n, MPI_BYTE, partner, TAG, COMM);
    else if (round % 3 == 1)
        MPI_Ssend_c(out, n, MPI_BYTE, partner, TAG, COMM);
    else
        MPI_Send(out, (int)n, MPI_BYTE, partner, TAG, COMM);
}

static void blocking(void)
{
    MPI_Status status;
    set_up();
    for (int round = 0; round < ROUNDS && partner >= 0; round++) {
        begin(round);
        if (me < partner)
            send_by_turns(round);
        MPI_Recv_c(in, n, MPI_BYTE, partner, TAG, COMM, &status);
        if (me > partner)
            send_by_turns(round);
        end(round, &status);
        begin(round + 1);
        MPI_Sendrecv_c(out, n, MPI_BYTE, partner, TAG, in, n, MPI_BYTE, partner, TAG, COMM,
                       &status);
        end(round + 1, &status);
    }
    over("blocking");
}

static void nonblocking(void)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    set_up();
    for (int round = 0; round < ROUNDS && partner >= 0; round++) {
        begin(round);
        MPI_Irecv_c(in, n, MPI_BYTE, partner, TAG, COMM, &requests[0]);
        if (round % 2)
            MPI_Issend_c(out, n, MPI_BYTE, partner, TAG, COMM, &requests[1]);
        else
            MPI_Isend_c(out, n, MPI_BYTE, partner, TAG, COMM, &requests[1]);
        MPI_Waitall(2, requests, statuses);
        end(round, &statuses[0]);
        begin(round + 1);
        MPI_Isendrecv_c(out, n, MPI_BYTE, partner, TAG, in, n, MPI_BYTE, partner, TAG, COMM,
                        &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        expect(in, (size_t)n, partner + round + 1, "data of MPI_Isendrecv_c");
    }
    over("nonblocking");
}

static void replace(void)
{
    MPI_Request request;
    MPI_Status status;
    set_up();
    for (int round = 0; round < ROUNDS && partner >= 0; round++) {
        begin(round);
        memcpy(in, out, (size_t)n);
        MPI_Sendrecv_replace_c(in, n, MPI_BYTE, partner, TAG, partner, TAG, COMM, &status);
        end(round, &status);
        memcpy(in, out, (size_t)n);
        MPI_Isendrecv_replace_c(in, n, MPI_BYTE, partner, TAG, partner, TAG, COMM, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect(in, (size_t)n, partner + round, "data of MPI_Isendrecv_replace_c");
    }
    over("replace");
}

static void persistent(void)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    set_up();
    if (partner >= 0) {
        MPI_Recv_init_c(in, n, MPI_BYTE, partner, TAG, COMM, &requests[0]);
        MPI_Send_init_c(out, n, MPI_BYTE, partner, TAG, COMM, &requests[1]);
        for (int round = 0; round < ROUNDS; round++) {
            begin(round);
            MPI_Startall(2, requests);
            MPI_Waitall(2, requests, statuses);
            end(round, &statuses[0]);
        }
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
    }
    over("persistent");
}

static void matched(void)
{
    MPI_Request request, received;
    MPI_Message message;
    MPI_Status status;
    set_up();
    for (int round = 0; round < ROUNDS && partner >= 0; round++) {
        begin(round);
        MPI_Isend_c(out, n, MPI_BYTE, partner, TAG, COMM, &request);
        MPI_Mprobe(partner, TAG, COMM, &message, &status);
        if (round % 2) {
            MPI_Mrecv_c(in, n, MPI_BYTE, &message, &status);
        } else {
            MPI_Imrecv_c(in, n, MPI_BYTE, &message, &received);
            MPI_Wait(&received, &status);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        end(round, &status);
    }
    over("matched");
}

static void buffered(void)
{
    MPI_Count attached = -1;
    MPI_Status status;
    void *detached;
    set_up();
    MPI_Count size = 2 * (n + MPI_BSEND_OVERHEAD);
    for (int round = 0; round < ROUNDS && partner >= 0; round++) {
        void *room = malloc((size_t)size);
        begin(round);
        MPI_Buffer_attach_c(room, size);
        MPI_Bsend_c(out, n, MPI_BYTE, partner, TAG, COMM);
        MPI_Recv_c(in, n, MPI_BYTE, partner, TAG, COMM, &status);
        end(round, &status);
        MPI_Buffer_detach_c(&detached, &attached);
        expect_int((int)attached, (int)size, "size of the buffer");
        expect_int(detached == room, 1, "address of the buffer");
        free(room);
    }
    over("buffered");
}

int main(int argc, char **argv)
{
    static const struct promise_case cases[] = {
        {"blocking", blocking},     {"nonblocking", nonblocking}, {"replace", replace},
        {"persistent", persistent}, {"matched", matched},         {"buffered", buffered},
    };
    return promise_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
