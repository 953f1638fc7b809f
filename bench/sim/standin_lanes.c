/* Lanes in a simulation (shim/carry/lane.h): simulated ranks are in one process, so any memory is
 * shared; what a node's ranks may share is the shim's to know. Writing and taking a message costs
 * the rank what the machine file says, and a message is there after the lane's latency. */
#include "standin.h"

#include "planner/machine.h"
#include "shim/base/shared_memory.h"
#include "shim/base/work.h"

#include <limits.h>
#include <math.h>
#include <simgrid/engine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* From one look at what has come to the next: the more looks have found nothing, the longer, so
 * that the simulator has fewer events. A wait is at most one part in LOOKS longer by that. */
#define LOOK_NS      25
#define LONG_LOOK_NS 5000
#define LOOKS        50

static const struct cpl_link_cost *lane_cost(void)
{
    static struct cpl_machine_file machine;
    static bool is_read;
    struct cpl_error error;
    if (!is_read) {
        machine = cpl_machine_file_default();
        if (cpl_machine_file_load(getenv("CPL_SIM_MACHINE"), &machine, &error)) {
            fprintf(stderr, "CPL_SIM_MACHINE: %s\n", error.text);
            PMPI_Abort(MPI_COMM_WORLD, 1);
        }
        is_read = true;
    }
    return &machine.costs.lane[CPL_LINK_NODE];
}

static void sleep_us(double us)
{
    struct timespec time = {.tv_nsec = (long)(us * 1e3 + 0.5)};
    if (time.tv_nsec > 0)
        nanosleep(&time, NULL);
}

double cpl_work_lane_sent(int64_t bytes)
{
    const struct cpl_link_cost *cost = lane_cost();
    sleep_us(cost->send_us + cost->ns_per_byte * 1e-3 * (double)bytes);
    return simgrid_get_clock() + cost->latency_us * 1e-6;
}

bool cpl_work_lane_came(double there, int64_t bytes)
{
    const struct cpl_link_cost *cost = lane_cost();
    if (there > simgrid_get_clock())
        return false;
    sleep_us(cost->recv_us + cost->ns_per_byte * 1e-3 * (double)bytes);
    return true;
}

void cpl_work_looked(int n_idle)
{
    double ns = n_idle == 0 ? 0 : LOOK_NS * pow(1 + 1.0 / LOOKS, n_idle);
    cpl_sim_looked();
    sleep_us((ns < LONG_LOOK_NS ? ns : LONG_LOOK_NS) * 1e-3);
}

/* Freed by nobody: other ranks may still look at it. */
void *cpl_shared_make(int64_t bytes, struct cpl_shared_name *name, char why[CPL_SHARED_WHY])
{
    void *memory = aligned_alloc(CPL_SHARED_HEAD, (size_t)((bytes + CPL_SHARED_HEAD - 1) /
                                                           CPL_SHARED_HEAD * CPL_SHARED_HEAD));
    *name = (struct cpl_shared_name){.bytes = bytes};
    if (memory) {
        memset(memory, 0, (size_t)bytes);
        snprintf(name->name, sizeof name->name, "%p", memory);
    } else {
        snprintf(why, CPL_SHARED_WHY, "no memory");
    }
    return memory;
}

void *cpl_shared_attach(const struct cpl_shared_name *name, char why[CPL_SHARED_WHY])
{
    void *memory = NULL;
    (void)why;
    sscanf(name->name, "%p", &memory);
    return memory;
}

/* Each rank has its own. */
long cpl_shared_processors(void)
{
    return LONG_MAX;
}

void cpl_shared_unname(const struct cpl_shared_name *name)
{
    (void)name;
}

void cpl_shared_free(void *memory, int64_t bytes)
{
    (void)memory, (void)bytes;
}
