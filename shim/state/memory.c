/* Memory that a rank cannot do without (memory.h). */
#include "shim/state/memory.h"

#include "shim/base/log.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PUT_BY  (96 << 10) /* bytes: enough for a communicator, too few for malloc to map apart */
#define AT_ONCE 1000       /* tries without waiting, and as many with */

static void *put_by;

void cpl_memory_wait(int *tries, const char *what)
{
    cpl_memory_free();
    if (++*tries > AT_ONCE)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (*tries < 2 * AT_ONCE)
        return;
    cpl_log(CPL_LOG_ERROR, "memory",
            "no memory for %s; other ranks would wait for this one for ever, so the program ends; "
            "give it more memory, or set CARPOOL_MODE=off",
            what);
    /* so that the launcher passes the message on before it ends all processes */
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    PMPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

void *cpl_memory_grow(void *memory, size_t bytes, const char *what)
{
    void *grown;
    int tries = 0;
    while (!(grown = realloc(memory, bytes)))
        cpl_memory_wait(&tries, what);
    return grown;
}

void *cpl_memory_need(size_t bytes, const char *what)
{
    return memset(cpl_memory_grow(NULL, bytes, what), 0, bytes);
}

void cpl_memory_put_by(void)
{
    if (!put_by)
        put_by = malloc(PUT_BY);
}

void cpl_memory_free(void)
{
    free(put_by);
    put_by = NULL;
}
