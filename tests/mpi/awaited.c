/*
 * A program that calls no blocking collective while it repeats its exchange: its ranks meet, if
 * they do, where they wait for a nonblocking one.
 *
 *   awaited [--how WAY] [--rounds N] [--every N] [--copy] [--then]
 *
 *   wait      MPI_Iallreduce, the exchange, MPI_Wait; the default
 *   waitall   the reduction is completed with the exchange
 *   barrier   MPI_Ibarrier instead
 *   neighbors nothing but MPI_Ineighbor_alltoall and MPI_Wait
 *   alltoallv nothing but MPI_Ialltoallv with the same messages, on a copy of MPI_COMM_WORLD, and
 * MPI_Wait test      all ranks test until the reduction is there some      some ranks test, each
 * time other ones handle    a rank tests, and then waits for something else that may get the same
 * handle blocked   in some rounds the last rank, before it waits, waits for a message that the
 * first one sends when it has waited memory    the same, but it waits for a byte in memory, outside
 * MPI between   in some rounds a rank of each pair calls a collective of the pair before it waits,
 * and the other one after it; MPI_Bcast, whose root does not wait starts    in some rounds the odd
 * ranks start another one before they wait, the others after it late      some rank sleeps before
 * it waits, each time another one alone     in some rounds all ranks wait at once for one more
 *
 *   --every   of so many rounds one is special; default 3
 *   --copy    reductions on a copy of MPI_COMM_WORLD
 *   --then    afterwards the exchange goes on beside blocking collectives
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include "common.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_PEERS    3
#define MOST_RANKS 64
#define TAG        7
#define ANSWER     8
#define LENGTH     3
#define BEFORE     5 /* blocking collectives at the beginning */

enum way {
    WAIT,
    WAITALL,
    BARRIER,
    NEIGHBORS,
    ALLTOALLV,
    TEST,
    SOME,
    HANDLE,
    BLOCKED,
    MEMORY,
    BETWEEN,
    STARTS,
    LATE,
    ALONE
};

static const char *const names[] = {"wait",    "waitall", "barrier", "neighbors", "alltoallv",
                                    "test",    "some",    "handle",  "blocked",   "memory",
                                    "between", "starts",  "late",    "alone",     NULL};

static int rank, n_ranks, every;
static MPI_Comm reduces, pair, graph;
static volatile int *flags; /* in memory that all ranks share: flags[0] counts the rounds */

static int after(int distance)
{
    return (rank + distance) % n_ranks;
}

static int before(int distance)
{
    return (rank + n_ranks - distance) % n_ranks;
}

struct round {
    int number;
    int out[N_PEERS][LENGTH], in[N_PEERS][LENGTH];
    double mine, sum, other, others;
    MPI_Request requests[2 * N_PEERS + 1]; /* the last one is the reduction's */
    MPI_Request second;
    int n_sent[MOST_RANKS], n_received[MOST_RANKS], sent_at[MOST_RANKS], received_at[MOST_RANKS];
};

static void post(struct round *r)
{
    for (int k = 0; k < N_PEERS; k++)
        MPI_Irecv(r->in[k], LENGTH, MPI_INT, before(k + 1), TAG, MPI_COMM_WORLD, &r->requests[k]);
    for (int k = 0; k < N_PEERS; k++) {
        for (int i = 0; i < LENGTH; i++)
            r->out[k][i] = 1000 * r->number + 10 * rank + i;
        MPI_Isend(r->out[k], LENGTH, MPI_INT, after(k + 1), TAG, MPI_COMM_WORLD,
                  &r->requests[N_PEERS + k]);
    }
}

static void start(struct round *r, enum way way)
{
    r->mine = r->number + rank;
    r->sum = -1;
    if (way == BARRIER)
        MPI_Ibarrier(reduces, &r->requests[2 * N_PEERS]);
    else
        MPI_Iallreduce(&r->mine, &r->sum, 1, MPI_DOUBLE, MPI_SUM, reduces,
                       &r->requests[2 * N_PEERS]);
}

