/* Functions for all ranks together: a common start, for programs that time an exchange by its
 * slowest rank, and combined results. */
#ifndef BENCH_TOGETHER_H
#define BENCH_TOGETHER_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Return on all ranks of comm at one instant if clocks and sleep are exact, as in simulations; else
 * when they leave a barrier. Collective.
 */
void bench_start_together(MPI_Comm comm);

/* On rank 0 of comm, replace each of n values by the largest of all ranks. Collective. */
void bench_slowest(double *values, size_t n, MPI_Comm comm);

/* The sum over all ranks, modulo 2^64. Collective. */
uint64_t bench_sum(uint64_t mine, MPI_Comm comm);

#endif
