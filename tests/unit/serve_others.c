/* What ranks that start nonblocking neighborhood collectives (serve_ranks.h) do not need of the
 * library's other parts. */
#include "serve_ranks.h"

#include "shim/base/log.h"
#include "shim/meet/meeting.h"
#include "shim/report/report.h"
#include "shim/state/describe.h"
#include "shim/state/memory.h"
#include "shim/wait/collective.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct cpl_executor *cpl_exchange_executor(const struct cpl_exchange *exchange, int32_t candidate)
{
    (void)exchange, (void)candidate;
    return NULL;
}

struct cpl_relay *cpl_executor_relay(struct cpl_executor *executor)
{
    (void)executor;
    return NULL;
}

bool cpl_device_is_unreadable(const void *address)
{
    (void)address;
    return false;
}

void cpl_report_add(const struct cpl_record *record)
{
    (void)record;
}

void cpl_progress_update(void)
{
}

bool cpl_collective_of_this_world(MPI_Comm comm)
{
    (void)comm;
    return true;
}

void cpl_comm_state_begin(struct cpl_comm_state *state)
{
    (void)state; /* none is blank */
}

struct cpl_comm_state *cpl_comm_state_find(MPI_Comm comm)
{
    for (struct cpl_comm_state *s = cpl_context.comms.first; s; s = s->next)
        if (s->comm == comm)
            return s;
    return NULL;
}

void cpl_memory_wait(int *tries, const char *what)
{
    (void)what;
    assert_in_range(++*tries, 1, 100);
}

void *cpl_memory_need(size_t bytes, const char *what)
{
    void *memory;
    int tries = 0;
    while (!(memory = calloc(1, bytes)))
        cpl_memory_wait(&tries, what);
    return memory;
}

enum cpl_log_level cpl_log_threshold = CPL_LOG_WARN;

/* Above all: what ranks know of a communicator differs. */
void cpl_log_write(enum cpl_log_level level, const char *component, const char *format, ...)
{
    (void)level;
    fail_msg("%s: %s", component, format);
}
