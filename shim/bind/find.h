/* Which MPI is in the process, and where its functions are. Nothing of MPI is called before that is
 * known, but for questions that every MPI answers at any time, without a handle.
 *
 * The MPI is found when a function of it is first called: it may be loaded after the library. */
#ifndef CARPOOL_FIND_H
#define CARPOOL_FIND_H

#include <stdbool.h>
#include <stdint.h>

typedef void cpl_function(void);

enum cpl_mpi {
    CPL_MPI_NONE,    /* there is none yet */
    CPL_MPI_SERVED,  /* its handles and statuses are those that the library was built for */
    CPL_MPI_OTHER,   /* they are those of the library's other build, which serves it */
    CPL_MPI_FOREIGN, /* neither: the library does nothing */
};

/* What is in the process. Local. */
enum cpl_mpi cpl_find_mpi(void);

/* The function that the program would get without the library; NULL: there is none. Looked for
 * behind the library, then in MPI, which a plug-in may have loaded for itself (dlopen with
 * RTLD_LOCAL, as Python does). Local. */
cpl_function *cpl_find_next(const char *name);

/* What stands for PMPI_NAME, a function of MPI 4 that the library itself calls, where MPI lacks it
 * (MPICH 3: Debian 11, Cray MPICH 8); NULL: nothing does. A count that does not fit into an int is
 * refused with MPI_ERR_COUNT: no program of such an MPI can ask for one. Local. */
cpl_function *cpl_older(const char *name);

/* The same in the library's other build, for CPL_MPI_OTHER. Local. */
cpl_function *cpl_find_other(const char *name);

/* All calls of the run are left to MPI: functions that were not called before are MPI's, but for
 * MPI_Finalize and MPI_Query_thread. Local. */
void cpl_find_leave(void);
bool cpl_find_left(const char *name);

/* The value of a pointer that is data of MPI; NULL: there is none. Local. */
int *cpl_find_pointer(const char *name);

/* Whether a call by a PMPI_ name is the program's or a tool's, caller being the address it returns
 * to: not MPI's own, nor the library's; false also where MPI is foreign. Local. */
bool cpl_find_serves(uintptr_t caller);

#endif
