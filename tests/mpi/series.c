/*
 * Persistent requests, started together in arrays that change, on a communicator that is MPI's for
 * the time being; every number checked.
 *
 *   series [--seconds S] [--seed S] [--unreceived]
 *
 * In each iteration all ranks start the same messages of a ring, each rank as it likes: as one
 * array, in two, one by one, or in another order. Now and then requests are freed and made anew,
 * with other tags; they get handles that were used before. With --unreceived one message is never
 * received before the end.
 */
#include "common.h"

#include <stdlib.h>
#include <string.h>

#define N_DIRECTIONS 4
#define N_REQUESTS   (2 * N_DIRECTIONS)
#define OTHER_TAG    9999

static const int steps[N_DIRECTIONS] = {-2, -1, 1, 2};
static int tags[N_DIRECTIONS];
static int sent[N_DIRECTIONS], got[N_DIRECTIONS];
static MPI_Request requests[N_REQUESTS]; /* receives, then sends */
static MPI_Comm comm;

static int peer(int d)
{
    return (test_rank() + steps[d] + test_size() * 2) % test_size();
}

/* Number of a message from `from` in direction d. */
static int number(int from, int d, long iteration)
{
    return (int)(test_key((uint64_t)(from * N_DIRECTIONS + d), iteration) % 1000000);
}

static void make(int d)
{
    MPI_Recv_init(&got[d], 1, MPI_INT, peer(N_DIRECTIONS - 1 - d), tags[d], comm, &requests[d]);
    MPI_Send_init(&sent[d], 1, MPI_INT, peer(d), tags[d], comm, &requests[N_DIRECTIONS + d]);
}

static void unmake(int d)
{
    MPI_Request_free(&requests[d]);
    MPI_Request_free(&requests[N_DIRECTIONS + d]);
}

static void start(struct test_rng *rng)
{
    int order[N_REQUESTS];
    MPI_Request shuffled[N_REQUESTS];
    switch (test_below(rng, 4)) {
    case 0:
        MPI_Startall(N_DIRECTIONS, requests);
        MPI_Startall(N_DIRECTIONS, requests + N_DIRECTIONS);
        break;
    case 1:
        for (int k = 0; k < N_REQUESTS; k++)
            MPI_Start(&requests[k]);
        break;
    case 2:
        for (int k = 0; k < N_REQUESTS; k++)
            order[k] = k;
        test_shuffle(rng, N_REQUESTS, order);
        for (int k = 0; k < N_REQUESTS; k++)
            shuffled[k] = requests[order[k]];
        MPI_Startall(N_REQUESTS, shuffled);
        break;
    default:
        MPI_Startall(N_REQUESTS, requests);
    }
}

static void exchange(struct test_rng *rng, long iteration)
{
    for (int d = 0; d < N_DIRECTIONS; d++)
        sent[d] = number(test_rank(), d, iteration);
    start(rng);
    MPI_Waitall(N_REQUESTS, requests, MPI_STATUSES_IGNORE);
    for (int d = 0; d < N_DIRECTIONS; d++)
        if (got[d] != number(peer(N_DIRECTIONS - 1 - d), d, iteration))
            test_fail("iteration %ld: wrong number in direction %d", iteration, d);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--seconds", "--seed", "--unreceived", NULL};
    test_start(&argc, &argv, known);
    struct test_rng rng = {test_key((uint64_t)test_option(argc, argv, "--seed", 1), -1)};
    struct test_rng own_rng = {test_key(rng.state, test_rank())};
    double seconds = (double)test_option(argc, argv, "--seconds", 1), begin = MPI_Wtime();
    bool unreceived = test_flag(argc, argv, "--unreceived");
    int more = 1, last = 0;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int d = 0; d < N_DIRECTIONS; d++) {
        tags[d] = d;
        make(d);
    }
    if (unreceived && test_rank() == 0)
        MPI_Send(&last, 1, MPI_INT, 1, OTHER_TAG, comm);
    for (long iteration = 0; more; iteration++) {
        exchange(&own_rng, iteration);
        int own = MPI_Wtime() - begin < seconds, d = test_below(&rng, N_DIRECTIONS);
        if (test_below(&rng, 40) == 0) { /* another tag of its own residue */
            unmake(d);
            tags[d] = d + N_DIRECTIONS * test_below(&rng, 2);
            make(d);
        }
        MPI_Allreduce(&own, &more, 1, MPI_INT, MPI_MIN, comm);
    }
    for (int d = 0; d < N_DIRECTIONS; d++)
        unmake(d);
    if (unreceived && test_rank() == 1)
        MPI_Recv(&last, 1, MPI_INT, 0, OTHER_TAG, comm, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    return test_finish();
}
