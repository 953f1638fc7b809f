/* Start and end of the shim (start.h). */
#include "shim/calls/start.h"
#include "shim/carry/line.h"
#include "shim/exchange/allgather.h"
#include "shim/exchange/neighbor.h"
#include "shim/state/describe.h"
#include "shim/state/hooks.h"
#include "shim/wait/collective.h"
#include "shim/wait/progress.h"

#include "shim/base/aside.h"
#include "shim/base/environment.h"
#include "shim/base/log.h"
#include "shim/bind/find.h"
#include "shim/calls/wrappers.h"
#include "shim/carry/requests.h"
#include "shim/meet/agree.h"
#include "shim/meet/appointment.h"
#include "shim/meet/meeting.h"
#include "shim/plan/plan_root.h"
#include "shim/pt2pt/pt2pt.h"
#include "shim/pt2pt/pt2pt_parts.h"
#include "shim/report/picture.h"
#include "shim/report/report.h"
#include "shim/state/comm_state.h"
#include "shim/wait/assembly.h"

extern char **environ;

/* The order matters where one part's messages may wait for another's: messages in combined messages
 * are sent first. */
static const struct cpl_hooks *const all_hooks[] = {&cpl_node_hooks,     &cpl_line_hooks,
                                                    &cpl_pt2pt_hooks,    &cpl_parts_hooks,
                                                    &cpl_exchange_hooks, &cpl_allgather_hooks,
                                                    &cpl_request_hooks,  &cpl_buffered_hooks,
                                                    &cpl_window_hooks,   NULL};

static void warn_setting(void *context, const char *text)
{
    (void)context;
    cpl_log(CPL_LOG_WARN, "settings", "%s", text);
}

static void read_settings(void)
{
    cpl_settings_read(&cpl_context.settings, environ, warn_setting, NULL);
    cpl_report_start();
}

/* Rank 0 reads the environment and all ranks take its values: with different settings they would
 * decide differently. */
static void share_settings(void)
{
    struct cpl_settings *settings = &cpl_context.settings;
    if (cpl_context.rank == 0) {
        read_settings();
        cpl_plan_root_start();
    }
    MPI_Request request; /* nonblocking as in cpl_collective_settle */
    PMPI_Ibcast(settings, sizeof *settings, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    cpl_preload_await(&request);
    cpl_log_init(cpl_context.rank, (enum cpl_log_level)settings->verbose);
}

/* The communicator, the key and what votes need, which the shim has from start to end. */
static bool make_handles(void)
{
    cpl_context.comms.self = MPI_COMM_NULL;
    cpl_context.comms.keyval = MPI_KEYVAL_INVALID;
    cpl_context.comms.reduced.op = MPI_OP_NULL;
    if (!cpl_meeting_start() || !cpl_graph_start() ||
        PMPI_Comm_dup(MPI_COMM_SELF, &cpl_context.comms.self) != MPI_SUCCESS)
        return false;
    PMPI_Comm_set_errhandler(cpl_context.comms.self, MPI_ERRORS_RETURN);
    return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, cpl_comm_state_deleted,
                                   &cpl_context.comms.keyval, NULL) == MPI_SUCCESS;
}

static void free_handles(void)
{
    if (cpl_context.comms.self != MPI_COMM_NULL)
        PMPI_Comm_free(&cpl_context.comms.self);
    if (cpl_context.comms.keyval != MPI_KEYVAL_INVALID)
        PMPI_Comm_free_keyval(&cpl_context.comms.keyval);
    cpl_graph_stop();
    cpl_meeting_stop();
}

/* All calls of the run are left to MPI, for a reason that is a clause. This rank tells: in the
 * report if one is wanted, and in a warning unless the user wants it so. */
static void tell_left(const char *why, bool warns)
{
    cpl_context.told.all_left = why;
    if (warns)
        cpl_log(CPL_LOG_WARN, "shim", "%s: all calls are left to MPI", why);
}

/* Makes the handles on all ranks, or on none if some rank cannot. Ranks may ask for different
 * levels. With MPI_THREAD_MULTIPLE the helper thread serves others while the program waits inside
 * MPI, so all ranks have it, or none: without it MPI takes no lock of its own. */
