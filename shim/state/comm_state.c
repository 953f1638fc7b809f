/* Per-communicator state (comm_state.h). */
#include "shim/state/comm_state.h"

#include "shim/state/context.h"
#include "shim/state/graph.h"
#include "shim/state/hooks.h"
#include "shim/state/memory.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static void free_parts(struct cpl_comm_state *state)
{
    free(state->line);
    free(state->pt2pt);
    free(state->serve);
}

static void free_state(struct cpl_comm_state *state)
{
    if (state->private_comm != MPI_COMM_NULL) {
        PMPI_Comm_free(&state->private_comm);
        cpl_context.comms.n_planned--;
    }
    cpl_adjacency_free(&state->adjacency);
    if (!state->blank)
        free_parts(state);
    free(state->exchanges);
    free(state->allgathers.kept);
    free(state);
}

static void meet_parts(struct cpl_comm_state *state)
{
    state->blank = true;
    CPL_CALL_HOOKS(meet, (state));
}

static bool begin_parts(struct cpl_comm_state *state)
{
    state->line = NULL;
    state->pt2pt = NULL;
    state->serve = NULL;
    CPL_EACH_HOOKS(hooks)
    {
        if (!hooks->begin || hooks->begin(state))
            continue;
        free_parts(state);
        meet_parts(state);
        return false;
    }
    state->blank = false;
    return true;
}

void cpl_comm_state_begin(struct cpl_comm_state *state)
{
    int tries = 0;
    while (!begin_parts(state))
        cpl_memory_wait(&tries, "a communicator");
    cpl_memory_put_by();
}

static struct cpl_comm_state *try_state(MPI_Comm comm)
{
    struct cpl_comm_state *state = calloc(1, sizeof *state);
    if (!state)
        return NULL;
    state->comm = comm;
    state->meeting.family.number = comm == MPI_COMM_WORLD;
    state->private_comm = MPI_COMM_NULL;
    PMPI_Comm_rank(comm, &state->rank);
    PMPI_Comm_size(comm, &state->size);
    int inter = 0, topology = MPI_UNDEFINED;
    PMPI_Comm_test_inter(comm, &inter);
    PMPI_Topo_test(comm, &topology);
    state->inter = inter;
    state->has_topology = !inter && topology != MPI_UNDEFINED;
    const struct cpl_graph *graph = state->has_topology ? cpl_graph_of(comm) : NULL;
    state->watched = graph && graph->inner == MPI_COMM_NULL && state->size > 1;
    meet_parts(state);
    if ((state->watched && !cpl_adjacency_query(comm, &state->adjacency)) ||
        PMPI_Comm_set_attr(comm, cpl_context.comms.keyval, state) != MPI_SUCCESS) {
        free_state(state);
        return NULL;
    }
    DL_APPEND2(cpl_context.comms.first, state, previous, next);
    cpl_context.comms.n_states++;
    return state;
}

/* Waits for memory: the other ranks have a state of the communicator and meet, so a rank without
 * one would be alone in MPI's call. */
static struct cpl_comm_state *make_state(MPI_Comm comm)
{
    struct cpl_comm_state *state;
    int tries = 0;
    while (!(state = try_state(comm)))
        cpl_memory_wait(&tries, "a communicator");
    cpl_memory_put_by();
    return state;
}

static bool is_dying(MPI_Comm comm)
{
    const struct cpl_dying *d;
    LL_SEARCH_SCALAR2(cpl_context.comms.dying, d, comm, comm, outer);
    return d;
}

struct cpl_comm_state *cpl_comm_state_find(MPI_Comm comm)
{
    void *state;
    int found;
    if (comm == MPI_COMM_NULL || is_dying(comm) ||
        PMPI_Comm_get_attr(comm, cpl_context.comms.keyval, &state, &found) != MPI_SUCCESS)
        return NULL;
    struct cpl_comm_state *known = found ? state : make_state(comm);
    *cpl_context_recent(comm) = (struct cpl_recent){.comm = comm, .state = known};
    return known;
}

