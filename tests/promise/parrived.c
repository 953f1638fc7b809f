/*
 * Partitioned communication, which a rank polls by MPI_Parrived only, beside a managed exchange
 * whose messages are under way. MPI_Parrived may be called until the partition is there, and each
 * call must make the messages of all go on (MPI 4.0, 4.2.2).
 *
 *   parrived ready | range | token | small | back [PARTITIONS]
 *
 * ready: MPI_Pready one by one, from the last; range: MPI_Pready_range; token: the sender waits for
 * a message of the polling rank first; small: as token, and the receiver polls before its batch is
 * complete; back: both ranks of a pair send to each other and poll.
 */
#include "promise.h"

#include <string.h>

#define ROUNDS 12
#define TAG    6
#define TOKEN  8
#define MOST   16
#define EACH   25 /* ints of a partition */
#define COMM   MPI_COMM_WORLD

static int out[MOST * EACH], in[MOST * EACH];
static int n_partitions;

static void ready(MPI_Request request, bool range)
{
    if (range) {
        MPI_Pready_range(0, n_partitions / 2, request);
        MPI_Pready_range(n_partitions / 2 + 1, n_partitions - 1, request);
        return;
    }
    for (int i = n_partitions - 1; i >= 0; i--)
        MPI_Pready(i, request);
}

static void poll(MPI_Request request)
{
    for (int i = 0; i < n_partitions; i++) {
        int flag = 0;
        while (!flag)
            MPI_Parrived(request, i, &flag);
    }
}

static void token_to(int to)
{
    int token = 7;
    MPI_Send(&token, 1, MPI_INT, to, TOKEN, COMM);
}

static void token_from(int from)
{
    int token = 0;
    MPI_Recv(&token, 1, MPI_INT, from, TOKEN, COMM, MPI_STATUS_IGNORE);
    expect_int(token, 7, "token");
}

static size_t bytes(void)
{
    return (size_t)n_partitions * EACH * sizeof(int);
}

static void begin(void)
{
    n_partitions = (int)option(0, 4);
    if (n_partitions < 3 || n_partitions > MOST)
        n_partitions = 4;
    warm_up(COMM);
}

/* The even rank of a pair receives from the odd one. */
static void one_way(bool range, bool token, bool early)
{
    int partner = partner_of_me();
    bool receives = partner >= 0 && me % 2 == 0, sends = partner >= 0 && me % 2 != 0;
    MPI_Request request = MPI_REQUEST_NULL;
    begin();
    if (receives)
        MPI_Precv_init(in, n_partitions, EACH, MPI_INT, partner, TAG, COMM, MPI_INFO_NULL,
                       &request);
    if (sends)
        MPI_Psend_init(out, n_partitions, EACH, MPI_INT, partner, TAG, COMM, MPI_INFO_NULL,
                       &request);
    for (int round = 0; round < ROUNDS; round++) {
        struct batch batch;
        memset(in, 0, sizeof in);
        fill(out, bytes(), me + round);
        batch_begin(&batch, COMM, round);
        if (partner >= 0)
            MPI_Start(&request);
        if (receives && token)
            token_to(partner);
        if (sends && token)
            token_from(partner);
        if (sends && early)
            batch_end(&batch);
        if (sends)
            ready(request, range);
        if (receives)
            poll(request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (receives)
            expect(in, bytes(), partner + round, "partitions");
        if (!(sends && early))
            batch_end(&batch);
        warm_rounds(COMM, 1);
    }
    if (partner >= 0)
        MPI_Request_free(&request);
    say("%d partitions, %d rounds\n", n_partitions, ROUNDS);
}

static void by_one(void)
{
    one_way(false, false, false);
}

static void by_range(void)
{
    one_way(true, false, false);
}

static void after_token(void)
{
    one_way(false, true, false);
}

static void early(void)
{
    one_way(true, true, true);
}

static void back(void)
{
    int partner = partner_of_me();
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    begin();
    if (partner >= 0) {
        MPI_Precv_init(in, n_partitions, EACH, MPI_INT, partner, TAG, COMM, MPI_INFO_NULL,
                       &requests[0]);
        MPI_Psend_init(out, n_partitions, EACH, MPI_INT, partner, TAG, COMM, MPI_INFO_NULL,
                       &requests[1]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        struct batch batch;
        memset(in, 0, sizeof in);
        fill(out, bytes(), me + round);
        batch_begin(&batch, COMM, round);
        if (partner >= 0) {
            MPI_Startall(2, requests);
            ready(requests[1], round % 2);
            poll(requests[0]);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        if (partner >= 0)
            expect(in, bytes(), partner + round, "partitions");
        batch_end(&batch);
        warm_rounds(COMM, 1);
    }
    for (int i = 0; i < 2 && partner >= 0; i++)
        MPI_Request_free(&requests[i]);
    say("%d partitions there and back, %d rounds\n", n_partitions, ROUNDS);
}

int main(int argc, char **argv)
{
    static const struct promise_case cases[] = {
        {"ready", by_one}, {"range", by_range}, {"token", after_token},
        {"small", early},  {"back", back},
    };
    return promise_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
