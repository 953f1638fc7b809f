/* Functions for all ranks together (together.h). */
#include "together.h"

#ifdef CPL_SIMULATED
#include <time.h>

/* Until all have left the reduction, also where another library enters it over a barrier. */
#define SECONDS 2e-4

void bench_start_together(MPI_Comm comm)
{
    double now = MPI_Wtime(), latest;

    MPI_Allreduce(&now, &latest, 1, MPI_DOUBLE, MPI_MAX, comm);
    struct timespec wait = {0, (long)((latest + SECONDS - MPI_Wtime()) * 1e9)};
    nanosleep(&wait, NULL);
}
#else
void bench_start_together(MPI_Comm comm)
{
    MPI_Barrier(comm);
}
#endif

void bench_slowest(double *values, size_t n, MPI_Comm comm)
{
    int rank;

    MPI_Comm_rank(comm, &rank);
    MPI_Reduce(rank == 0 ? MPI_IN_PLACE : values, values, (int)n, MPI_DOUBLE, MPI_MAX, 0, comm);
}

uint64_t bench_sum(uint64_t mine, MPI_Comm comm)
{
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_UINT64_T, MPI_SUM, comm);
    return mine;
}
