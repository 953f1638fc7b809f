/*
 * Ranks without neighbours skip neighborhood collectives, as PETSc's do ("-sf_type neighbor"): the
 * others need not wait for them. All ranks make, copy and free the communicator.
 *
 *   isolated blocking      the neighborhood collectives of each kind
 *   isolated nonblocking   the same, started
 *   isolated persistent    persistent ones, made by those that have neighbours
 *   isolated copied        blocking ones on a copy, made by MPI_Comm_dup and MPI_Comm_idup
 *   isolated coming        the ranks without neighbours come all the same, and then all ranks
 *                          reduce on the graph without blocking
 *   isolated graph         the graph is one of MPI_Graph_create
 *   isolated between       collectives of all ranks on the graph come between
 *   isolated many          so many graphs that MPI has few communicators left
 */
#include "promise.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS 40
#define MANY   1900

static MPI_Comm graph;
static int degree, peer[2];
static int out[2], in[2], one[2] = {1, 1}, at[2] = {0, 1};
static MPI_Aint bytes[2] = {0, sizeof(int)};
static MPI_Datatype types[2];

static bool has_neighbours(int rank)
{
    return rank % 3 != 0;
}

/* The next rank that has neighbours, going up or down. */
static int next(int rank, int by)
{
    do {
        rank = (rank + by + n_ranks) % n_ranks;
    } while (!has_neighbours(rank));
    return rank;
}

static void make_graph(void)
{
    degree = has_neighbours(me) ? 2 : 0;
    peer[0] = next(me, n_ranks - 1);
    peer[1] = next(me, 1);
    types[0] = types[1] = MPI_INT;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, peer, MPI_UNWEIGHTED, degree, peer,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
}

static void put(int round)
{
    for (int k = 0; k < 2; k++) {
        out[k] = me * 1000 + round * 10 + k;
        in[k] = -1;
    }
}

/* Where both neighbours are one rank MPI pairs the edges as it likes. */
static void check(int round, bool same)
{
    for (int k = 0; k < degree && peer[0] != peer[1]; k++)
        expect_int(in[k], peer[k] * 1000 + round * 10 + (same ? 0 : 1 - k), "from a neighbour");
}

/* Something that all ranks come to, as programs do. */
static void all_together(int round)
{
    int sum = 0;
    MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect_int(sum, round * n_ranks, "sum");
}

static void call(MPI_Comm comm, int kind)
{
    if (kind == 0)
        MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm);
    else if (kind == 1)
        MPI_Neighbor_alltoallv(out, one, at, MPI_INT, in, one, at, MPI_INT, comm);
    else if (kind == 2)
        MPI_Neighbor_alltoallw(out, one, bytes, types, in, one, bytes, types, comm);
    else if (kind == 3)
        MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, comm);
    else
        MPI_Neighbor_allgatherv(out, 1, MPI_INT, in, one, at, MPI_INT, comm);
}

static void exchange(MPI_Comm comm, bool all_come)
{
    for (int kind = 0; kind < 5; kind++)
        for (int round = 0; round < ROUNDS; round++) {
            put(round);
            if (degree > 0 || all_come) {
                call(comm, kind);
                check(round, kind >= 3);
            }
            if (round % 4 == 3)
                all_together(round);
        }
}

static void blocking(void)
{
    make_graph();
    exchange(graph, false);
    MPI_Comm_free(&graph);
}

static void coming(void)
{
    MPI_Request request;
    int sum = 0;
    make_graph();
    exchange(graph, true);
    for (int round = 0; round < ROUNDS; round++) {
        put(round);
        MPI_Ineighbor_alltoallv(out, one, at, MPI_INT, in, one, at, MPI_INT, graph, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(round, false);
        all_together(round);
    }
    MPI_Iallreduce(&me, &sum, 1, MPI_INT, MPI_SUM, graph, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_int(sum, n_ranks * (n_ranks - 1) / 2, "sum on the graph");
    MPI_Barrier(graph);
    MPI_Comm_free(&graph);
}

static void copied(void)
{
    MPI_Comm copies[2];
    MPI_Request request;
    make_graph();
    MPI_Comm_dup(graph, &copies[0]);
    MPI_Comm_idup(graph, &copies[1], &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&graph);
    for (int k = 0; k < 2; k++) {
        exchange(copies[k], false);
        MPI_Comm_free(&copies[k]);
    }
}

static void nonblocking(void)
{
    MPI_Request request;
    make_graph();
    for (int round = 0; round < 4 * ROUNDS; round++) {
        put(round);
        if (degree > 0) {
            MPI_Ineighbor_alltoallv(out, one, at, MPI_INT, in, one, at, MPI_INT, graph, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            check(round, false);
        }
        all_together(round);
    }
    MPI_Comm_free(&graph);
}

#if MPI_VERSION >= 4
static void persistent(void)
{
    MPI_Request request;
    make_graph();
    if (degree > 0)
        MPI_Neighbor_alltoallv_init(out, one, at, MPI_INT, in, one, at, MPI_INT, graph,
                                    MPI_INFO_NULL, &request);
    for (int round = 0; round < ROUNDS; round++) {
        put(round);
        if (degree > 0) {
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            check(round, false);
        }
        all_together(round);
    }
    if (degree > 0)
        MPI_Request_free(&request);
    MPI_Comm_free(&graph);
}
#else
static void persistent(void)
{
}
#endif

static void of_graph(void)
{
    int index[MAX_RANKS], edges[2 * MAX_RANKS], n = 0;
    for (int r = 0; r < n_ranks; r++) {
        if (has_neighbours(r)) {
            edges[n++] = next(r, n_ranks - 1);
            edges[n++] = next(r, 1);
        }
        index[r] = n;
    }
    degree = has_neighbours(me) ? 2 : 0;
    peer[0] = next(me, n_ranks - 1);
    peer[1] = next(me, 1);
    types[0] = types[1] = MPI_INT;
    MPI_Graph_create(MPI_COMM_WORLD, n_ranks, index, edges, 0, &graph);
    exchange(graph, false);
    MPI_Comm_free(&graph);
}

static void between(void)
{
    make_graph();
    for (int round = 0; round < 60 * ROUNDS; round++) {
        int sum = 0;
        MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, graph);
        expect_int(sum, round * n_ranks, "sum on the graph");
        for (int k = 0; k < round % 4 && degree > 0; k++) {
            put(round);
            call(graph, 1);
            check(round, false);
        }
    }
    MPI_Comm_free(&graph);
}

static void many(void)
{
    static MPI_Comm made[MANY];
    for (int k = 0; k < MANY; k++) {
        make_graph();
        made[k] = graph;
        for (int round = 0; round < 6 && k % 100 == 0; round++) {
            put(round);
            call(made[k], 1);
            check(round, false);
        }
    }
    for (int k = 0; k < MANY; k++) {
        put(k);
        call(made[k], 1);
        check(k, false);
        MPI_Comm_free(&made[k]);
    }
}

int main(int argc, char **argv)
{
    const struct promise_case cases[] = {{"blocking", blocking},     {"coming", coming},
                                         {"copied", copied},         {"nonblocking", nonblocking},
                                         {"persistent", persistent}, {"graph", of_graph},
                                         {"between", between},       {"many", many}};
    return promise_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
