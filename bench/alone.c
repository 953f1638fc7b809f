/* MPI's own functions (alone.h). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include "alone.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <string.h>

alone_function *alone_find(const char *name, alone_function *otherwise)
{
    static void *mpi;
    Dl_info info;
    /* no tool and no library that carries messages wraps this one */
    if (!mpi && dladdr((void *)(uintptr_t)MPI_Wtick, &info))
        mpi = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    void *found = mpi ? dlsym(mpi, name) : NULL;
    if (found)
        memcpy(&otherwise, &found, sizeof otherwise);
    return otherwise;
}
