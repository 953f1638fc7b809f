/* The functions that the program calls: MPI_NAME for every row of the tables, and the PMPI_ names
 * that the mpi_f08 module calls. Each jumps on to what was found out at its first call: to the
 * library's wrapper where the library serves the MPI, to its other build where that does, and else
 * to what the program would get without the library. They take and give words (tables/words.h), so
 * a foreign MPI gets its own arguments.
 *
 * *mpi_f08.* MPICH's binding makes the calls without choice buffers by their PMPI_ names, as MPICH
 * itself does. The return address tells the caller: the binding calls from the text of a library of
 * its own, and checks each result before it returns, so that none of its calls is a jump. A binding
 * that is linked into the program (libmpichfort.a) is not recognised; such a program is left to
 * MPI.
 *
 * Cost: an indirect jump. Thread rule: threads that race store the same address. */
#include "shim/base/log.h"
#include "shim/bind/find.h"
#include "shim/state/context.h"
#include "shim/tables/words.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default"), noinline))

static int missing(void)
{
    return MPI_ERR_OTHER;
}

/* What a call of MPI_NAME goes to, own being the library's wrapper; *final: from now on. */
static cpl_function *destination(const char *name, cpl_function *own, bool *final)
{
    cpl_function *found = NULL;
    enum cpl_mpi mpi = cpl_find_mpi();
    *final = mpi != CPL_MPI_NONE;
    if (mpi == CPL_MPI_SERVED)
        found = own;
    else if (mpi == CPL_MPI_OTHER)
        found = cpl_find_other(name);
    if (!found)
        found = cpl_find_next(name);
    if (!found)
        cpl_log(CPL_LOG_ERROR, "bind", "%s is in no library that comes after this one", name);
    return found ? found : (cpl_function *)missing;
}

/* Whether a call by the binding is the program's: before the start, and while the library or its
 * other build serves it. */
static bool serves(bool starts)
{
    return starts || cpl_context.active || cpl_find_mpi() == CPL_MPI_OTHER;
}

#define WORDS(prefix, name, via, n)                                                                \
    cpl_word cpl_own_##prefix##_##name(CPL_TAKES(n));                                              \
    static cpl_word first_##prefix##_##name(CPL_TAKES(n));                                         \
    static cpl_word (*next_##prefix##_##name)(CPL_TAKES(n)) = first_##prefix##_##name;             \
    static cpl_word first_##prefix##_##name(CPL_TAKES(n))                                          \
    {                                                                                              \
        bool final;                                                                                \
        cpl_function *to =                                                                         \
            destination(#prefix "_" #name, (cpl_function *)cpl_own_##prefix##_##name, &final);     \
        cpl_word (*call)(CPL_TAKES(n)) = (cpl_word(*)(CPL_TAKES(n)))to;                            \
        if (final)                                                                                 \
            __atomic_store_n(&next_##prefix##_##name, call, __ATOMIC_RELAXED);                     \
        return call(CPL_GIVES(n));                                                                 \
    }                                                                                              \
    EXPORT cpl_word cpl_export_##prefix##_##name(CPL_TAKES(n)) __asm__(#prefix "_" #name);         \
    EXPORT cpl_word cpl_export_##prefix##_##name(CPL_TAKES(n))                                     \
    {                                                                                              \
        return next_##prefix##_##name(CPL_GIVES(n));                                               \
    }                                                                                              \
    via(prefix, name, n)
#define VIA_MPI(prefix, name, n)
#define VIA_PMPI(prefix, name, n) BY_BINDING(prefix, name, n, false)
#define STARTS(prefix, name, n)   BY_BINDING(prefix, name, n, true)
#define BY_BINDING(prefix, name, n, starts)                                                        \
    cpl_word cpl_real_##prefix##_##name(CPL_TAKES(n));                                             \
    EXPORT cpl_word cpl_f08_##prefix##_##name(CPL_TAKES(n)) __asm__("P" #prefix "_" #name);        \
    EXPORT cpl_word cpl_f08_##prefix##_##name(CPL_TAKES(n))                                        \
    {                                                                                              \
        if (!serves(starts) || !cpl_find_is_binding((uintptr_t)__builtin_return_address(0)))       \
            return cpl_real_##prefix##_##name(CPL_GIVES(n));                                       \
        return next_##prefix##_##name(CPL_GIVES(n));                                               \
    }
#include "shim/tables/functions.def"
