/* Functions of MPI 4 and 4.1 that the library calls, for MPIs that lack them (MPICH 3: Debian 11,
 * Cray MPICH 8), by those that these have. */
#ifndef CARPOOL_OLDER_H
#define CARPOOL_OLDER_H

#include "shim/bind/find.h"

/* What stands for PMPI_NAME; NULL: nothing does. A count that does not fit into an int is refused
 * with MPI_ERR_COUNT: no program of such an MPI can ask for one. Local. */
cpl_function *cpl_older(const char *name);

#endif
