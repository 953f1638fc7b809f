/* Adds 1 to an element of each other rank with libcarpool_array, and reads the own ones back.
 *
 *   mpicc.mpich array_sum.c $(pkg-config --cflags --libs carpool_array) -o array_sum
 *   mpiexec.hydra -n 4 ./array_sum */
#include <carpool/carpool_array.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct carpool_array_options options = CARPOOL_ARRAY_OPTIONS;
    carpool_array *array;
    int64_t sum = -1, one = 1;
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    options.policy = CARPOOL_ARRAY_SUM;
    options.type = MPI_INT64_T;
    carpool_array_create(MPI_COMM_WORLD, size, sizeof one, &options, &array);
    for (int to = 0; to < size; to++)
        carpool_array_write(array, to, &one); /* queued; the step adds them up on the way */
    carpool_array_read(array, rank, &sum);
    carpool_array_step(array);
    if (sum != size)
        printf("rank %d: wrong, %lld\n", rank, (long long)sum);
    else if (rank == 0)
        printf("%d ranks: each element is %lld\n", size, (long long)sum);
    carpool_array_free(&array);
    MPI_Finalize();
    return sum != size;
}
