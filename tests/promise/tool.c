/*
 * Tools: the program defines some functions of MPI itself, in front of the library, and calls the
 * others by MPI_ and by PMPI_ names.
 *
 *   tool MPI|PMPI|mixed [ROUNDS]     the names by which it calls; mixed: now these, now those
 */
#include "promise.h"

#include <stdint.h>

static char names = 'm'; /* the first letter of the argument */
static long n_seen;      /* calls that the program's own functions have seen */

int MPI_Barrier(MPI_Comm comm)
{
    n_seen++;
    return PMPI_Barrier(comm);
}

int MPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[])
{
    n_seen++;
    return PMPI_Waitall(n, requests, statuses);
}

int MPI_Irecv(void *buffer, int n, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    n_seen++;
    return PMPI_Irecv(buffer, n, type, source, tag, comm, request);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
{
    n_seen++;
    return PMPI_Comm_dup(comm, made);
}

int MPI_Finalize(void)
{
    n_seen++;
    return PMPI_Finalize();
}

static bool by_pmpi(int round, int call)
{
    uint32_t hash = (uint32_t)(round * 131 + call * 31 + me * 7) * 2654435761u;
    switch (names) {
    case 'M':
        return false;
    case 'P':
        return true;
    default:
        return hash >> 16 & 1;
    }
}

#define CALL(number, name, ...)                                                                    \
    (by_pmpi(round, number) ? PMPI_##name(__VA_ARGS__) : MPI_##name(__VA_ARGS__))

/* To and from the next four ranks, in messages. */
static void messages(MPI_Comm comm, int round)
{
    int out[8][3], in[8][3], n = n_ranks - 1 < 4 ? n_ranks - 1 : 4;
    MPI_Request requests[8];
    for (int k = 0; k < n; k++)
        CALL(k, Irecv, in[k], 3, MPI_INT, beside(-1 - k), k, comm, &requests[k]);
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < 3; i++)
            out[k][i] = me * 1000 + round * 10 + k + i;
        if (k == 3)
            CALL(10, Send, out[k], 3, MPI_INT, beside(1 + k), k, comm);
        else
            CALL(10 + k, Isend, out[k], 3, MPI_INT, beside(1 + k), k, comm, &requests[n + k]);
    }
    CALL(20, Waitall, n == 4 ? 7 : 2 * n, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < 3; i++)
            expect_int(in[k][i], beside(-1 - k) * 1000 + round * 10 + k + i, "a message");
}

/* The same as a neighborhood collective of one of its forms. */
static void neighbors(MPI_Comm graph, int round)
{
    int n = n_ranks - 1 < 4 ? n_ranks - 1 : 4;
    int out[4], in[4], ones[4] = {1, 1, 1, 1}, at[4] = {0, 1, 2, 3};
    MPI_Request request;
    for (int k = 0; k < n; k++)
        out[k] = me * 1000 + round * 10 + k;
    if (round % 3 == 2) {
        CALL(30, Ineighbor_alltoallv, out, ones, at, MPI_INT, in, ones, at, MPI_INT, graph,
             &request);
        CALL(31, Wait, &request, MPI_STATUS_IGNORE);
    } else {
        CALL(32, Neighbor_alltoallv, out, ones, at, MPI_INT, in, ones, at, MPI_INT, graph);
    }
    for (int k = 0; k < n; k++)
        expect_int(in[k], beside(-1 - k) * 1000 + round * 10 + k, "a neighbour's");
}

static void collectives(MPI_Comm comm, int round)
{
    int mine = me + round, sum, all[MAX_RANKS];
    CALL(40, Allreduce, &mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect_int(sum, n_ranks * (n_ranks - 1) / 2 + n_ranks * round, "a sum");
    if (round % 4 == 1) {
        CALL(41, Allgather, &mine, 1, MPI_INT, all, 1, MPI_INT, comm);
        expect_int(all[n_ranks - 1], n_ranks - 1 + round, "the last rank's");
    }
    if (round % 5 == 4) {
        nap((me + round) % 4 == 0 ? 0.003 : 0);
        CALL(42, Barrier, comm);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm graph, comm;
    int from[4], to[4], round = 0;
    promise_start(&argc, &argv);
    if (argc > 1)
        names = argv[1][0];
    long n_rounds = option(0, 300);
    int n = n_ranks - 1 < 4 ? n_ranks - 1 : 4;
    for (int k = 0; k < n; k++) {
        to[k] = beside(1 + k);
        from[k] = beside(-1 - k);
    }
    CALL(50, Comm_dup, MPI_COMM_WORLD, &comm);
    CALL(51, Dist_graph_create_adjacent, comm, n, from, MPI_UNWEIGHTED, n, to, MPI_UNWEIGHTED,
         MPI_INFO_NULL, 0, &graph);
    for (; round < n_rounds; round++) {
        messages(comm, round);
        neighbors(graph, round);
        collectives(comm, round);
    }
    CALL(52, Comm_free, &graph);
    CALL(53, Comm_free, &comm);
    say("%ld rounds, %s calls seen by the program's own functions\n", n_rounds,
        n_seen > 0 ? "some" : "no");
    return promise_finish();
}
