/* Blocking collectives that poll (collective.h). */
#include "shim/wait/collective.h"
#include "shim/wait/assembly.h"
#include "shim/wait/progress.h"

#include "shim/state/comm_state.h"
#include "shim/state/context.h"
#include "shim/state/describe.h"

bool cpl_collective_of_this_world(MPI_Comm comm)
{
    MPI_Group group;
    int inter = 0;
    if (!cpl_context.met_others)
        return true;
    if (PMPI_Comm_group(comm, &group) != MPI_SUCCESS)
        return false;
    bool within = cpl_away_is_of_this_world(group);
    PMPI_Group_free(&group);
    PMPI_Comm_test_inter(comm, &inter);
    if (within && inter) {
        PMPI_Comm_remote_group(comm, &group);
        within = cpl_away_is_of_this_world(group);
        PMPI_Group_free(&group);
    }
    return within;
}

/* Whether the ranks have settled that the communicator's collectives poll (meet/meeting.h). */
static bool has_settled_to_poll(MPI_Comm comm)
{
    void *state;
    int found = 0;
    return cpl_context.active && comm != MPI_COMM_NULL &&
           PMPI_Comm_get_attr(comm, cpl_context.comms.keyval, &state, &found) == MPI_SUCCESS &&
           found && ((struct cpl_comm_state *)state)->meeting.polls;
}

bool cpl_collective_polls(MPI_Comm comm)
{
    const struct cpl_service *s = &cpl_context.service;
    if (s->shared)
        return cpl_context.lock.kept || has_settled_to_poll(comm);
    return cpl_context.busy.n_managed + cpl_context.busy.n_served > 0 && comm != MPI_COMM_NULL &&
           cpl_collective_of_this_world(comm);
}

/* Ends a nonblocking form; `started` is what its start returned. */
static int finish(int started, MPI_Request *request)
{
    return started == MPI_SUCCESS ? cpl_progress_wait(request, MPI_STATUS_IGNORE) : started;
}

#define WITH_REQUEST(...) (__VA_ARGS__, &request)
/* `polling`: what makes the call where it has to poll. */
#define CALLS(name, parameters, arguments, polling)                                                \
    int cpl_collective_##name parameters                                                           \
    {                                                                                              \
        if (!cpl_collective_polls(comm)) {                                                         \
            CPL_OUTSIDE;                                                                           \
            return PMPI_##name arguments;                                                          \
        }                                                                                          \
        polling;                                                                                   \
    }
#define MOVES(name, nonblocking, parameters, arguments)                                            \
    CALLS(name, parameters, arguments, MPI_Request request;                                        \
          int started = PMPI_##nonblocking WITH_REQUEST arguments;                                 \
          return finish(started, &request))
#define MEETS(name, nonblocking, parameters, arguments)                                            \
    CALLS(name, parameters, arguments, cpl_assembly_gather(comm); return MPI_SUCCESS)
/* `first` comes in any case, `gather` where the call has to poll. */
#define AFTER(name, over, parameters, arguments, first, gather)                                    \
    int cpl_collective_##name parameters                                                           \
    {                                                                                              \
        first;                                                                                     \
        if (cpl_collective_polls(over)) {                                                          \
            gather;                                                                                \
        }                                                                                          \
        CPL_OUTSIDE;                                                                               \
        return PMPI_##name arguments;                                                              \
    }
#define ENTERS(name, over, parameters, arguments)                                                  \
    AFTER(name, over, parameters, arguments, , cpl_assembly_gather(over))
/* Two groups find each other by their leaders: once these have met, all ranks of both groups have
 * come. */
#define PAIRS(name, over, parameters, arguments)                                                   \
    AFTER(name, over, parameters, arguments, , cpl_assembly_gather(over);                          \
          cpl_away_leaders(over, local_leader, peer_comm, remote_leader);                          \
          cpl_assembly_gather(over))
#define JOINS(name, over, parameters, arguments)                                                   \
    AFTER(name, over, parameters, arguments, cpl_context.met_others = true,                        \
          cpl_assembly_gather(over))
