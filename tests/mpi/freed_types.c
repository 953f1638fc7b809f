/*
 * Datatypes that are freed while receives, sends and persistent requests that use them are still to
 * be completed or started, as MPI allows. Prints sums of what was received.
 *
 *   freed_types [--iterations N]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_PEERS = 3, LENGTH = 8, TAG = 7, TAG_KEPT = 8 };

struct buffers {
    double in[N_PEERS][LENGTH], kept_in[N_PEERS][LENGTH];
    double out[LENGTH];
};

static MPI_Datatype every_other(void)
{
    MPI_Datatype type;
    MPI_Type_vector(LENGTH / 2, 1, 2, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

static int peer(int rank, int size, int distance)
{
    return ((rank + distance) % size + size) % size;
}

static void make_persistent(struct buffers *b, int rank, int size, MPI_Request *requests)
{
    for (int d = 1; d <= N_PEERS; d++) {
        MPI_Datatype type = every_other();
        MPI_Recv_init(b->kept_in[d - 1], 1, type, peer(rank, size, -d), TAG_KEPT, MPI_COMM_WORLD,
                      &requests[d - 1]);
        MPI_Send_init(b->out, 1, type, peer(rank, size, d), TAG_KEPT, MPI_COMM_WORLD,
                      &requests[N_PEERS + d - 1]);
        MPI_Type_free(&type);
    }
}

static void exchange(struct buffers *b, int rank, int size)
{
    MPI_Request requests[2 * N_PEERS];
    MPI_Status statuses[2 * N_PEERS];
    for (int d = 1; d <= N_PEERS; d++) {
        MPI_Datatype type = every_other();
        MPI_Irecv(b->in[d - 1], 1, type, peer(rank, size, -d), TAG, MPI_COMM_WORLD,
                  &requests[d - 1]);
        MPI_Type_free(&type);
    }
    for (int d = 1; d <= N_PEERS; d++) {
        MPI_Datatype type = every_other();
        MPI_Isend(b->out, 1, type, peer(rank, size, d), TAG, MPI_COMM_WORLD,
                  &requests[N_PEERS + d - 1]);
        MPI_Type_free(&type);
    }
    MPI_Waitall(2 * N_PEERS, requests, statuses);
}

static double weigh(double in[N_PEERS][LENGTH])
{
    double sum = 0;
    for (int d = 0; d < N_PEERS; d++)
        for (int i = 0; i < LENGTH; i++)
            sum += in[d][i] * (d * LENGTH + i + 1);
    return sum;
}

int main(int argc, char **argv)
{
    int rank, size, n = 40;
    static struct buffers b;
    MPI_Request kept[2 * N_PEERS];
    MPI_Status statuses[2 * N_PEERS];
    MPI_Init(&argc, &argv);
    if (argc == 3 && strcmp(argv[1], "--iterations") == 0)
        n = (int)strtol(argv[2], NULL, 10);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    make_persistent(&b, rank, size, kept);
    for (int iteration = 0; iteration < n; iteration++) {
        double mine[2], all[2];
        for (int i = 0; i < LENGTH; i++)
            b.out[i] = rank * 100 + iteration + i;
        exchange(&b, rank, size);
        MPI_Startall(2 * N_PEERS, kept);
        MPI_Waitall(2 * N_PEERS, kept, statuses);
        mine[0] = weigh(b.in);
        mine[1] = weigh(b.kept_in);
        MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0)
            printf("iteration %d: %.0f %.0f\n", iteration, all[0], all[1]);
    }
    for (int k = 0; k < 2 * N_PEERS; k++)
        MPI_Request_free(&kept[k]);
    MPI_Finalize();
    return 0;
}
