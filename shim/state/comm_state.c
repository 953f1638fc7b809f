/* Per-communicator state (comm_state.h). */
#include "shim/state/comm_state.h"

#include "shim/state/context.h"
#include "shim/state/hooks.h"
#include "shim/state/memory.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define WHAT "a communicator"

struct cpl_context cpl_context;

/* ---- graphs */

static struct cpl_graph whole = {.inner = MPI_COMM_NULL};

/* MPI's callback. A copy of the communicator has no inner one before it gets its own. */
static int copy_graph(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *copied)
{
    (void)comm, (void)keyval, (void)extra;
    *copied = in == &whole;
    *(void **)out = in;
    return MPI_SUCCESS;
}

bool cpl_graph_start(void)
{
    cpl_context.comms.graph = MPI_KEYVAL_INVALID;
    return PMPI_Comm_create_keyval(copy_graph, MPI_COMM_NULL_DELETE_FN, &cpl_context.comms.graph,
                                   NULL) == MPI_SUCCESS;
}

static void forget_graph(struct cpl_graph *graph)
{
    LL_DELETE(cpl_context.comms.first_graph, graph);
    free(graph);
}

void cpl_graph_stop(void)
{
    struct cpl_graph *graph;
    while ((graph = cpl_context.comms.first_graph)) {
        PMPI_Comm_free(&graph->inner);
        forget_graph(graph);
    }
    if (cpl_context.comms.graph != MPI_KEYVAL_INVALID)
        PMPI_Comm_free_keyval(&cpl_context.comms.graph);
}

void cpl_graph_keep(MPI_Comm comm, MPI_Comm inner)
{
    struct cpl_graph *graph = &whole;
    if (inner != MPI_COMM_NULL) {
        graph = cpl_memory_need(sizeof *graph, "a graph");
        int size = 0;
        PMPI_Comm_size(comm, &size);
        graph->comm = comm;
        graph->inner = inner;
        graph->number = size == cpl_context.size ? ++cpl_context.comms.n_graphs : 0;
        LL_PREPEND(cpl_context.comms.first_graph, graph);
    }
    PMPI_Comm_set_attr(comm, cpl_context.comms.graph, graph);
}

const struct cpl_graph *cpl_graph_of(MPI_Comm comm)
{
    void *graph;
    int topology = MPI_UNDEFINED, found = 0;
    if (PMPI_Topo_test(comm, &topology) == MPI_SUCCESS && topology == MPI_CART)
        return &whole;
    PMPI_Comm_get_attr(comm, cpl_context.comms.graph, &graph, &found);
    return found ? graph : NULL;
}

MPI_Comm cpl_graph_find_inner(MPI_Comm comm)
{
    const struct cpl_graph *graph = comm != MPI_COMM_NULL ? cpl_graph_of(comm) : NULL;
    MPI_Errhandler handler;
    if (!graph || graph->inner == MPI_COMM_NULL)
        return comm;
    PMPI_Comm_get_errhandler(comm, &handler);
    PMPI_Comm_set_errhandler(graph->inner, handler);
    PMPI_Errhandler_free(&handler);
    return graph->inner;
}

/* ---- states */

static void free_state(struct cpl_comm_state *state)
{
    if (state->private_comm != MPI_COMM_NULL) {
        PMPI_Comm_free(&state->private_comm);
        cpl_context.comms.n_planned--;
    }
    cpl_adjacency_free(&state->adjacency);
    if (!state->blank) {
        free(state->line);
        free(state->pt2pt);
        free(state->serve);
    }
    free(state->exchanges);
    free(state->allgathers.kept);
    free(state);
}

void cpl_comm_state_begin(struct cpl_comm_state *state)
{
    CPL_CALL_HOOKS(begin, (state));
    state->blank = false;
    cpl_memory_put_by();
}

/* Waits for memory: the other ranks have a state of the communicator and meet, so a rank without
 * one would be alone in MPI's call. */
