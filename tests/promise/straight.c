/*
 * Large messages keep to MPI's matching: a receive gets the first message that was sent to it among
 * those that match (MPI 4.0, 3.5: order), however many others went by meanwhile.
 *
 *   straight wait [MESSAGES] [BYTES]    one large message waits while so many others go by
 *   straight several [MESSAGES]         seven wait, some of equal tags, among smaller ones
 *   straight tags                       large ones received in another order of tags
 *   straight wild                       the same, by wildcards, which see them as they were sent
 *   straight probed                     the same, by matched probes, received in another order
 *   straight posted                     receives posted before, in another order, larger ones, too
 */
#include "promise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE  20000
#define N_TAGS 6

static unsigned char large[8][LARGE], small[LARGE];

/* A message that is told by its first and last int. */
static void mark(unsigned char *buffer, int bytes, int value)
{
    memcpy(buffer, &value, sizeof value);
    memcpy(buffer + bytes - sizeof value, &value, sizeof value);
}

static void expect_mark(const unsigned char *buffer, int bytes, int value, const char *what)
{
    int first, last;
    memcpy(&first, buffer, sizeof first);
    memcpy(&last, buffer + bytes - sizeof last, sizeof last);
    expect_int(first, value, what);
    expect_int(last, value, what);
}

static void others_go_by(int from, int to, int messages, int bytes)
{
    for (int k = 1; k <= messages; k++) {
        if (me == from) {
            mark(small, bytes, k);
            MPI_Send(small, bytes, MPI_BYTE, to, 5, MPI_COMM_WORLD);
        } else if (me == to) {
            MPI_Recv(small, bytes, MPI_BYTE, from, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            expect_mark(small, bytes, k, "one of the others");
        }
    }
}

static void wait_long(void)
{
    int messages = (int)option(0, 20500), bytes = (int)option(1, 4200);
    MPI_Request request;
    warm_up(MPI_COMM_WORLD);
    if (me == 0) {
        fill(large[0], LARGE, 77);
        MPI_Isend(large[0], LARGE, MPI_BYTE, 1, 77, MPI_COMM_WORLD, &request);
    }
    others_go_by(0, 1, messages, bytes);
    if (me == 0)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (me == 1) {
        MPI_Recv(large[0], LARGE, MPI_BYTE, 0, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(large[0], LARGE, 77, "the one that waited");
    }
    warm_rounds(MPI_COMM_WORLD, 3);
    say("waited for %d others\n", messages);
}

/* Those of a tag come as they were sent. `order` says which message is received when: the k-th of a
 * tag among the receives is the k-th of that tag among the sends. */
static void several_wait(void)
{
    static const int tags[7] = {20, 21, 22, 20, 20, 21, 23}, order[7] = {6, 2, 1, 0, 5, 3, 4};
    static unsigned char in[LARGE];
    int messages = (int)option(0, 3000), to = beside(1), from = beside(-1);
    MPI_Request requests[7];
    warm_up(MPI_COMM_WORLD);
    for (int k = 0; k < 7; k++) {
        fill(large[k], LARGE - (size_t)k * 100, me * 10 + k);
        MPI_Isend(large[k], LARGE - k * 100, MPI_BYTE, to, tags[k], MPI_COMM_WORLD, &requests[k]);
    }
    others_go_by(n_ranks - 1, 0, messages, 4200);
    others_go_by(0, n_ranks - 1, messages, 40);
    for (int k = 0; k < 7; k++) {
        MPI_Recv(in, LARGE, MPI_BYTE, from, tags[order[k]], MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(in, LARGE - (size_t)order[k] * 100, from * 10 + order[k], "one of several");
    }
    MPI_Waitall(7, requests, MPI_STATUSES_IGNORE);
    warm_rounds(MPI_COMM_WORLD, 3);
    say("several waited for %d others\n", messages);
}

static void send_tags(MPI_Request *requests)
{
    for (int k = 0; k < N_TAGS; k++) {
        fill(large[k], LARGE, me * 10 + k);
        MPI_Isend(large[k], LARGE - 4 * k, MPI_BYTE, beside(1), 30 + k, MPI_COMM_WORLD,
                  &requests[k]);
    }
}

static void expect_tag(const unsigned char *in, const MPI_Status *status, int k)
{
    int count;
    MPI_Get_count(status, MPI_BYTE, &count);
    expect_int(status->MPI_TAG, 30 + k, "tag");
    expect_int(status->MPI_SOURCE, beside(-1), "source");
    expect_int(count, LARGE - 4 * k, "count");
    expect(in, (size_t)(LARGE - 4 * k), beside(-1) * 10 + k, "payload");
}

static void other_tags(void)
{
    static const int order[N_TAGS] = {3, 0, 5, 1, 4, 2};
    static unsigned char in[LARGE];
    MPI_Request requests[N_TAGS];
    MPI_Status status;
    warm_up(MPI_COMM_WORLD);
    for (int round = 0; round < 30; round++) {
        send_tags(requests);
        for (int k = 0; k < N_TAGS; k++) {
            MPI_Recv(in, LARGE, MPI_BYTE, round % 2 ? beside(-1) : MPI_ANY_SOURCE,
                     30 + order[(k + round) % N_TAGS], MPI_COMM_WORLD, &status);
            expect_tag(in, &status, order[(k + round) % N_TAGS]);
        }
        MPI_Waitall(N_TAGS, requests, MPI_STATUSES_IGNORE);
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    say("other order of tags\n");
}

static void by_wildcard(void)
{
    static unsigned char in[LARGE];
    MPI_Request requests[N_TAGS];
    MPI_Status status;
    warm_up(MPI_COMM_WORLD);
    for (int round = 0; round < 30; round++) {
        send_tags(requests);
        if (round % 3 == 0) { /* the last first, then the rest as sent */
            MPI_Recv(in, LARGE, MPI_BYTE, MPI_ANY_SOURCE, 30 + N_TAGS - 1, MPI_COMM_WORLD, &status);
            expect_tag(in, &status, N_TAGS - 1);
        }
        for (int k = 0; k < N_TAGS - (round % 3 == 0); k++) {
            MPI_Recv(in, LARGE, MPI_BYTE, round % 2 ? MPI_ANY_SOURCE : beside(-1), MPI_ANY_TAG,
                     MPI_COMM_WORLD, &status);
            expect_tag(in, &status, k);
        }
        MPI_Waitall(N_TAGS, requests, MPI_STATUSES_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD); /* nothing else for a wildcard before the next round */
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    say("by wildcards\n");
}

static void by_probe(void)
{
    static const int order[N_TAGS] = {4, 2, 0, 5, 3, 1};
    static unsigned char in[LARGE];
    MPI_Request requests[N_TAGS];
    MPI_Message messages[N_TAGS];
    MPI_Status status;
    warm_up(MPI_COMM_WORLD);
    for (int round = 0; round < 30; round++) {
        send_tags(requests);
        for (int k = 0; k < N_TAGS; k++) {
            int flag = 0, tag = round % 2 ? 30 + k : MPI_ANY_TAG;
            if (round % 3 == 0)
                MPI_Mprobe(beside(-1), tag, MPI_COMM_WORLD, &messages[k], &status);
            while (round % 3 != 0 && !flag)
                MPI_Improbe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &flag, &messages[k], &status);
            expect_int(status.MPI_TAG, 30 + k, "tag of a probe");
        }
        for (int k = 0; k < N_TAGS; k++) {
            MPI_Mrecv(in, LARGE, MPI_BYTE, &messages[order[k]], &status);
            expect_tag(in, &status, order[k]);
        }
        MPI_Waitall(N_TAGS, requests, MPI_STATUSES_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    say("by matched probes\n");
}

static void posted_before(void)
{
    static const int order[N_TAGS] = {5, 1, 3, 0, 2, 4};
    static unsigned char in[N_TAGS][2 * LARGE];
    MPI_Request receives[N_TAGS], requests[N_TAGS];
    MPI_Status statuses[N_TAGS];
    warm_up(MPI_COMM_WORLD);
    for (int round = 0; round < 30; round++) {
        for (int k = 0; k < N_TAGS; k++)
            MPI_Irecv(in[order[k]], 2 * LARGE, MPI_BYTE, beside(-1), 30 + order[k], MPI_COMM_WORLD,
                      &receives[order[k]]);
        send_tags(requests);
        MPI_Waitall(N_TAGS, receives, statuses);
        for (int k = 0; k < N_TAGS; k++)
            expect_tag(in[k], &statuses[k], k);
        MPI_Waitall(N_TAGS, requests, MPI_STATUSES_IGNORE);
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    say("posted before\n");
}

int main(int argc, char **argv)
{
    static const struct promise_case cases[] = {
        {"wait", wait_long},   {"several", several_wait}, {"tags", other_tags},
        {"wild", by_wildcard}, {"probed", by_probe},      {"posted", posted_before},
    };
    return promise_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