void cpl_comm_state_forget_recent(void)
{
    cpl_context.busy.alone = MPI_COMM_NULL;
    memset(cpl_context.comms.recent, 0, sizeof cpl_context.comms.recent);
}

void cpl_comm_state_keep_own(struct cpl_comm_state *state, MPI_Comm own)
{
    state->private_comm = own;
    state->planned_number = own == MPI_COMM_NULL ? -1 : ++cpl_context.comms.n_ever_planned;
    cpl_context.comms.n_planned += own != MPI_COMM_NULL;
}

void cpl_comm_state_free_orphaned(void)
{
    while (cpl_context.comms.first_orphaned) {
        struct cpl_comm_state *state = cpl_context.comms.first_orphaned;
        LL_DELETE(cpl_context.comms.first_orphaned, state);
        free_state(state);
    }
    cpl_memory_free();
}

int cpl_comm_state_deleted(MPI_Comm comm, int keyval, void *attribute, void *extra)
{
    (void)comm, (void)keyval, (void)extra;
    struct cpl_comm_state *state = attribute;
    CPL_CALL_HOOKS(end, (state));
    DL_DELETE2(cpl_context.comms.first, state, previous, next);
    cpl_context.comms.n_states--;
    for (int k = 0; k < CPL_MOST_JOINED && state->meeting.family.joined; k++)
        if (cpl_context.comms.family.state[k] == state)
            cpl_context.comms.family.state[k] = NULL;
    cpl_comm_state_forget_recent();
    if (state->persistent.kept) {
        state->comm = MPI_COMM_SELF; /* for errors */
        LL_PREPEND(cpl_context.comms.first_orphaned, state);
        return MPI_SUCCESS;
    }
    free_state(state);
    return MPI_SUCCESS;
}

void cpl_comm_state_set_aside(MPI_Comm comm)
{
    struct cpl_dying *d = cpl_memory_need(sizeof *d, "a communicator");
    *d = (struct cpl_dying){.comm = comm, .set_aside = true};
    LL_PREPEND2(cpl_context.comms.dying, d, outer);
}

void cpl_comm_state_take_back(MPI_Comm comm)
{
    struct cpl_dying *d, *outer;
    LL_FOREACH_SAFE2(cpl_context.comms.dying, d, outer, outer)
    {
        if (!d->set_aside || d->comm != comm)
            continue;
        LL_DELETE2(cpl_context.comms.dying, d, outer);
        free(d);
    }
}

/* MPI refuses to free its own ones. */
void cpl_comm_state_before_free(MPI_Comm comm, struct cpl_dying *dying)
{
    void *state;
    int found = 0;
    cpl_comm_state_take_back(comm);
    *dying = (struct cpl_dying){.comm = comm};
    bool known = comm != MPI_COMM_WORLD && comm != MPI_COMM_SELF &&
                 PMPI_Comm_get_attr(comm, cpl_context.comms.keyval, &state, &found) == MPI_SUCCESS;
    if (known && found)
        cpl_comm_state_release(state);
    LL_PREPEND2(cpl_context.comms.dying, dying, outer);
}

void cpl_comm_state_after_free(const struct cpl_dying *dying)
{
    LL_DELETE2(cpl_context.comms.dying, dying, outer); /* there may be a later one by now */
}

void cpl_comm_state_free_inner(MPI_Comm comm)
{
    struct cpl_dying dying;
    MPI_Comm inner = cpl_graph_take_inner(comm);
    if (inner == MPI_COMM_NULL)
        return;
    cpl_comm_state_before_free(inner, &dying);
    PMPI_Comm_free(&inner);
    cpl_comm_state_after_free(&dying);
}

void cpl_comm_state_release(struct cpl_comm_state *state)
{
    CPL_CALL_HOOKS(before_free, (state));
    PMPI_Comm_delete_attr(state->comm, cpl_context.comms.keyval); /* calls cpl_comm_state_deleted */
}
