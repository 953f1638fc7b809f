/* What a call of each function goes to (tables/functions.h).
 *
 * By MPI_NAME the program calls what was found out at its first call: the library's wrapper where
 * the library serves the MPI, its other build where that does, and else what the program would get
 * without the library. By PMPI_NAME it gets the same where one of them serves the MPI, unless MPI
 * or the library makes the call. These functions take and give words (tables/words.h), so a foreign
 * MPI gets its own arguments.
 *
 * The library's files call MPI by PMPI_NAME, which is cpl_real_MPI_NAME in them. Each is looked up
 * when it is first called; what an MPI of before MPI 4 lacks is done by what it has (find.h).
 *
 * Cost: an indirect jump, as for any function of another library. Threads that race store the same
 * address. */
#include "shim/base/log.h"
#include "shim/bind/find.h"
#include "shim/calls/start.h"
#include "shim/tables/words.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default"), noinline))

static int missing(void)
{
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

static bool left;

void cpl_exports_leave(void)
{
    left = true;
}

static bool is_left(const char *name)
{
    return left && strcmp(name, "MPI_Finalize") != 0 && strcmp(name, "MPI_Query_thread") != 0;
}

/* What to call for PMPI_NAME. */
static cpl_function *look_up(const char *name)
{
    cpl_function *found = cpl_find_next(name);
    if (!found)
        found = cpl_older(name);
    if (!found) {
        cpl_log(CPL_LOG_ERROR, "bind", "this MPI has no %s", name);
        found = (cpl_function *)missing;
    }
    return found;
}

/* What a call of MPI_NAME goes to, own being the library's wrapper; *final: from now on. */
static cpl_function *destination(const char *p_name, cpl_function *own, bool *final)
{
    const char *name = p_name + 1;
    cpl_function *found = NULL;
    enum cpl_mpi mpi = cpl_find_mpi();
    *final = mpi != CPL_MPI_NONE;
    if (mpi == CPL_MPI_SERVED)
        found = is_left(name) ? look_up(p_name) : own;
    else if (mpi == CPL_MPI_OTHER)
        found = cpl_find_other(name);
    if (!found)
        found = cpl_find_next(name);
    if (!found)
        cpl_log(CPL_LOG_ERROR, "bind", "%s is in no library that comes after this one", name);
    return found ? found : (cpl_function *)missing;
}

#define CALL(which, prefix, name, n)                                                               \
    ((cpl_word(*)(CPL_TAKES(n)))cpl_calls[CPL_CALL_##prefix##_##name][which])(CPL_GIVES(n))
#define STORE(which, prefix, name, function)                                                       \
    __atomic_store_n(&cpl_calls[CPL_CALL_##prefix##_##name][which], function, __ATOMIC_RELAXED)

#define REAL(prefix, name, n)                                                                      \
    static cpl_word first_real_##prefix##_##name(CPL_TAKES(n))                                     \
    {                                                                                              \
        STORE(CPL_MPIS, prefix, name, look_up("P" #prefix "_" #name));                             \
        return CALL(CPL_MPIS, prefix, name, n);                                                    \
    }                                                                                              \
    cpl_word cpl_real_##prefix##_##name(CPL_TAKES(n));                                             \
    cpl_word cpl_real_##prefix##_##name(CPL_TAKES(n))                                              \
    {                                                                                              \
        return CALL(CPL_MPIS, prefix, name, n);                                                    \
    }
#define WORDS(prefix, name, n)                                                                     \
    REAL(prefix, name, n)                                                                          \
    cpl_word cpl_own_##prefix##_##name(CPL_TAKES(n));                                              \
    static cpl_word first_##prefix##_##name(CPL_TAKES(n))                                          \
    {                                                                                              \
        bool final;                                                                                \
        cpl_function *to =                                                                         \
            destination("P" #prefix "_" #name, (cpl_function *)cpl_own_##prefix##_##name, &final); \
        if (final)                                                                                 \
            STORE(CPL_PROGRAMS, prefix, name, to);                                                 \
        return ((cpl_word(*)(CPL_TAKES(n)))to)(CPL_GIVES(n));                                      \
    }                                                                                              \
    EXPORT CPL_PASSED cpl_word cpl_export_##prefix##_##name(CPL_TAKES(n)) __asm__(#prefix          \
                                                                                  "_" #name);      \
    EXPORT cpl_word cpl_export_##prefix##_##name(CPL_TAKES(n))                                     \
    {                                                                                              \
        return CALL(CPL_PROGRAMS, prefix, name, n);                                                \
    }                                                                                              \
    EXPORT cpl_word cpl_profiled_##prefix##_##name(CPL_TAKES(n)) __asm__("P" #prefix "_" #name);   \
    EXPORT cpl_word cpl_profiled_##prefix##_##name(CPL_TAKES(n))                                   \
    {                                                                                              \
        if (!cpl_find_serves((uintptr_t)__builtin_return_address(0)))                              \
            return CALL(CPL_MPIS, prefix, name, n);                                                \
        return CALL(CPL_PROGRAMS, prefix, name, n);                                                \
    }
#include "shim/tables/functions.def"
#define USES(name, parameters) REAL(MPI, name, CPL_COUNT parameters)
#include "shim/tables/used.def"

/* Both in one line of memory: a call that passes needs both. */
_Alignas(64) cpl_function *cpl_calls[CPL_N_CALLS][CPL_N_CALLED] = {
#define WORDS(prefix, name, n)                                                                     \
    [CPL_CALL_##prefix##_##name] = {(cpl_function *)first_##prefix##_##name,                       \
                                    (cpl_function *)first_real_##prefix##_##name},
#include "shim/tables/functions.def"
#define USES(name, parameters)                                                                     \
    [CPL_CALL_MPI_##name] = {NULL, (cpl_function *)first_real_MPI_##name},
#include "shim/tables/used.def"
};

double cpl_real_MPI_Wtime(void);
double cpl_real_MPI_Wtime(void)
{
    static double (*real)(void);
    if (!real)
        real = (double (*)(void))look_up("PMPI_Wtime");
    return real();
}
