/* What the library calls of its lock (shim/state/service.h) in tests of other parts, whose programs
 * have one thread: nothing of it is to be reached. */
#include "shim/state/service.h"

#include <stdlib.h>

void cpl_service_lock(void)
{
    abort();
}

void cpl_service_unlock(void)
{
    abort();
}

int cpl_service_step_out(void)
{
    abort();
}

void cpl_service_step_in(int depth)
{
    (void)depth;
    abort();
}

void *cpl_service_me(void)
{
    abort();
}
