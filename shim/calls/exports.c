/* The functions that the program and its tools call: MPI_NAME and PMPI_NAME for every row of the
 * tables. MPI_NAME jumps on to what was found out at its first call: to the library's wrapper where
 * the library serves the MPI, to its other build where that does, and else to what the program
 * would get without the library. PMPI_NAME does the same where one of them serves the MPI, unless
 * MPI or the library makes the call. They take and give words (tables/words.h), so a foreign MPI
 * gets its own arguments. Cost: an indirect jump. Threads that race store the same address. */
#include "shim/base/log.h"
#include "shim/bind/find.h"
#include "shim/tables/words.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
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

#define WORDS(prefix, name, n)                                                                     \
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
    EXPORT CPL_PASSED cpl_word cpl_export_##prefix##_##name(CPL_TAKES(n)) __asm__(#prefix          \
                                                                                  "_" #name);      \
    EXPORT cpl_word cpl_export_##prefix##_##name(CPL_TAKES(n))                                     \
    {                                                                                              \
        return next_##prefix##_##name(CPL_GIVES(n));                                               \
    }                                                                                              \
    cpl_word cpl_real_##prefix##_##name(CPL_TAKES(n));                                             \
    EXPORT cpl_word cpl_profiled_##prefix##_##name(CPL_TAKES(n)) __asm__("P" #prefix "_" #name);   \
    EXPORT cpl_word cpl_profiled_##prefix##_##name(CPL_TAKES(n))                                   \
    {                                                                                              \
        if (!cpl_find_serves((uintptr_t)__builtin_return_address(0)))                              \
            return cpl_real_##prefix##_##name(CPL_GIVES(n));                                       \
        return next_##prefix##_##name(CPL_GIVES(n));                                               \
    }
#include "shim/tables/functions.def"