#define NEIGHBOR(name, nonblocking, persistent, parameters, arguments, ...)                        \
    MOVES(name, nonblocking, parameters, arguments)
#define ALLTOALL(name, nonblocking, persistent, parameters, arguments, ...)                        \
    MOVES(name, nonblocking, parameters, arguments)
#include "shim/tables/calls.def"
#include "shim/tables/collectives.def"

int cpl_collective_settle(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm)
{
    MPI_Request request;
#ifdef CPL_SIMULATED /* SMPI counts nothing, and its nonblocking ones are made of messages */
    return cpl_collective_Allreduce(send, recv, count, type, op, comm);
#endif
    if (cpl_context.service.shared)
        return cpl_collective_Allreduce(send, recv, count, type, op, comm);
    int started = PMPI_Iallreduce(send, recv, count, type, op, comm, &request);
    return finish(started, &request);
}

/* Asks MPI about an operation and a type by reducing no elements, unless it has done so last. */
static bool is_operation_wrong(MPI_Op op, MPI_Datatype type)
{
    char none[1] = {0};
    if (op != MPI_OP_NULL && op == cpl_context.comms.reduced.op &&
        type == cpl_context.comms.reduced.type)
        return false;
    if (PMPI_Allreduce(MPI_IN_PLACE, none, 0, type, op, cpl_context.comms.self) != MPI_SUCCESS)
        return true;
    if (cpl_type_named(type)) {
        cpl_context.comms.reduced.op = op;
        cpl_context.comms.reduced.type = type;
    }
    return false;
}

static bool is_type_wrong(MPI_Datatype type)
{
    struct cpl_span span;
    char none[1] = {0};
    return type != CPL_NO_TYPE && !cpl_describe(none, 0, type, 0, false, &span);
}

/* Whether a type, which is right, is MPI's own: derived ones may have addresses of their own. */
static bool is_mpis_own(MPI_Datatype type)
{
    struct cpl_type known;
    return cpl_type_describe(type, &known) && cpl_type_named(type);
}

static bool are_buffers_wrong(const struct cpl_comm_state *state, const struct cpl_arguments *a)
{
    bool receives = a->root == CPL_NO_ROOT || a->root == state->rank;
    return a->count > 0 && a->sendbuf != MPI_IN_PLACE && !state->inter &&
           is_mpis_own(a->datatype) &&
           (!a->sendbuf || (receives && (!a->recvbuf || a->recvbuf == a->sendbuf)));
}

bool cpl_collective_is_refused(MPI_Comm comm, const struct cpl_arguments *a)
{
    const struct cpl_comm_state *state = cpl_comm_state_get(comm);
    if (!state)
        return comm == MPI_COMM_NULL;
    bool root_wrong =
        a->root != CPL_NO_ROOT && !state->inter && (a->root < 0 || a->root >= state->size);
    if (root_wrong || a->count < 0 ||
        (a->root == CPL_NO_ROOT && a->sendbuf != MPI_IN_PLACE && a->sendcount < 0))
        return true;
    if (a->root == CPL_NO_ROOT &&
        (is_type_wrong(a->recvtype) || (a->sendbuf != MPI_IN_PLACE && is_type_wrong(a->sendtype))))
        return true;
    if (a->op == CPL_NO_OP)
        return is_type_wrong(a->datatype) ||
               (a->count > 0 && !a->buffer && is_mpis_own(a->datatype));
    return is_operation_wrong(a->op, a->datatype) || are_buffers_wrong(state, a);
}

int cpl_collective_waitsome(int n, MPI_Request requests[], int *n_done, int indices[],
                            MPI_Status statuses[])
{
    CPL_OUTSIDE;
    return PMPI_Waitsome(n, requests, n_done, indices, statuses);
}

int cpl_collective_waitall(int n, MPI_Request requests[], MPI_Status statuses[])
{
    if (cpl_progress_needed())
        return cpl_progress_wait_each(n, requests, statuses);
    CPL_OUTSIDE;
    return PMPI_Waitall(n, requests, statuses);
}
