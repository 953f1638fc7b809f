/*
 * A program for any MPI: some calls of each family that the library knows, and what they gave. Rank
 * 0 prints it; run-version.sh compares runs with and without the library.
 */
#include <mpi.h>
#include <stdio.h>

#define N_CALLS 20

static int rank, n_ranks, total;

static void exchange(void) /* a ring of messages, to both sides */
{
    int left = (rank + n_ranks - 1) % n_ranks, right = (rank + 1) % n_ranks;
    int sent[2] = {rank, rank + 100}, got[2] = {0, 0};
    MPI_Request request[4];

    MPI_Irecv(&got[0], 1, MPI_INT, left, 1, MPI_COMM_WORLD, &request[0]);
    MPI_Irecv(&got[1], 1, MPI_INT, right, 2, MPI_COMM_WORLD, &request[1]);
    MPI_Isend(&sent[0], 1, MPI_INT, right, 1, MPI_COMM_WORLD, &request[2]);
    MPI_Isend(&sent[1], 1, MPI_INT, left, 2, MPI_COMM_WORLD, &request[3]);
    MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
    MPI_Sendrecv(&got[0], 1, MPI_INT, right, 3, &sent[0], 1, MPI_INT, left, 3, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    total += 3 * got[0] + 5 * got[1] + 7 * sent[0];
}

static void gather(MPI_Comm ring) /* from the neighbors */
{
    int sent[2] = {rank, 10 * rank}, got[2] = {0, 0}, all = 0;
    MPI_Request request;

    MPI_Neighbor_alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, ring);
    total += 11 * got[0] + 13 * got[1];
    MPI_Ineighbor_allgather(sent, 1, MPI_INT, got, 1, MPI_INT, ring, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    total += 17 * got[0] + 19 * got[1];
    MPI_Allreduce(&total, &all, 1, MPI_INT, MPI_BXOR, MPI_COMM_WORLD);
    total += all % 1000;
}

int main(int argc, char **argv)
{
    MPI_Comm ring;
    int provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    int peers[2] = {(rank + n_ranks - 1) % n_ranks, (rank + 1) % n_ranks};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, peers, MPI_UNWEIGHTED, 2, peers,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
    for (int i = 0; i < N_CALLS; i++) {
        exchange();
        gather(ring);
    }
    MPI_Comm_free(&ring);
    int sum = 0;
    MPI_Reduce(&total, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks, %d\n", n_ranks, sum);
    MPI_Finalize();
    return 0;
}
