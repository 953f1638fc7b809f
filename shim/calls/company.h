/* Whether all ranks of MPI_COMM_WORLD run with the library: where only some do (a launcher line of
 * several programs, a script), those must not wait for the others. They find out by the process
 * manager's table of keys (PMI-1, which MPICH's hydra speaks): each rank puts a key before MPI_Init
 * and reads those of its neighbours in a tree after it. Without such a manager all are taken to
 * have it. Cost: some requests to the local manager at MPI_Init, as many as log2(ranks). */
#ifndef CARPOOL_COMPANY_H
#define CARPOOL_COMPANY_H

#include <stdbool.h>

/* Before MPI is initialised. */
void cpl_company_announce(void);

/* After: the same answer on all ranks that have the library. Collective over those. */
bool cpl_company_is_complete(int rank, int n_ranks);

/* Whether this rank says so where it is not: the first one of several in a row. Local. */
bool cpl_company_speaks(int rank);

#endif
