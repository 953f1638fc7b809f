/*
 * The rules by which point-to-point messages are left to MPI for good: the program does what a rule
 * speaks of, and then repeats one exchange so often that it would be rerouted.
 *
 *   left_alone --rule NAME
 *
 *   wildcard     nonblocking receives with wildcards, all complete; some cancelled, some persistent
 *   open         a receive with wildcards that is open at every agreement
 *   freed        the request of such a receive is freed
 *   always       more than 4,096 receives with wildcards
 *   mprobe       a matched probe
 *   isendrecv    MPI_Isendrecv and its relative
 *   window, file one is opened
 *   locked       locks are held while the exchange is learned; one rank waits for another's lock
 *                while it forwards
 *   epoch        a rank exposes its window at every agreement but the last
 *   varied       all ranks send another batch each time, more than 128 times
 *   plain        all ranks send to one other rank each, more than 4,096 times
 *   counted      one rank alone sends another batch each time, more than 65,536 messages
 *   ahead        at six agreements messages and receives do not fit: receives are posted ahead
 *   gains        nothing but the exchange, which no plan makes faster
 *   late         a window is opened when the exchange has been learned, and used
 *   few          nothing but the exchange, without collectives
 *   early        the same after some collectives
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
#define N_EARLY     9     /* collectives, with agreements in the 4th and 8th */
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

/* Checks what a receive with wildcards tells. */
static void check_status(const MPI_Status *status, int in, int tag)
{
    int n = -1;

    MPI_Get_count(status, MPI_INT, &n);
    if (in != before(1) || status->MPI_SOURCE != before(1) || status->MPI_TAG != tag || n != 1)
        test_fail("%d instead of %d, from %d, tag %d, %d elements", in, before(1),
                  status->MPI_SOURCE, status->MPI_TAG, n);
}

/* A message of which the receiver names the tag, and one of which it names the source. They are
 * completed by one call for several requests, with some of MPI's own among them. */
