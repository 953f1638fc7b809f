/* Calls of Fortran programs that use the mpi_f08 module. Its binding makes the calls of f08.def by
 * their PMPI_ names, so the library exports these too (f08.c). When the binding calls such a
 * function, it calls the MPI_ name, which the library intercepts; when anybody else does, above all
 * MPICH, it calls the real one.
 *
 * The library's own calls must not reach these exports. Some are tail calls of a wrapper, which are
 * jumps, so they would seem to come from the wrapper's caller. This header, which the Makefile
 * includes in all files, gives the PMPI_ functions of f08.def another symbol, cpl_real_NAME, which
 * calls the real one; tests/check_exports.sh holds that no file escapes. Cost: an indirect jump. */
#ifndef CARPOOL_F08_H
#define CARPOOL_F08_H

#include <mpi.h>

#define VIA_PMPI(name, parameters, arguments)                                                      \
    extern __typeof__(PMPI_##name) PMPI_##name __asm__("cpl_real_" #name);
#define STARTS VIA_PMPI
#include "shim/tables/f08.def"

#endif
