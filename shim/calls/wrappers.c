/* The intercepted calls. Each asks the shim. Calls that the shim does not carry go to MPI unchanged
 * or, while any communicator is managed, in a form that polls (collective.h). */
#include "shim/calls/wrappers.h"
#include "shim/calls/reorder.h"
#include "shim/calls/start.h"
#include "shim/carry/embed.h"
#include "shim/carry/line.h"
#include "shim/exchange/allgather.h"
#include "shim/exchange/neighbor.h"
#include "shim/meet/agree.h"
#include "shim/meet/appointment.h"
#include "shim/meet/meeting.h"
#include "shim/pt2pt/pt2pt.h"
#include "shim/pt2pt/pt2pt_parts.h"
#include "shim/state/comm_state.h"
#include "shim/state/context.h"
#include "shim/tables/words.h"
#include "shim/wait/assembly.h"
#include "shim/wait/collective.h"
#include "shim/wait/progress.h"

#include <mpi.h>
#include <stdint.h>

/* The helper thread and the program call MPI in turns, which needs MPI_THREAD_SERIALIZED. The
 * program is told the level that it asked for. */
EXPORT int MPI_Init(int *argc, char ***argv)
{
    CPL_INSIDE;
    return cpl_start_init(argc, argv, NULL, NULL);
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    CPL_INSIDE;
    return cpl_start_init(argc, argv, &required, provided);
}

EXPORT int MPI_Query_thread(int *provided)
{
    int result = PMPI_Query_thread(provided);
    if (result == MPI_SUCCESS && cpl_context.thread.raised)
        *provided = cpl_context.thread.level;
    return result;
}

EXPORT int MPI_Finalize(void)
{
    CPL_COLLECTIVE;
    cpl_finish();
    return PMPI_Finalize();
}

#define WITH_PASS(...)       (__VA_ARGS__, bool pass)
#define WITH_PASS_GIVEN(...) (__VA_ARGS__, pass)
#define WITH(...)            (__VA_ARGS__, request)
#define WITH_REQUEST(...)    (__VA_ARGS__, MPI_Request * request)
#define WITH_INFO(...)       (__VA_ARGS__, MPI_Info info, MPI_Request * request)
#define WITH_INFO_GIVEN(...) (__VA_ARGS__, info, request)

/* What was sent leaves, and the collective is counted. */
static void before_collective(MPI_Comm comm)
{
    cpl_progress_leave();
    cpl_meets_at_collective(comm);
}

/* Whether an error tells that MPI has refused a call for its arguments, before it sent anything. */
static bool is_refusal(int result)
{
    int class_ = MPI_SUCCESS;
    PMPI_Error_class(result, &class_);
    switch (class_) {
    case MPI_ERR_BUFFER:
    case MPI_ERR_COUNT:
    case MPI_ERR_TYPE:
    case MPI_ERR_COMM:
    case MPI_ERR_ROOT:
    case MPI_ERR_OP:
    case MPI_ERR_ARG:
    case MPI_ERR_TOPOLOGY:
        return true;
    default:
        return false;
    }
}

/* After a collective that was counted, with its result, which is returned. */
static int counted(MPI_Comm comm, int result)
{
    struct cpl_comm_state *state =
        result == MPI_SUCCESS || !is_refusal(result) ? NULL : cpl_comm_state_get(comm);
    if (state)
        cpl_meeting_uncount(state);
    return result;
}

/* Before a collective that is no sparse exchange. */
static void before_other(MPI_Comm comm)
{
    if (!cpl_pass_collective(comm))
        before_collective(comm);
}

#define GIVEN(comm) comm

/* A sparse exchange in its three forms; pass_of: whether its collective passes; inner: the
 * communicator on which it is made. `first` may make the call. */
