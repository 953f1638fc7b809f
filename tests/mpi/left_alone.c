/*
 * The rules by which point-to-point messages are left to MPI for good: the program does what a rule
 * speaks of, and then repeats one exchange so often that it would be rerouted.
 *
 *   left_alone --rule NAME
 *
 *   wildcard     a nonblocking receive from MPI_ANY_SOURCE
 *   mprobe       a matched probe
 *   isendrecv    MPI_Isendrecv
 *   window, file one is opened
 *   varied       all ranks send another batch each time, more than 128 times
 *   plain        all ranks send to one other rank each, more than 4,096 times
 *   counted      one rank alone sends another batch each time, more than 65,536 messages
 *   ahead        at six agreements messages and receives do not fit: receives are posted ahead
 *   gains        nothing but the exchange, which no plan makes faster
 *   late         a window is opened when the exchange has been learned
 *   few          nothing but the exchange, without collectives
 *   reduced      the exchange is left alone first, until reductions come in which it could ride
 */
#include "common.h"

#include <stdlib.h>
#include <string.h>

#define N_PEERS     3
#define TAG         7
#define N_REPEATED  40
#define N_AHEAD     140 /* collectives: the sixth agreement is at the 128th */
#define N_BATCHES   200
#define N_PLAIN     4200
#define N_COUNTED   42000 /* batches of two messages */
#define N_UNREDUCED 6     /* rounds: there are agreements in the 4th, 8th and 16th */
#define FIRST_TAG   100
#define OTHER_TAG   8
#define LINE_LENGTH 3

static int rank, n_ranks;

static int after(int distance)
{
    return (rank + distance) % n_ranks;
}

static int before(int distance)
{
    return (rank + n_ranks - distance) % n_ranks;
}

/* --- the exchange that repeats ------------------------------------------------------------- */

struct line {
    int out[N_PEERS][LINE_LENGTH], in[N_PEERS][LINE_LENGTH];
    MPI_Request requests[2 * N_PEERS];
};

static void post(struct line *line)
{
    for (int k = 0; k < N_PEERS; k++)
        MPI_Irecv(line->in[k], LINE_LENGTH, MPI_INT, before(k + 1), TAG, MPI_COMM_WORLD,
                  &line->requests[k]);
}

static void send(struct line *line, int round)
{
    for (int k = 0; k < N_PEERS; k++) {
        for (int i = 0; i < LINE_LENGTH; i++)
            line->out[k][i] = 1000 * round + 10 * rank + i;
        MPI_Isend(line->out[k], LINE_LENGTH, MPI_INT, after(k + 1), TAG, MPI_COMM_WORLD,
                  &line->requests[N_PEERS + k]);
    }
}

static void complete(struct line *line, int round)
{
    MPI_Waitall(2 * N_PEERS, line->requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < N_PEERS; k++) {
        for (int i = 0; i < LINE_LENGTH; i++) {
            if (line->in[k][i] != 1000 * round + 10 * before(k + 1) + i)
                test_fail("round %d: %d from rank %d", round, line->in[k][i], before(k + 1));
        }
    }
}

static void exchange(int round)
{
    struct line line;
    post(&line);
    send(&line, round);
    complete(&line, round);
}

