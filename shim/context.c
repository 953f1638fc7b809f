/* Start and end of the shim (context.h). */
#include "context.h"

#include "comm_state.h"
#include "log.h"
#include "picture.h"
#include "plan_root.h"
#include "pt2pt_messages.h"
#include "pt2pt_persistent.h"
#include "pt2pt_requests.h"
#include "report.h"

#include <stdio.h>

extern char **environ;

struct cpl_context cpl_context;

static void warn_setting(void *context, const char *text)
{
    (void)context;
    cpl_log(CPL_LOG_WARN, "settings", "%s", text);
}

/* Rank 0 reads the environment, all take its values: settings that differ between ranks would part
 * their decisions. */
static void share_settings(void)
{
    struct cpl_settings *settings = &cpl_context.settings;
    if (cpl_context.rank == 0) {
        cpl_settings_read(settings, environ, warn_setting, NULL);
        cpl_report_start();
        cpl_plan_root_start();
    }
    PMPI_Bcast(settings, sizeof *settings, MPI_BYTE, 0, MPI_COMM_WORLD);
    cpl_log_init(cpl_context.rank, (enum cpl_log_level)settings->verbose);
}

/* At debug level the values in force, so that a log tells what it was made with. */
static void log_settings(void)
{
    for (size_t i = 0; cpl_context.rank == 0 && i < cpl_settings_count(); i++) {
        char value[CPL_SETTINGS_TEXT];
        cpl_settings_value(&cpl_context.settings, i, value, sizeof value);
        cpl_log(CPL_LOG_DEBUG, "settings", "%s=%s", cpl_settings_info(i).variable, value);
    }
}

void cpl_context_start(void)
{
    int thread_level;
    PMPI_Comm_rank(MPI_COMM_WORLD, &cpl_context.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &cpl_context.size);
    cpl_log_init(cpl_context.rank, CPL_LOG_WARN);
    share_settings();
    if (cpl_context.settings.mode == CPL_MODE_OFF)
        return;
    PMPI_Query_thread(&thread_level);
    if (thread_level == MPI_THREAD_MULTIPLE) {
        if (cpl_context.rank == 0)
            cpl_log(CPL_LOG_WARN, "shim",
                    "the program runs with MPI_THREAD_MULTIPLE, which is not supported yet: all "
                    "calls are left to MPI");
        return;
    }
    log_settings();
    cpl_context.start = PMPI_Wtime();
    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, cpl_comm_state_deleted, &cpl_context.keyval,
                                NULL) != MPI_SUCCESS)
        return;
    MPI_Comm parent;
    PMPI_Comm_get_parent(&parent);
    cpl_context.met_others = parent != MPI_COMM_NULL;
    cpl_context.active = true;
}

/* The communicator with a private one that got it first; NULL: there is none. */
static struct cpl_comm_state *first_planned(void)
{
    struct cpl_comm_state *first = NULL;
    for (struct cpl_comm_state *s = cpl_context.first_state; s; s = s->next)
        if (s->planned_number > 0 && (!first || s->planned_number < first->planned_number))
            first = s;
    return first;
}

void cpl_context_finish(void)
{
    struct cpl_comm_state *state;
    if (!cpl_context.active)
        return;
    while (cpl_context.first_managed) /* in the same order on all ranks: that of being managed */
        cpl_comm_state_release(cpl_context.first_managed);
    cpl_context.active = false;
    cpl_persistent_end();
    /* Their ends are collective: in an order that does not depend on what a rank used first. */
    while ((state = first_planned()))
        cpl_comm_state_release(state);
    while (cpl_context.first_state)
        cpl_comm_state_release(cpl_context.first_state);
    cpl_comm_state_free_left();
    if (cpl_report_is_wanted())
        cpl_report_write();
    cpl_report_free();
    cpl_picture_free();
    cpl_request_end();
    cpl_pt2pt_free_messages();
    cpl_distances_free(&cpl_context.machine.distances);
    PMPI_Comm_free_keyval(&cpl_context.keyval);
}
