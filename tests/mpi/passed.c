/*
 * Calls that pass without a look: exchanges that MPI carries, thousands of times, with everything
 * between them that ends a grant on all ranks or on some. The report must have every call.
 *
 *   passed [--iterations N]     (default 2600; five ranks or more)
 *
 * An iteration is an MPI_Neighbor_alltoallv over a ring; each third one has an
 * MPI_Neighbor_allgather on another communicator, which is made anew each 500th; each fifth one an
 * MPI_Alltoallv, the eleventh of these in place, which is MPI's; each seventh one a sum. Before
 * each fifth one odd ranks free a communicator of their own, with which the library forgets where
 * it keeps what it knows of the others. The last quarter has messages and nonblocking calls, too.
 */
#include "common.h"

#include <stdlib.h>

#define N_NEIGHBORS 4
#define TAG         3

static int rank, n_ranks;
static const int distance[N_NEIGHBORS] = {1, 2, -1, -2};

static int at(int from, int by)
{
    return ((from + by) % n_ranks + n_ranks) % n_ranks;
}

static int value(int iteration, int from, int k)
{
    return 100 * iteration + 10 * from + k;
}

/* A ring, in which a rank sends to the given distances, the first n. */
static MPI_Comm ring(int n)
{
    int sources[N_NEIGHBORS], destinations[N_NEIGHBORS];
    MPI_Comm comm;
    for (int k = 0; k < n; k++) {
        sources[k] = at(rank, -distance[k]);
        destinations[k] = at(rank, distance[k]);
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, n, sources, MPI_UNWEIGHTED, n, destinations,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    return comm;
}

static void expect(int found, int expected, const char *what, int iteration)
{
    if (found != expected)
        test_fail("%s, iteration %d: %d instead of %d", what, iteration, found, expected);
}

static void around(MPI_Comm comm, int iteration)
{
    static const int ones[N_NEIGHBORS] = {1, 1, 1, 1}, displs[N_NEIGHBORS] = {0, 1, 2, 3};
    int out[N_NEIGHBORS], in[N_NEIGHBORS];
    for (int k = 0; k < N_NEIGHBORS; k++)
        out[k] = value(iteration, rank, k);
    MPI_Neighbor_alltoallv(out, ones, displs, MPI_INT, in, ones, displs, MPI_INT, comm);
    for (int k = 0; k < N_NEIGHBORS; k++)
        expect(in[k], value(iteration, at(rank, -distance[k]), k), "alltoallv", iteration);
}

static void gather(MPI_Comm comm, int iteration)
{
    int out = value(iteration, rank, 7), in[2];
    MPI_Neighbor_allgather(&out, 1, MPI_INT, in, 1, MPI_INT, comm);
    for (int k = 0; k < 2; k++)
        expect(in[k], value(iteration, at(rank, -distance[k]), 7), "allgather", iteration);
}

/* To the next rank and the one after it only. */
static void all(int iteration, bool in_place, int *words)
{
    int *send_counts = words, *send_displs = words + n_ranks, *counts = words + 2 * n_ranks;
    int *displs = words + 3 * n_ranks, *out = words + 4 * n_ranks, *in = words + 5 * n_ranks;
    for (int r = 0; r < n_ranks; r++) {
        send_counts[r] = r == at(rank, 1) || r == at(rank, 2);
        counts[r] = in_place || r == at(rank, -1) || r == at(rank, -2);
        send_displs[r] = displs[r] = r;
        out[r] = in[r] = value(iteration, rank, r);
    }
    if (in_place)
        MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_INT, in, counts, displs, MPI_INT,
                      MPI_COMM_WORLD);
    else
        MPI_Alltoallv(out, send_counts, send_displs, MPI_INT, in, counts, displs, MPI_INT,
                      MPI_COMM_WORLD);
    for (int r = 0; r < n_ranks; r++)
        expect(in[r], value(iteration, counts[r] ? r : rank, counts[r] ? rank : r), "all",
               iteration);
}

static void sum(MPI_Comm comm, int iteration)
{
    int total;
    MPI_Allreduce(&iteration, &total, 1, MPI_INT, MPI_SUM, comm);
    expect(total, iteration * n_ranks, "sum", iteration);
}

/* What the library knows without a look is forgotten on this rank. */
static void forget(void)
{
    MPI_Comm own;
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    MPI_Barrier(own);
    MPI_Comm_free(&own);
}

static void late(MPI_Comm comm, int iteration)
{
    int out = value(iteration, rank, 5), in, outs[N_NEIGHBORS], ins[N_NEIGHBORS];
    MPI_Request request;
    MPI_Sendrecv(&out, 1, MPI_INT, at(rank, 1), TAG, &in, 1, MPI_INT, at(rank, -1), TAG, comm,
                 MPI_STATUS_IGNORE);
    expect(in, value(iteration, at(rank, -1), 5), "message", iteration);
    for (int k = 0; k < N_NEIGHBORS; k++)
        outs[k] = value(iteration, rank, k);
    MPI_Ineighbor_alltoall(outs, 1, MPI_INT, ins, 1, MPI_INT, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < N_NEIGHBORS; k++)
        expect(ins[k], value(iteration, at(rank, -distance[k]), k), "nonblocking", iteration);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--iterations", NULL};
    test_start(&argc, &argv, known);
    rank = test_rank();
    n_ranks = test_size();
    int n = (int)test_option(argc, argv, "--iterations", 2600);
    int *words = test_alloc((size_t)n_ranks * 6 * sizeof *words);
    MPI_Comm large = ring(N_NEIGHBORS), small = ring(2);

    for (int i = 1; i <= n; i++) {
        if (i % 5 == 0 && rank % 2)
            forget();
        around(large, i);
        if (i % 3 == 0)
            gather(small, i);
        if (i % 5 == 0)
            all(i, i % 55 == 0, words);
        if (i % 7 == 0)
            sum(i % 2 ? large : MPI_COMM_WORLD, i);
        if (i % 500 == 0) {
            MPI_Comm_free(&small);
            small = ring(2);
        }
        if (i > 3 * n / 4 && i % 9 == 0)
            late(large, i);
    }
    MPI_Comm_free(&large);
    MPI_Comm_free(&small);
    free(words);
    return test_finish();
}
