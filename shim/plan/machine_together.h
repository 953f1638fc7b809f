/* The machine that ranks plan for together (plan_together.h): where all of them sit, without a rank
 * that knows it of all others. Mostly nodes are blocks of consecutive ranks, which three reductions
 * find out; then nothing is as long as there are ranks. Else every rank gets all seats. */
#ifndef CARPOOL_MACHINE_TOGETHER_H
#define CARPOOL_MACHINE_TOGETHER_H

#include "planner/machine.h"

#include <mpi.h>
#include <stdbool.h>

/* Costs and the shape of a node are the root's. *in_world: the ranks are those of MPI_COMM_WORLD in
 * its order. The caller frees *machine. Returns the same on all ranks; false (nothing to free): one
 * had no memory. Collective. */
bool cpl_machine_together(MPI_Comm comm, int root, struct cpl_machine *machine, bool *in_world);

#endif