static void repeat(void)
{
    for (int round = 0; round < N_REPEATED; round++) {
        exchange(round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* --- what the rules speak of ---------------------------------------------------------------- */

static void wildcard(void)
{
    int out = rank, in = -1;
    MPI_Request request;

    MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, OTHER_TAG, MPI_COMM_WORLD, &request);
    MPI_Send(&out, 1, MPI_INT, after(1), OTHER_TAG, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (in != before(1))
        test_fail("%d instead of %d", in, before(1));
}

static void mprobe(void)
{
    int out = rank, in = -1;
    MPI_Request request;
    MPI_Message message;

    MPI_Isend(&out, 1, MPI_INT, after(1), OTHER_TAG, MPI_COMM_WORLD, &request);
    MPI_Mprobe(before(1), OTHER_TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (in != before(1))
        test_fail("%d instead of %d", in, before(1));
}

static void isendrecv(void)
{
    int out = rank, in = -1;
    MPI_Request request;

    MPI_Isendrecv(&out, 1, MPI_INT, after(1), OTHER_TAG, &in, 1, MPI_INT, before(1), OTHER_TAG,
                  MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (in != before(1))
        test_fail("%d instead of %d", in, before(1));
}

static void open_window(void)
{
    int number = 0;
    MPI_Win window;

    MPI_Win_create(&number, sizeof number, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_free(&window);
}

static void open_file(void)
{
    MPI_File file;

    MPI_File_open(MPI_COMM_WORLD, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_File_close(&file);
}

/* Two messages with tags that do not come again. */
static void send_batch(int number)
{
    int out = number, in[2];
    MPI_Request requests[4];

    for (int k = 0; k < 2; k++)
        MPI_Irecv(&in[k], 1, MPI_INT, before(k + 1), FIRST_TAG + number, MPI_COMM_WORLD,
                  &requests[k]);
    for (int k = 0; k < 2; k++)
        MPI_Isend(&out, 1, MPI_INT, after(k + 1), FIRST_TAG + number, MPI_COMM_WORLD,
                  &requests[2 + k]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    if (in[0] != number || in[1] != number)
        test_fail("batch %d: %d, %d", number, in[0], in[1]);
}

static void varied(void)
{
    for (int number = 0; number < N_BATCHES; number++)
        send_batch(number);
}

static void plain(void)
{
    int in;

    for (int number = 0; number < N_PLAIN; number++) {
        MPI_Sendrecv(&number, 1, MPI_INT, after(1), TAG, &in, 1, MPI_INT, before(1), TAG,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (in != number)
            test_fail("message %d: %d", number, in);
    }
}

/* Rank 0 sends; the others send too little to know whether anything recurs. */
static void counted(void)
{
    int in;

    for (int number = 0; number < N_COUNTED; number++) {
        if (rank == 0) {
            MPI_Send(&number, 1, MPI_INT, 1, FIRST_TAG + number % 1000, MPI_COMM_WORLD);
            MPI_Send(&number, 1, MPI_INT, 2, FIRST_TAG + number / 1000, MPI_COMM_WORLD);
        } else if (rank <= 2) {
            MPI_Recv(&in, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (in != number)
                test_fail("message %d: %d", number, in);
        }
        if (rank == 0 && number % 64 == 63) /* a leave point: a batch ends */
            MPI_Iprobe(1, OTHER_TAG, MPI_COMM_WORLD, &in, MPI_STATUS_IGNORE);
    }
    if (rank == 1)
        MPI_Send(&rank, 1, MPI_INT, 2, OTHER_TAG, MPI_COMM_WORLD);
    if (rank == 2)
        MPI_Recv(&in, 1, MPI_INT, 1, OTHER_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The receives of the next round are always posted before the collective. */
static void ahead(void)
{
    struct line lines[2];

    post(&lines[0]);
    for (int round = 0; round < N_AHEAD; round++) {
        post(&lines[(round + 1) % 2]);
        send(&lines[round % 2], round);
        complete(&lines[round % 2], round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    send(&lines[N_AHEAD % 2], N_AHEAD);
    complete(&lines[N_AHEAD % 2], N_AHEAD);
}

/* As many collectives as six agreements take. */
static void gains(void)
{
    for (int round = 0; round < N_AHEAD; round++) {
        exchange(round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void late(void)
{
    repeat();
    open_window();
}

static void few(void)
{
    for (int round = 0; round < N_REPEATED; round++)
        exchange(round);
}

/* The messages are pending when the reduction is called. */
static void reduced(void)
{
    struct line line;
    int largest = -1;

    for (int round = 0; round < N_REPEATED; round++) {
        post(&line);
        send(&line, round);
        if (round < N_UNREDUCED) {
            MPI_Barrier(MPI_COMM_WORLD);
        } else {
            MPI_Allreduce(&rank, &largest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
            if (largest != n_ranks - 1)
                test_fail("round %d: %d is the largest of %d ranks", round, largest, n_ranks);
        }
        complete(&line, round);
    }
}

static const struct rule {
    const char *name;
    void (*follow)(void);
    bool repeats; /* the exchange with collectives comes after it */
} rules[] = {
    {"wildcard", wildcard, true},  {"mprobe", mprobe, true},   {"isendrecv", isendrecv, true},
    {"window", open_window, true}, {"file", open_file, true},  {"varied", varied, true},
    {"plain", plain, true},        {"counted", counted, true}, {"ahead", ahead, true},
    {"gains", gains, true},        {"late", late, true},       {"few", few, false},
    {"reduced", reduced, false},
};

int main(int argc, char **argv)
{
    static const char *const known[] = {"--rule", NULL};
    const struct rule *rule = NULL;

    test_start(&argc, &argv, known);
    rank = test_rank();
    n_ranks = test_size();
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (strcmp(rules[i].name, test_option_text(argc, argv, "--rule", "")) == 0)
            rule = &rules[i];
    }
    if (rule == NULL || n_ranks <= N_PEERS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    rule->follow();
    if (rule->repeats)
        repeat();
    return test_finish();
}
