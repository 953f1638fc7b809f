/* The helper thread and the lock (shim/state/service.h) where the ranks of a process are simulated:
 * there are no threads. */
#include "shim/state/context.h"

void cpl_service_begin(void)
{
}

void cpl_service_look(void)
{
}

bool cpl_service_prepare(bool (*work)(void))
{
    (void)work;
    return true;
}

void cpl_service_switch(bool on)
{
    cpl_context.service.on = on;
}

void cpl_service_end(void)
{
}

void cpl_service_wait(void)
{
}

void cpl_service_share(void)
{
}

void cpl_service_lock(void)
{
}

void cpl_service_unlock(void)
{
}

int cpl_service_step_out(void)
{
    return 0;
}

void cpl_service_step_in(int depth)
{
    (void)depth;
}

void cpl_service_give_way(void)
{
}

void *cpl_service_me(void)
{
    return NULL;
}