#define CARRIED(pass_of, inner, first, name, nonblocking, persistent, parameters, arguments, ...)  \
    WATCHED watched_##name WITH_PASS parameters                                                    \
    {                                                                                              \
        CPL_COLLECTIVE;                                                                            \
        const bool looked = pass;                                                                  \
        comm = inner(comm);                                                                        \
        if (cpl_context.service.shared)                                                            \
            pass = pass_of(comm);                                                                  \
        struct cpl_neighbor_call call = __VA_ARGS__;                                               \
        int result;                                                                                \
        first(name, arguments);                                                                    \
        if (!pass)                                                                                 \
            before_collective(comm);                                                               \
        if (!looked && cpl_pass_exchange(&call))                                                   \
            return CPL_AWAY(PMPI_##name arguments);                                                \
        if (cpl_neighbor_carry(&call, &result))                                                    \
            return result;                                                                         \
        result = counted(comm, cpl_collective_##name arguments);                                   \
        cpl_neighbor_passed(&call);                                                                \
        return result;                                                                             \
    }                                                                                              \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        if (!cpl_context.active)                                                                   \
            return PMPI_##name arguments;                                                          \
        bool pass = !cpl_context.service.shared && pass_of(comm);                                  \
        if (pass && cpl_pass_exchange(&(struct cpl_neighbor_call)__VA_ARGS__))                     \
            return PMPI_##name arguments;                                                          \
        return watched_##name WITH_PASS_GIVEN arguments;                                           \
    }                                                                                              \
    EXPORT int MPI_##nonblocking WITH_REQUEST parameters                                           \
    {                                                                                              \
        CPL_COLLECTIVE;                                                                            \
        int result = MPI_SUCCESS;                                                                  \
        comm = inner(comm);                                                                        \
        if (!cpl_context.active ||                                                                 \
            !cpl_neighbor_start(&(struct cpl_neighbor_call)__VA_ARGS__, request))                  \
            result = PMPI_##nonblocking WITH arguments;                                            \
        return cpl_meets_started(comm, result, request, false);                                    \
    }                                                                                              \
    PASSING(persistent, WITH_INFO parameters, WITH_INFO_GIVEN arguments, !cpl_context.active)      \
    {                                                                                              \
        CPL_COLLECTIVE;                                                                            \
        comm = inner(comm);                                                                        \
        cpl_appointment_bar();                                                                     \
        struct cpl_neighbor_call call = __VA_ARGS__;                                               \
        if (cpl_neighbor_init(&call, request))                                                     \
            return MPI_SUCCESS;                                                                    \
        int result = PMPI_##persistent WITH_INFO_GIVEN arguments;                                  \
        cpl_neighbor_init_passed(&call, result, request);                                          \
        return result;                                                                             \
    }
#define NOTHING_FIRST(name, arguments) (void)0
/* Without neighbours MPI does nothing, or refuses the call, which for lack of a topology would use
 * up one of the communicator's tags all the same: so it is made on another one. */
#define TOPOLOGY_FIRST(name, arguments)                                                            \
    do {                                                                                           \
        const struct cpl_comm_state *state = pass ? NULL : cpl_comm_state_get(comm);               \
        const MPI_Comm given = comm;                                                               \
        if (pass || (state && state->watched))                                                     \
            break;                                                                                 \
        if (state && !state->inter && !state->has_topology)                                        \
            comm = cpl_context.comms.self;                                                         \
        result = PMPI_##name arguments;                                                            \
        return comm == given ? result : cpl_raise(given, result);                                  \
    } while (0)
#define NEIGHBOR(...) CARRIED(cpl_pass_neighborhood, cpl_graph_inner, TOPOLOGY_FIRST, __VA_ARGS__)
#define ALLTOALL(...) CARRIED(cpl_pass_collective, GIVEN, NOTHING_FIRST, __VA_ARGS__)
#include "shim/tables/calls.def"

/* Carries a reduction out in memory that all ranks share, if it is small and they have settled
 * something on the communicator before. It has to poll, which MPI does worse: behind a barrier
 * that polls. */
static bool reduce_in_memory(MPI_Comm comm, const void *send, void *recv, int64_t count,
                             MPI_Datatype type, MPI_Op op, int *result)
{
    struct cpl_comm_state *state = cpl_collective_polls(comm) ? cpl_comm_state_get(comm) : NULL;
    if (!state || state->private_comm == MPI_COMM_NULL || !cpl_assembly_is_whole() ||
        state->inter || state->size != cpl_context.size)
        return false;
    cpl_comm_state_own(state);
    struct cpl_embed_kind *kind =
        state->line->embed.on ? NULL : cpl_embed_takes(state, count, type, op, true);
    if (!kind)
        return false;
    cpl_progress_leave();
    *result = cpl_embed_allreduce(state, kind, send, recv);
    return true;
}

/* When MPI refuses a call on one rank, the others need not take part, so the shim finds out before
 * it counts or waits for anything. The names are those of the calls' parameters; a call that lacks
 * one gets the value from here. */
#pragma GCC diagnostic ignored "-Wshadow" /* by those parameters */
static const int root = CPL_NO_ROOT, count = 0, sendcount = 0;
static const MPI_Datatype datatype = CPL_NO_TYPE, sendtype = CPL_NO_TYPE, recvtype = CPL_NO_TYPE;
static const MPI_Op op = CPL_NO_OP;
static const char sent_bytes[1], received_bytes[1];
static const void *const sendbuf = sent_bytes, *const recvbuf = received_bytes,
                         *const buffer = sent_bytes;
#define IS_REFUSED(over)                                                                           \
    cpl_collective_is_refused(over,                                                                \
                              &(struct cpl_arguments){root, count, sendcount, datatype, sendtype,  \
                                                      recvtype, op, sendbuf, recvbuf, buffer})

/* Most of these calls make no communicator and no window. */
static MPI_Comm *const newcomm = NULL;
static MPI_Win *const win = NULL;

static int made(MPI_Comm over, const MPI_Comm *comm, const MPI_Win *window, int result)
{
    if (window && result == MPI_SUCCESS)
        cpl_window_opened(over, *window);
    if (comm && result == MPI_SUCCESS) {
        cpl_agree_graph(*comm);
        cpl_meeting_made(over, *comm);
        cpl_family_made(over, *comm);
        if (cpl_graph_inner(*comm) != *comm)
            cpl_family_made(over, cpl_graph_inner(*comm));
        cpl_reclaim_made(over);
    }
    return result;
}

/* Most calls pass, but for those that make something. One that MPI refuses on this rank does
 * not count. */
#define PASSES(name, over, parameters, arguments)                                                  \
    EXPORT CPL_PASSED int MPI_##name parameters                                                    \
    {                                                                                              \
        if (!cpl_context.active)                                                                   \
            return PMPI_##name arguments;                                                          \
        const bool passes = !newcomm && !win && !cpl_context.service.shared;                       \
        struct cpl_pass *pass = passes ? cpl_pass_of(over) : NULL;                                 \
        if (!pass)                                                                                 \
            return watched_##name arguments;                                                       \
        int result = MPIS(name, parameters) arguments;                                             \
        if (__builtin_expect(result == MPI_SUCCESS, 1))                                            \
            pass->remaining--;                                                                     \
        else if (!is_refusal(result))                                                              \
            before_other(over);                                                                    \
        return result;                                                                             \
    }
#define ENTERED(reordered, name, over, parameters, arguments)                                      \
    WATCHED watched_##name parameters                                                              \
    {                                                                                              \
        CPL_COLLECTIVE;                                                                            \
        if (IS_REFUSED(over))                                                                      \
            return PMPI_##name arguments;                                                          \
        before_other(over);                                                                        \
        int result = counted(over, cpl_collective_##name arguments);                               \
        reordered;                                                                                 \
        return made(over, newcomm, win, result);                                                   \
    }                                                                                              \
    PASSES(name, over, parameters, arguments)
#define ENTERS(...) ENTERED((void)0, __VA_ARGS__)
#define REORDERS(name, over, parameters, arguments)                                                \
    ENTERED(if (reorder && result == MPI_SUCCESS) cpl_reorder_##name arguments, name, over,        \
            parameters, arguments)
#define REDUCES(name, over, parameters, arguments)                                                 \
    WATCHED watched_##name parameters                                                              \
    {                                                                                              \
        int result;                                                                                \
        CPL_COLLECTIVE;                                                                            \
        if (IS_REFUSED(over))                                                                      \
            return PMPI_##name arguments;                                                          \
        if (cpl_pt2pt_allreduce(comm, sendbuf, recvbuf, count, datatype, op, NULL, &result) ||     \
            reduce_in_memory(comm, sendbuf, recvbuf, count, datatype, op, &result)) {              \
            cpl_meets_at_collective(comm);                                                         \
            return result;                                                                         \
        }                                                                                          \
        before_other(over);                                                                        \
        return counted(over, cpl_collective_##name arguments);                                     \
    }                                                                                              \
    PASSES(name, over, parameters, arguments)
#define INITIATES(name, parameters, arguments)                                                     \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        CPL_COLLECTIVE;                                                                            \
        int result;                                                                                \
        if (cpl_context.active && request && !IS_REFUSED(comm) &&                                  \
            cpl_pt2pt_allreduce(comm, sendbuf, recvbuf, count, datatype, op, request, &result))    \
            return cpl_meets_started(comm, result, request, count > 0);                            \
        return cpl_meets_started(comm, PMPI_##name arguments, request, count > 0);                 \
    }
#define JOINS                                           ENTERS
#define MOVES(name, nonblocking, parameters, arguments) ENTERS(name, comm, parameters, arguments)
#define GATHERS(name, nonblocking, parameters, arguments, ...)                                     \
    PASSING(name, parameters, arguments, !cpl_context.active)                                      \
    {                                                                                              \
        CPL_COLLECTIVE;                                                                            \
        if (IS_REFUSED(comm))                                                                      \
            return PMPI_##name arguments;                                                          \
        before_other(comm);                                                                        \
        struct cpl_neighbor_call call = __VA_ARGS__;                                               \
        int result;                                                                                \
        if (cpl_allgather_carry(&call, &result))                                                   \
            return result;                                                                         \
        result = counted(comm, cpl_collective_##name arguments);                                   \
        cpl_neighbor_passed(&call);                                                                \
        return result;                                                                             \
    }
/* The state ends before MPI's call: callbacks of the program's attributes may still use the
 * communicator, which is then MPI's alone. */
#define FREES(name, parameters, arguments)                                                         \
    PASSING(name, parameters, arguments, !cpl_context.active || !comm || *comm == MPI_COMM_NULL)   \
    {                                                                                              \
        CPL_COLLECTIVE;                                                                            \
        MPI_Comm freed = *comm;                                                                    \
        cpl_progress_leave();                                                                      \
        cpl_comm_state_free_inner(*comm);                                                          \
        cpl_comm_state_before_free(freed);                                                         \
        int result = CPL_AWAY(PMPI_##name arguments);                                              \
        cpl_comm_state_take_back(freed);                                                           \
        return result;                                                                             \
    }
#define WAITS(name, gather, parameters, arguments)                                                 \
    PASSING(name, parameters, arguments, !cpl_context.active)                                      \
    {                                                                                              \
        CPL_COLLECTIVE;                                                                            \
        cpl_appointment_note_other();                                                              \
        gather;                                                                                    \
        return CPL_AWAY(PMPI_##name arguments);                                                    \
    }
#include "shim/tables/collectives.def"