/* The same messages by a nonblocking collective, which waits for those that this rank receives
 * from.
 */
static void collective(struct round *r, enum way way)
{
    MPI_Request *request = &r->requests[2 * N_PEERS];
    for (int k = 0; k < N_PEERS; k++)
        for (int i = 0; i < LENGTH; i++)
            r->out[k][i] = 1000 * r->number + 10 * rank + i;
    if (way == NEIGHBORS) {
        MPI_Ineighbor_alltoall(r->out, LENGTH, MPI_INT, r->in, LENGTH, MPI_INT, graph, request);
        return;
    }
    for (int k = 0; k < N_PEERS; k++) {
        r->n_sent[after(k + 1)] = r->n_received[before(k + 1)] = LENGTH;
        r->sent_at[after(k + 1)] = r->received_at[before(k + 1)] = k * LENGTH;
    }
    MPI_Ialltoallv(r->out, r->n_sent, r->sent_at, MPI_INT, r->in, r->n_received, r->received_at,
                   MPI_INT, graph, request);
}

static bool is_collective(enum way way)
{
    return way == NEIGHBORS || way == ALLTOALLV;
}

static double expected(int number)
{
    return (double)n_ranks * number + 0.5 * n_ranks * (n_ranks - 1);
}

static void check(const struct round *r, enum way way)
{
    for (int k = 0; k < N_PEERS; k++)
        for (int i = 0; i < LENGTH; i++)
            if (r->in[k][i] != 1000 * r->number + 10 * before(k + 1) + i)
                test_fail("round %d: %d from rank %d", r->number, r->in[k][i], before(k + 1));
    if (way != BARRIER && !is_collective(way) && r->sum != expected(r->number))
        test_fail("round %d: sum %g", r->number, r->sum);
}

static void nap(long milliseconds)
{
    const struct timespec time = {0, milliseconds * 1000000};
    nanosleep(&time, NULL);
}

static void test_for(MPI_Request *request)
{
    for (int flag = 0; !flag;)
        MPI_Test(request, &flag, MPI_STATUS_IGNORE);
}

/* --- before and after a rank waits for the reduction ------------------------------------------ */

static bool is_last(void)
{
    return rank == n_ranks - 1;
}

static void pair_collective(const struct round *r)
{
    int root = r->number / every % 2, value = rank % 2 == root ? r->number : -1;
    MPI_Bcast(&value, 1, MPI_INT, root, pair);
    if (value != r->number)
        test_fail("round %d: %d was broadcast", r->number, value);
}

/* The root of the broadcast, which need not wait for its partner. */
static bool is_root(const struct round *r)
{
    return rank % 2 == r->number / every % 2;
}

static void start_second(struct round *r)
{
    r->other = 1;
    MPI_Iallreduce(&r->other, &r->others, 1, MPI_DOUBLE, MPI_SUM, reduces, &r->second);
}

