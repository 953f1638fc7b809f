/* The intercepted calls. Each fills a descriptor and asks the shim; what the shim does not carry
 * goes to MPI unchanged. Switched off, a call costs one branch. */
#include "context.h"
#include "neighbor.h"

#include <mpi.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int MPI_Init(int *argc, char ***argv)
{
    int result = PMPI_Init(argc, argv);
    if (result == MPI_SUCCESS)
        cpl_context_start();
    return result;
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int result = PMPI_Init_thread(argc, argv, required, provided);
    if (result == MPI_SUCCESS)
        cpl_context_start();
    return result;
}

EXPORT int MPI_Finalize(void)
{
    cpl_context_finish();
    return PMPI_Finalize();
}

#define NEIGHBOR(name, parameters, arguments, ...)                                                 \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        if (!cpl_context.active)                                                                   \
            return PMPI_##name arguments;                                                          \
        struct cpl_neighbor_call call = __VA_ARGS__;                                               \
        int result;                                                                                \
        if (cpl_neighbor_carry(&call, &result))                                                    \
            return result;                                                                         \
        result = PMPI_##name arguments;                                                            \
        cpl_neighbor_passed(&call);                                                                \
        return result;                                                                             \
    }
#include "calls.def"
