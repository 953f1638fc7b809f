/* The functions of MPI that the library's files call: PMPI_NAME is cpl_real_MPI_NAME there
 * (tables/functions.h). Each is looked up when it is first called; what an MPI of before MPI 4
 * lacks is done by what it has (find.h).
 *
 * Cost: an indirect jump, as for any function of another library. */
#include "shim/base/log.h"
#include "shim/bind/find.h"
#include "shim/tables/words.h"

#include <mpi.h>

static int missing(void)
{
    return MPI_ERR_UNSUPPORTED_OPERATION;
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

/* Threads that race store the same address. */
#define REAL(prefix, name, n)                                                                      \
    static cpl_word first_##prefix##_##name(CPL_TAKES(n));                                         \
    static cpl_word (*real_##prefix##_##name)(CPL_TAKES(n)) = first_##prefix##_##name;             \
    static cpl_word first_##prefix##_##name(CPL_TAKES(n))                                          \
    {                                                                                              \
        cpl_function *found = look_up("P" #prefix "_" #name);                                      \
        __atomic_store_n(&real_##prefix##_##name, (cpl_word(*)(CPL_TAKES(n)))found,                \
                         __ATOMIC_RELAXED);                                                        \
        return real_##prefix##_##name(CPL_GIVES(n));                                               \
    }                                                                                              \
    CPL_PASSED cpl_word cpl_real_##prefix##_##name(CPL_TAKES(n));                                  \
    cpl_word cpl_real_##prefix##_##name(CPL_TAKES(n))                                              \
    {                                                                                              \
        return real_##prefix##_##name(CPL_GIVES(n));                                               \
    }
#define WORDS(prefix, name, n) REAL(prefix, name, n)
#include "shim/tables/functions.def"
#define USES(name, parameters) REAL(MPI, name, CPL_COUNT parameters)
#include "shim/tables/used.def"

double cpl_real_MPI_Wtime(void);
double cpl_real_MPI_Wtime(void)
{
    static double (*real)(void);
    if (!real)
        real = (double (*)(void))look_up("PMPI_Wtime");
    return real();
}