static struct cpl_comm_state *make_state(MPI_Comm comm)
{
    struct cpl_comm_state *state = cpl_memory_need(sizeof *state, WHAT);
    int inter = 0, topology = MPI_UNDEFINED, tries = 0;
    state->comm = comm;
    state->meeting.family.number = comm == MPI_COMM_WORLD;
    state->private_comm = MPI_COMM_NULL;
    PMPI_Comm_rank(comm, &state->rank);
    PMPI_Comm_size(comm, &state->size);
    PMPI_Comm_test_inter(comm, &inter);
    PMPI_Topo_test(comm, &topology);
    state->inter = inter;
    state->has_topology = !inter && topology != MPI_UNDEFINED;
    const struct cpl_graph *graph = state->has_topology ? cpl_graph_of(comm) : NULL;
    state->watched = graph && graph->inner == MPI_COMM_NULL && state->size > 1;
    state->blank = true;
    CPL_CALL_HOOKS(meet, (state));
    while (state->watched && !cpl_adjacency_query(comm, &state->adjacency))
        cpl_memory_wait(&tries, WHAT);
    while (PMPI_Comm_set_attr(comm, cpl_context.comms.keyval, state) != MPI_SUCCESS)
        cpl_memory_wait(&tries, WHAT);
    cpl_memory_put_by();
    DL_APPEND2(cpl_context.comms.first, state, previous, next);
    cpl_context.comms.n_states++;
    return state;
}

/* A communicator that is set aside: MPI is freeing it, or it is left to MPI. */
struct cpl_dying {
    MPI_Comm comm;
    struct cpl_dying *next;
};

static bool is_aside(MPI_Comm comm)
{
    const struct cpl_dying *d;
    LL_SEARCH_SCALAR(cpl_context.comms.dying, d, comm, comm);
    return d;
}

struct cpl_comm_state *cpl_comm_state_find(MPI_Comm comm)
{
    void *state;
    int found;
    if (comm == MPI_COMM_NULL || is_aside(comm) ||
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
    struct cpl_dying *d = cpl_memory_need(sizeof *d, WHAT);
    d->comm = comm;
    LL_PREPEND(cpl_context.comms.dying, d);
}

void cpl_comm_state_take_back(MPI_Comm comm)
{
    struct cpl_dying *d, *next;
    LL_FOREACH_SAFE(cpl_context.comms.dying, d, next)
    {
        if (d->comm != comm)
            continue;
        LL_DELETE(cpl_context.comms.dying, d);
        free(d);
    }
}

/* MPI refuses to free its own ones. */
void cpl_comm_state_before_free(MPI_Comm comm)
{
    void *state;
    int found = 0;
    cpl_comm_state_take_back(comm);
    bool known = comm != MPI_COMM_WORLD && comm != MPI_COMM_SELF &&
                 PMPI_Comm_get_attr(comm, cpl_context.comms.keyval, &state, &found) == MPI_SUCCESS;
    if (known && found)
        cpl_comm_state_release(state);
    cpl_comm_state_set_aside(comm);
}

void cpl_comm_state_free_inner(MPI_Comm comm)
{
    struct cpl_graph *graph;
    int found = 0;
    if (!cpl_context.comms.first_graph || comm == MPI_COMM_NULL)
        return;
    PMPI_Comm_get_attr(comm, cpl_context.comms.graph, &graph, &found);
    if (!found || graph == &whole)
        return;
    MPI_Comm inner = graph->inner, freed = inner;
    PMPI_Comm_delete_attr(comm, cpl_context.comms.graph);
    forget_graph(graph);
    cpl_comm_state_before_free(inner);
    PMPI_Comm_free(&inner);
    cpl_comm_state_take_back(freed);
}

void cpl_comm_state_release(struct cpl_comm_state *state)
{
    CPL_CALL_HOOKS(before_free, (state));
    PMPI_Comm_delete_attr(state->comm, cpl_context.comms.keyval); /* calls cpl_comm_state_deleted */
}