static void wild_pair(int round)
{
    int out = rank, in[3] = {-1, -1, -1}, indices[4], n_done = 0, index, flag = 0;
    MPI_Request requests[4];
    MPI_Status statuses[4], status;

    MPI_Irecv(&in[0], 1, MPI_INT, MPI_ANY_SOURCE, OTHER_TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&in[1], 1, MPI_INT, before(1), FIRST_TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&out, 1, MPI_INT, after(1), OTHER_TAG, MPI_COMM_WORLD, &requests[2]);
    MPI_Send(&out, 1, MPI_INT, after(1), FIRST_TAG, MPI_COMM_WORLD);
    requests[3] = MPI_REQUEST_NULL;
    if (round == 0)
        MPI_Waitall(4, requests, statuses);
    while (round == 1 && !flag)
        MPI_Testall(4, requests, &flag, statuses);
    for (int left = 3; round == 2 && left > 0; left--) {
        MPI_Waitany(4, requests, &index, &status);
        statuses[index] = status;
    }
    for (int left = 3; round == 3 && left > 0; left -= n_done) {
        MPI_Status some[4];
        MPI_Testsome(4, requests, &n_done, indices, some);
        for (int k = 0; k < n_done; k++)
            statuses[indices[k]] = some[k];
    }
    if (requests[0] != MPI_REQUEST_NULL || requests[1] != MPI_REQUEST_NULL)
        test_fail("round %d: requests that are complete are not null", round);
    check_status(&statuses[0], in[0], OTHER_TAG);
    check_status(&statuses[1], in[1], FIRST_TAG);
    MPI_Irecv(&in[2], 1, MPI_INT, before(1), MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Send(&out, 1, MPI_INT, after(1), FIRST_TAG + 1, MPI_COMM_WORLD);
    for (flag = 0; !flag;)
        MPI_Request_get_status(requests[0], &flag, &status);
    check_status(&status, in[2], FIRST_TAG + 1);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void wild_cancelled(void)
{
    int in = -1, cancelled = 0;
    MPI_Request request;
    MPI_Status status;

    MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, FIRST_TAG + 2, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    if (!cancelled)
        test_fail("%s", "the receive is not cancelled");
}

static void wild_persistent(void)
{
    int out = rank, in = -1;
    MPI_Request request;
    MPI_Status status;

    MPI_Recv_init(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    for (int round = 0; round < 3; round++) {
        MPI_Barrier(MPI_COMM_WORLD); /* or it might take another's message */
        in = -1;
        MPI_Start(&request);
        MPI_Send(&out, 1, MPI_INT, after(1), FIRST_TAG + round, MPI_COMM_WORLD);
        MPI_Wait(&request, &status);
        check_status(&status, in, FIRST_TAG + round);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request_free(&request);
}

static void wildcard(void)
{
    for (int round = 0; round < 4; round++)
        wild_pair(round);
    wild_cancelled();
    wild_persistent();
}

static void always(void)
{
    int out = rank, in;
    MPI_Request request;

    for (int round = 0; round < N_PLAIN; round++) {
        MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, OTHER_TAG, MPI_COMM_WORLD, &request);
        MPI_Send(&out, 1, MPI_INT, after(1), OTHER_TAG, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void gains(void);

static void open_receive(void)
{
    int out = rank, in = -1;
    MPI_Request request;
    MPI_Status status;

    MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, OTHER_TAG, MPI_COMM_WORLD, &request);
    gains();
    MPI_Send(&out, 1, MPI_INT, after(1), OTHER_TAG, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    check_status(&status, in, OTHER_TAG);
}

static void freed(void)
{
    static int in = -1; /* still there when the message comes */
    int out = rank;
    MPI_Request request;

    MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, OTHER_TAG, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    MPI_Ssend(&out, 1, MPI_INT, after(1), OTHER_TAG, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
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
    MPI_Isendrecv_replace(&out, 1, MPI_INT, after(1), OTHER_TAG, before(1), MPI_ANY_TAG,
                          MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (out != before(1))
        test_fail("%d instead of %d", out, before(1));
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

/* MPICH 4.0.2 loses what is put or accumulated in windows that share a page. */
#define PAGE         4096
#define MOST_WINDOWS 8
static int sums[PAGE], numbers[MOST_WINDOWS][PAGE];

static void open_numbers(int *memory, MPI_Win *window)
{
    memory[0] = memory[1] = 0;
    MPI_Win_create(memory, 2 * (MPI_Aint)sizeof *memory, sizeof *memory, MPI_INFO_NULL,
                   MPI_COMM_WORLD, window);
}

static void repeat(void);

/* The exchange, in the midst of which one rank waits for the lock that rank 1 has. */
static void exchange_locked(int waiter, MPI_Win window)
{
    int one = 1;
    struct line line;

    post(&line);
    send(&line, waiter);
    if (rank == waiter) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window);
        MPI_Win_flush(0, window);
        MPI_Win_unlock(0, window);
    }
    complete(&line, waiter);
    if (rank == 1)
        MPI_Win_unlock(0, window);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void locked(void)
{
    int one = 1;
    MPI_Win all, windows[MOST_WINDOWS];

    open_numbers(sums, &all);
    MPI_Win_lock_all(0, all);
    for (int k = 0; k < n_ranks; k++) {
        open_numbers(numbers[k], &windows[k]);
        if (rank == 1)
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, windows[k]);
    }
    repeat();
    for (int k = 0; k < n_ranks; k++)
        if (k != 1)
            exchange_locked(k, windows[k]);
    if (rank == 1)
        MPI_Win_unlock(0, windows[1]);
    MPI_Accumulate(&one, 1, MPI_INT, after(1), 1, 1, MPI_INT, MPI_SUM, all);
    MPI_Win_unlock_all(all);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < n_ranks; k++) {
        if (rank == 0 && numbers[k][0] != (k != 1))
            test_fail("rank %d accumulated %d", k, numbers[k][0]);
        MPI_Win_free(&windows[k]);
    }
    if (sums[1] != 1)
        test_fail("accumulated %d", sums[1]);
    MPI_Win_free(&all);
}

/* Agreements are at the 4th, 8th, 16th ... collective. */
static void epoch(void)
{
    MPI_Win window;
    MPI_Group world, partner;
    int other = rank ^ 1;

    open_numbers(numbers[0], &window);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &other, &partner);
    if (rank == 0)
        MPI_Win_post(partner, 0, window);
    if (rank == 1)
        MPI_Win_start(partner, 0, window);
    repeat();
    if (rank == 1) {
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
        MPI_Win_complete(window);
    }
    if (rank == 0) {
        MPI_Win_wait(window);
        if (numbers[0][0] != 1)
            test_fail("%d was put", numbers[0][0]);
    }
    repeat();
    MPI_Win_free(&window);
    MPI_Group_free(&partner);
    MPI_Group_free(&world);
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
    locked();
}

static void few(void)
{
    for (int round = 0; round < N_REPEATED; round++)
        exchange(round);
}

static void early(void)
{
    for (int k = 0; k < N_EARLY; k++)
        MPI_Barrier(MPI_COMM_WORLD);
    few();
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
    {"wildcard", wildcard, true},  {"mprobe", mprobe, true},    {"isendrecv", isendrecv, true},
    {"open", open_receive, true},  {"freed", freed, true},      {"always", always, true},
    {"window", open_window, true}, {"file", open_file, true},   {"varied", varied, true},
    {"plain", plain, true},        {"counted", counted, true},  {"ahead", ahead, true},
    {"gains", gains, true},        {"late", late, true},        {"few", few, false},
    {"early", early, false},       {"reduced", reduced, false}, {"locked", locked, true},
    {"epoch", epoch, true},
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
