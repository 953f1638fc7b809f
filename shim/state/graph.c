/* Graph communicators (graph.h). */
#include "shim/state/graph.h"

#include "shim/state/context.h"
#include "shim/state/memory.h"

#include <stdlib.h>
#include <utlist.h>

static struct cpl_graph whole = {.inner = MPI_COMM_NULL};

/* MPI's callback. A copy of the communicator has no inner one before it gets its own. */
static int copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *copied)
{
    (void)comm, (void)keyval, (void)extra;
    *copied = in == &whole;
    *(void **)out = in;
    return MPI_SUCCESS;
}

bool cpl_graph_start(void)
{
    cpl_context.comms.graph = MPI_KEYVAL_INVALID;
    return PMPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &cpl_context.comms.graph, NULL) ==
           MPI_SUCCESS;
}

static void forget(struct cpl_graph *graph)
{
    LL_DELETE(cpl_context.comms.first_graph, graph);
    free(graph);
}

void cpl_graph_stop(void)
{
    struct cpl_graph *graph;
    while ((graph = cpl_context.comms.first_graph)) {
        PMPI_Comm_free(&graph->inner);
        forget(graph);
    }
    if (cpl_context.comms.graph != MPI_KEYVAL_INVALID)
        PMPI_Comm_free_keyval(&cpl_context.comms.graph);
}

bool cpl_graph_has_neighbors(MPI_Comm comm)
{
    int topology = MPI_UNDEFINED, rank = 0, n_in = 0, n_out = 0, weighted = 0;
    PMPI_Topo_test(comm, &topology);
    if (topology == MPI_DIST_GRAPH)
        PMPI_Dist_graph_neighbors_count(comm, &n_in, &n_out, &weighted);
    else if (topology == MPI_GRAPH && PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS)
        PMPI_Graph_neighbors_count(comm, rank, &n_in);
    return n_in + n_out > 0;
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

MPI_Comm cpl_graph_inner(MPI_Comm comm)
{
    const struct cpl_graph *graph =
        cpl_context.comms.first_graph && comm != MPI_COMM_NULL ? cpl_graph_of(comm) : NULL;
    MPI_Errhandler handler;
    if (!graph || graph->inner == MPI_COMM_NULL)
        return comm;
    PMPI_Comm_get_errhandler(comm, &handler);
    PMPI_Comm_set_errhandler(graph->inner, handler);
    PMPI_Errhandler_free(&handler);
    return graph->inner;
}

MPI_Comm cpl_graph_take_inner(MPI_Comm comm)
{
    struct cpl_graph *graph;
    int found = 0;
    if (!cpl_context.comms.first_graph || comm == MPI_COMM_NULL)
        return MPI_COMM_NULL;
    PMPI_Comm_get_attr(comm, cpl_context.comms.graph, &graph, &found);
    if (!found || graph == &whole)
        return MPI_COMM_NULL;
    MPI_Comm inner = graph->inner;
    PMPI_Comm_delete_attr(comm, cpl_context.comms.graph);
    forget(graph);
    return inner;
}
