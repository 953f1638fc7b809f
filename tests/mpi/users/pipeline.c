/*
 * A program as users write it: blocks of data run through all ranks, each of which works on them.
 *
 *   pipeline [BLOCKS [NUMBERS]]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    int n_blocks = argc > 1 ? atoi(argv[1]) : 300, n = argc > 2 ? atoi(argv[2]) : 64;
    double *block = calloc((size_t)n + 1, sizeof *block), sum = 0, all = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int b = 0; b < n_blocks; b++) {
        for (int k = 0; k < n && rank == 0; k++)
            block[k] = (b * 31 + k * 7) % 101;
        if (rank > 0)
            MPI_Recv(block, n, MPI_DOUBLE, rank - 1, b % 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int k = 0; k < n; k++)
            block[k] = block[k] * 0.5 + block[(k + 1) % n] * 0.25 + rank;
        if (rank < size - 1)
            MPI_Send(block, n, MPI_DOUBLE, rank + 1, b % 3, MPI_COMM_WORLD);
        sum += block[b % n];
    }
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d blocks, largest sum %.17g\n", n_blocks, all);
    free(block);
    MPI_Finalize();
    return 0;
}
