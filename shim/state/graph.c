/* Which ranks of a graph communicator have neighbours (graph.h). */
#include "shim/state/graph.h"

#include "shim/state/context.h"
#include "shim/state/memory.h"

#include <stdlib.h>

static const struct cpl_graph all_have_some = {.n = 0};

/* MPI's callbacks. */
static int copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *copied)
{
    (void)comm, (void)keyval, (void)extra;
    struct cpl_graph *graph = in;
    if (graph->n > 0)
        graph->n_known_by++;
    *(void **)out = in;
    *copied = true;
    return MPI_SUCCESS;
}

static int forget(MPI_Comm comm, int keyval, void *attribute, void *extra)
{
    (void)comm, (void)keyval, (void)extra;
    struct cpl_graph *graph = attribute;
    if (graph->n > 0 && --graph->n_known_by == 0)
        free(graph);
    return MPI_SUCCESS;
}

bool cpl_graph_start(void)
{
    cpl_context.comms.graph = MPI_KEYVAL_INVALID;
    return PMPI_Comm_create_keyval(copy, forget, &cpl_context.comms.graph, NULL) == MPI_SUCCESS;
}

void cpl_graph_stop(void)
{
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

/* NULL: nobody has any. */
static const struct cpl_graph *list(const unsigned char *has, int n)
{
    int n_having = 0;
    for (int r = 0; r < n; r++)
        n_having += has[r] != 0;
    if (n_having == n || n_having == 0)
        return n_having == n ? &all_have_some : NULL;
    struct cpl_graph *graph =
        cpl_memory_need(sizeof *graph + (size_t)n_having * sizeof *graph->rank, "a graph's ranks");
    for (int r = 0; r < n; r++)
        if (has[r])
            graph->rank[graph->n++] = r;
    graph->n_known_by = 1;
    return graph;
}

void cpl_graph_keep(MPI_Comm comm, const unsigned char *has, int n)
{
    const struct cpl_graph *graph = list(has, n);
    if (graph)
        PMPI_Comm_set_attr(comm, cpl_context.comms.graph, (void *)(uintptr_t)graph);
}

const struct cpl_graph *cpl_graph_of(MPI_Comm comm)
{
    void *graph;
    int topology = MPI_UNDEFINED, found = 0;
    if (PMPI_Topo_test(comm, &topology) == MPI_SUCCESS && topology == MPI_CART)
        return &all_have_some;
    PMPI_Comm_get_attr(comm, cpl_context.comms.graph, &graph, &found);
    return found ? graph : NULL;
}

static int compare_ranks(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

int cpl_graph_number(const struct cpl_graph *graph, int rank)
{
    if (graph->n == 0)
        return rank;
    const int *found =
        bsearch(&rank, graph->rank, (size_t)graph->n, sizeof *graph->rank, compare_ranks);
    return found ? (int)(found - graph->rank) : -1;
}
