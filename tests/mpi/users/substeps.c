/*
 * A program as users write it: two fields on a ring of ranks. In every step the ranks exchange the
 * borders of the first one; at the start, and then in every third step, those of the second one,
 * too.
 *
 *   substeps [STEPS]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define REACH 3 /* neighbours on each side */
#define FAST  11
#define SLOW  12
#define START 6

static int rank, n_ranks;

static void exchange(double value, int tag, double *in)
{
    MPI_Request requests[4 * REACH];
    int n = 0;

    for (int d = -REACH; d <= REACH; d++)
        if (d != 0)
            MPI_Irecv(in++, 1, MPI_DOUBLE, (rank + d + n_ranks) % n_ranks, tag, MPI_COMM_WORLD,
                      &requests[n++]);
    for (int d = -REACH; d <= REACH; d++)
        if (d != 0)
            MPI_Isend(&value, 1, MPI_DOUBLE, (rank + d + n_ranks) % n_ranks, tag, MPI_COMM_WORLD,
                      &requests[n++]);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static double advance(double value, int tag)
{
    double in[2 * REACH], sum = 0;

    exchange(value, tag, in);
    for (int k = 0; k < 2 * REACH; k++)
        sum += in[k];
    return (value + sum / (2 * REACH)) / 2;
}

int main(int argc, char **argv)
{
    int n_steps = argc > 1 ? atoi(argv[1]) : 60;
    double fast, slow, norm, mine;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    fast = rank % 5;
    slow = rank % 7;
    for (int step = 1; step <= n_steps; step++) {
        fast = advance(fast, FAST);
        if (step <= START || step % 3 == 0)
            slow = advance(slow, SLOW);
        mine = fast > slow ? fast : slow;
        MPI_Allreduce(&mine, &norm, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0)
            printf("step %d largest %.17g\n", step, norm);
    }
    MPI_Finalize();
    return 0;
}
