/* A common start of all ranks, for programs that time an exchange by its slowest rank. */
#ifndef BENCH_TOGETHER_H
#define BENCH_TOGETHER_H

#include <mpi.h>

/*
 * Return on all ranks of comm at one instant where clocks and sleep are exact, as they are when
 * simulated; elsewhere when they leave a barrier. Collective.
 */
void bench_start_together(MPI_Comm comm);

#endif
