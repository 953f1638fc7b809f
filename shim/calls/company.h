/* Whether all ranks of MPI_COMM_WORLD run with the library. If only some do (a launcher line of
 * several programs, a script), these must not wait for the others. They find out by the process
 * manager's table of keys (PMI-1, which MPICH's hydra speaks): each rank puts a key before
 * MPI_Init, and after it reads the keys of its neighbours in a tree. Without such a manager all
 * ranks are assumed to have the library. Cost: about log2(ranks) requests to the local manager at
 * MPI_Init. */
#ifndef CARPOOL_COMPANY_H
#define CARPOOL_COMPANY_H

#include <stdbool.h>

/* Puts this rank's key; called before MPI is initialised. */ void cpl_company_announce(void);

/* Whether all ranks have the library; called after MPI was initialised. The same answer on all
 * ranks that have the library, and collective over those. */
bool cpl_company_is_complete(int rank, int n_ranks);

/* Whether this rank is to tell that some ranks lack the library: the first one that has it.
 * Local. */
bool cpl_company_speaks(int rank);

#endif
