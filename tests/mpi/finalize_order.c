/*
 * Two communicators of all ranks, the second one in reverse order, whose first use comes in another
 * order on odd ranks than on even ones, and that nobody frees: what a library does with them at
 * MPI_Finalize must not wait for the other.
 *
 *   finalize_order [--calls N]
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MPI_Comm make_complete_graph(MPI_Comm base)
{
    int rank, size, n = 0;
    MPI_Comm graph;

    MPI_Comm_rank(base, &rank);
    MPI_Comm_size(base, &size);
    int *others = calloc((size_t)size, sizeof *others);
    if (!others)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < size; i++)
        if (i != rank)
            others[n++] = i;
    MPI_Dist_graph_create_adjacent(base, n, others, MPI_UNWEIGHTED, n, others, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &graph);
    free(others);
    return graph;
}

static void send_to_itself(MPI_Comm comm)
{
    int rank, sent = 1, received;

    MPI_Comm_rank(comm, &rank);
    MPI_Sendrecv(&sent, 1, MPI_INT, rank, 0, &received, 1, MPI_INT, rank, 0, comm,
                 MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, size, n_calls = 5;
    MPI_Comm reversed, graph[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc == 3 && strcmp(argv[1], "--calls") == 0)
        n_calls = atoi(argv[2]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    graph[0] = make_complete_graph(MPI_COMM_WORLD);
    graph[1] = make_complete_graph(reversed);
    send_to_itself(graph[rank % 2]);
    send_to_itself(graph[1 - rank % 2]);

    int *sent = calloc((size_t)size, sizeof *sent), *received = calloc((size_t)size, sizeof *sent);
    int64_t sum = 0;
    if (!sent || !received)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < size; i++)
        sent[i] = 100 * rank + i;
    for (int call = 0; call < n_calls; call++)
        for (int k = 0; k < 2; k++) {
            MPI_Neighbor_alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, graph[k]);
            for (int i = 0; i < size - 1; i++)
                sum = 31 * sum % 1000003 + received[i];
        }
    int64_t all = 0;
    MPI_Reduce(&sum, &all, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%lld\n", (long long)all);
    free(sent);
    free(received);
    MPI_Finalize();
    return 0;
}