static bool can_start(void)
{
    enum { THREADED, UNTHREADED, UNABLE, DEVICE, N };
    int mine[N], any[N], level;
    MPI_Request request;
    PMPI_Query_thread(&level);
    mine[THREADED] = level == MPI_THREAD_MULTIPLE;
    mine[UNTHREADED] = !mine[THREADED];
    mine[UNABLE] = !make_handles();
    cpl_device_look();
    mine[DEVICE] = cpl_context.machine.has_device;
    PMPI_Iallreduce(mine, any, N, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
    cpl_preload_await(&request);
    if (any[UNABLE] || (any[THREADED] && any[UNTHREADED])) {
        free_handles();
        if (cpl_context.rank == 0)
            tell_left(any[UNABLE] ? "MPI gave a rank no communicator or attribute key"
                                  : "only some ranks asked for MPI_THREAD_MULTIPLE",
                      true);
        return false;
    }
    if (any[THREADED]) { /* what spans communicators is left out: threads call in any order */
        cpl_service_share();
        cpl_context.settings.order = 0; /* off */
        cpl_context.settings.embed = CPL_EMBED_OFF;
    }
    if (any[DEVICE]) /* reductions add up where the processor reads */
        cpl_context.settings.embed = CPL_EMBED_OFF;
    return true;
}

#ifdef CPL_SIMULATED
#define cpl_find_leave() (void)0
#define raises(level)    ((void)(level), false)
#else
/* Whether the helper thread needs a higher level than the program asks for. A variable of MPICH
 * raises that of MPI_Init. */
static bool raises(int level)
{
    return level < MPI_THREAD_SERIALIZED &&
           !cpl_variable(environ, "MPIR_CVAR_DEFAULT_THREAD_LEVEL");
}
#endif

static bool is_preloaded_everywhere(void)
{
    bool tells, lacks = cpl_preload_lacks(cpl_context.rank, cpl_context.size, &tells);
    if (lacks && tells) {
        read_settings();
        tell_left("some ranks run without the library (set LD_PRELOAD for every program of the "
                  "launcher's line, or use mpiexec -genv)",
                  true);
    }
    return !lacks;
}

/* Whether all ranks have what the library needs and are to use it. */
static bool begin(void)
{
    if (!is_preloaded_everywhere())
        return false;
    share_settings();
    if (cpl_context.settings.mode != CPL_MODE_OFF)
        return can_start();
    if (cpl_context.rank == 0)
        tell_left("CARPOOL_MODE is off", false);
    return false;
}

static void start(void)
{
    CPL_ASIDE;
    MPI_Comm parent;
    int *tag_ub = NULL, found = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &cpl_context.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &cpl_context.size);
    cpl_log_init(cpl_context.rank, CPL_LOG_WARN);
    cpl_context.comms.away = MPI_COMM_NULL;
    cpl_context.hooks = all_hooks;
    cpl_context.account.start = PMPI_Wtime();
    if (!begin()) {
        cpl_find_leave();
        return;
    }
    cpl_service_look();
    PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_ub, &found);
    cpl_context.tag_ub = found ? *tag_ub : 32767; /* at least that, MPI 4.0, 9.1.2 */
    PMPI_Comm_get_parent(&parent);
    cpl_context.met_others = parent != MPI_COMM_NULL;
    cpl_context.active = true;
}

int cpl_start_init(int *argc, char ***argv, const int *required, int *provided)
{
    const int level = required ? *required : MPI_THREAD_SINGLE;
    int result, given = level;
    cpl_service_begin();
    if (raises(level) && (provided || !required)) {
        result = PMPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &given);
        cpl_context.thread.level = level;
        cpl_context.thread.raised = result == MPI_SUCCESS;
        if (provided && result == MPI_SUCCESS)
            *provided = level;
    } else {
        result = required ? PMPI_Init_thread(argc, argv, level, provided) : PMPI_Init(argc, argv);
    }
    if (result == MPI_SUCCESS)
        start();
    return result;
}

void cpl_finish(void)
{
    CPL_ASIDE;
    struct cpl_comm_state *state;
    if (!cpl_context.active) {
        cpl_report_write_left();
        return;
    }
    while (
        cpl_context.comms
            .first_managed) /* in the order of becoming managed, which is the same on all ranks */
        cpl_comm_state_release(cpl_context.comms.first_managed);
    cpl_parts_end();
    while (cpl_context.requests.buffered.first)
        cpl_progress_poll();
    cpl_context.active = false;
    cpl_service_end();
    cpl_persistent_end();
    /* Ending them is collective, so the order must not depend on what a rank used first. */
    while ((state = cpl_reclaim_next(0)))
        cpl_comm_state_release(state);
    while (cpl_context.comms.first)
        cpl_comm_state_release(cpl_context.comms.first);
    cpl_comm_state_free_orphaned();
    if (cpl_report_is_wanted())
        cpl_report_write();
    cpl_report_free();
    cpl_picture_free();
    cpl_request_end();
    cpl_distances_free(&cpl_context.machine.distances);
    cpl_window_end();
    cpl_assembly_free(cpl_context.comms.assembly);
    cpl_context.comms.assembly = NULL;
    cpl_appointment_end();
    cpl_away_end();
    free_handles();
}
