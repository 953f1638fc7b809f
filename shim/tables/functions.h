/* MPI's functions as the library declares them, by the prototypes of the tables; shim/Makefile.am
 * includes this header in every file. MPI's own prototypes are left out: they differ from version
 * to version, and old ones lack functions.
 *
 * In the library's objects PMPI_NAME is cpl_real_MPI_NAME, which calls the function of the MPI that
 * is in the process, and MPI_NAME, where a wrapper defines it, is cpl_own_MPI_NAME, which the
 * exported MPI_NAME calls (calls/exports.c). So no object refers to a symbol of MPI, and the
 * library can be loaded into any process. */
#ifndef CARPOOL_FUNCTIONS_H
#define CARPOOL_FUNCTIONS_H

#pragma GCC system_header /* without its prototypes, mpi.h lacks an enum that it names */
#define MPICH_SUPPRESS_PROTOTYPES
#define MPI_PROTO_H_INCLUDED /* the same in MPICH 5 */
#include <mpi.h>

#define REAL(name, parameters) int PMPI_##name parameters __asm__("cpl_real_MPI_" #name);
#define FUNCTION(prefix, name, parameters, arguments)                                              \
    REAL(name, parameters)                                                                         \
    int MPI_##name parameters __asm__("cpl_own_MPI_" #name);
#include "shim/tables/functions.def"
#define WITH_REQUEST(...)                               (__VA_ARGS__, MPI_Request * request)
#define MOVES(name, nonblocking, parameters, arguments) REAL(nonblocking, WITH_REQUEST parameters)
#include "shim/tables/collectives.def"
#define USES  REAL
#define CALLS REAL
#include "shim/tables/used.def"
#undef WITH_REQUEST
#undef REAL
double PMPI_Wtime(void) __asm__("cpl_real_MPI_Wtime");

/* What a call goes to: the program's of MPI_NAME, and to MPI's function. */
enum cpl_called { CPL_PROGRAMS, CPL_MPIS, CPL_N_CALLED };
enum cpl_call {
#define WORDS(prefix, name, n)                        CPL_CALL_##prefix##_##name,
#define FUNCTION(prefix, name, parameters, arguments) WORDS(prefix, name, 0)
#include "shim/tables/functions.def"
#define USES(name, parameters) CPL_CALL_MPI_##name,
#include "shim/tables/used.def"
    CPL_N_CALLS
};
extern __attribute__((visibility("hidden"))) void (*cpl_calls[CPL_N_CALLS][CPL_N_CALLED])(void);

#ifndef MPI_ABI_VERSION
/* Data of MPICH: pointers that stand for a value. */
int *cpl_find_pointer(const char *name);
#define MPI_UNWEIGHTED    cpl_find_pointer("MPI_UNWEIGHTED")
#define MPI_WEIGHTS_EMPTY cpl_find_pointer("MPI_WEIGHTS_EMPTY")
#endif

#endif