static void before_wait(struct round *r, enum way way)
{
    int in = -1;
    if (way == LATE && r->number % 7 == 0 && r->number / 7 % n_ranks == rank)
        nap(12);
    if (r->number % every != 0)
        return;
    if (way == BLOCKED && is_last()) {
        MPI_Recv(&in, 1, MPI_INT, 0, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (in != r->number)
            test_fail("round %d: answer %d", r->number, in);
    }
    while (way == MEMORY && is_last() && flags[0] < r->number)
        nap(0);
    if (way == BETWEEN && is_root(r))
        pair_collective(r);
    if (way == STARTS && rank % 2 == 1)
        start_second(r);
}

static void after_wait(struct round *r, enum way way)
{
    if (r->number % every != 0)
        return;
    if (way == BLOCKED && rank == 0)
        MPI_Send(&r->number, 1, MPI_INT, n_ranks - 1, ANSWER, MPI_COMM_WORLD);
    if (way == MEMORY && rank == 0)
        flags[0] = r->number;
    if (way == BETWEEN && !is_root(r))
        pair_collective(r);
    if (way == STARTS && rank % 2 == 0)
        start_second(r);
    if (way == ALONE)
        start_second(r);
    if (way == STARTS || way == ALONE) {
        MPI_Wait(&r->second, MPI_STATUS_IGNORE);
        if (r->others != n_ranks)
            test_fail("round %d: %g ranks", r->number, r->others);
    }
}

static void wait_for(struct round *r, enum way way)
{
    MPI_Request *request = &r->requests[2 * N_PEERS], other;
    int in, out = rank;
    if (way == TEST || (way == SOME && (r->number + rank) % 3 == 0)) {
        test_for(request);
    } else if (way == HANDLE && rank == r->number % n_ranks) {
        test_for(request);
        MPI_Irecv(&in, 1, MPI_INT, 0, ANSWER, MPI_COMM_SELF, &other);
        MPI_Send(&out, 1, MPI_INT, 0, ANSWER, MPI_COMM_SELF);
        MPI_Wait(&other, MPI_STATUS_IGNORE);
    } else {
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
}

static void one_round(int number, enum way way)
{
    struct round r = {.number = number};
    if (is_collective(way)) {
        collective(&r, way);
        wait_for(&r, way);
        check(&r, way);
        return;
    }
    start(&r, way);
    post(&r);
    MPI_Waitall(2 * N_PEERS + (way == WAITALL), r.requests, MPI_STATUSES_IGNORE);
    before_wait(&r, way);
    if (way != WAITALL)
        wait_for(&r, way);
    after_wait(&r, way);
    check(&r, way);
}

/* --- */

static void share_memory(MPI_Win *window)
{
    int *mine, unit;
    MPI_Aint size;
    MPI_Win_allocate_shared(rank == 0 ? 4096 : 0, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD,
                            &mine, window);
    MPI_Win_shared_query(*window, 0, &size, &unit, &mine);
    flags = mine;
    if (rank == 0)
        flags[0] = 0;
}

static void make_graph(void)
{
    int sources[N_PEERS], destinations[N_PEERS];
    for (int k = 0; k < N_PEERS; k++) {
        sources[k] = before(k + 1);
        destinations[k] = after(k + 1);
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, N_PEERS, sources, MPI_UNWEIGHTED, N_PEERS,
                                   destinations, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--how", "--rounds", "--every", "--copy", "--then", NULL};
    MPI_Win window;

    test_start(&argc, &argv, known);
    rank = test_rank();
    n_ranks = test_size();
    enum way way =
        (enum way)test_find_name(test_option_text(argc, argv, "--how", "wait"), names, NULL);
    int n_rounds = (int)test_option(argc, argv, "--rounds", 400);
    every = (int)test_option(argc, argv, "--every", 3);
    if (n_ranks <= N_PEERS || n_ranks > MOST_RANKS || every < 1)
        MPI_Abort(MPI_COMM_WORLD, 2);
    if (way == MEMORY)
        share_memory(&window);
    reduces = MPI_COMM_WORLD;
    if (test_flag(argc, argv, "--copy"))
        MPI_Comm_dup(MPI_COMM_WORLD, &reduces);
    make_graph();
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
    for (int k = 0; k < BEFORE; k++)
        MPI_Barrier(reduces);
    for (int number = 1; number <= n_rounds; number++)
        one_round(number, way);
    for (int number = 1; number <= n_rounds && test_flag(argc, argv, "--then"); number++) {
        one_round(number, WAIT);
        MPI_Barrier(number % 2 == 0 ? MPI_COMM_WORLD : reduces);
    }
    MPI_Comm_free(&pair);
    MPI_Comm_free(&graph);
    if (reduces != MPI_COMM_WORLD)
        MPI_Comm_free(&reduces);
    if (way == MEMORY)
        MPI_Win_free(&window);
    return test_finish();
}
