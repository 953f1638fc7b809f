/* Calls of Fortran programs that use the mpi_f08 module. Its binding makes the calls of f08.def by
 * their PMPI_ names, so the library exports these too (f08.c): called from the binding they are
 * made again by their MPI_ names, which the library intercepts; called by anybody else, MPICH above
 * all, they are the real ones.
 *
 * The library's own calls must not come there. Some are the last thing that a wrapper does, and
 * jump: they would seem to come from the wrapper's caller. This header, which the Makefile includes
 * in all files, gives the PMPI_ functions of f08.def another symbol, cpl_real_NAME, which calls the
 * real one; tests/check_exports.sh holds that no file escapes. Cost: an indirect jump. */
#ifndef CARPOOL_F08_H
#define CARPOOL_F08_H

#include <mpi.h>

#define VIA_PMPI(name, parameters, arguments)                                                      \
    extern __typeof__(PMPI_##name) PMPI_##name __asm__("cpl_real_" #name);
#define STARTS VIA_PMPI
#include "shim/tables/f08.def"

#endif
