/* Distributed graphs and neighborhood collectives for SimGrid's MPI (standin.h). A graph's
 * communicator is a duplicate with the graph as an attribute. Weights are not kept: SMPI has no use
 * for them, and a graph made here says that it has none. One thread a rank. */
#include "standin.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#undef PMPI_Comm_get_attr
#undef PMPI_Comm_set_attr

struct graph {
    int n_in, n_out;
    int *in, *out;
};

static int graph_keyval = MPI_KEYVAL_INVALID;

#define TAG 0x6a /* of neighborhood collectives, on the graph's own communicator */

static void free_graph(struct graph *graph)
{
    free(graph->in);
    free(graph->out);
    free(graph);
}

static int graph_deleted(MPI_Comm comm, int keyval, void *attribute, void *extra)
{
    (void)comm, (void)keyval, (void)extra;
    free_graph(attribute);
    return MPI_SUCCESS;
}

/* Like MPI_Graph and MPI_Dist_graph topologies, a graph goes with MPI_Comm_dup. */
static struct graph *copy_graph(const struct graph *from)
{
    struct graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return NULL;
    *graph = (struct graph){from->n_in, from->n_out, calloc((size_t)from->n_in + 1, sizeof(int)),
                            calloc((size_t)from->n_out + 1, sizeof(int))};
    if (!graph->in || !graph->out) {
        free_graph(graph);
        return NULL;
    }
    memcpy(graph->in, from->in, (size_t)from->n_in * sizeof(int));
    memcpy(graph->out, from->out, (size_t)from->n_out * sizeof(int));
    return graph;
}

static int graph_copied(MPI_Comm comm, int keyval, void *extra, void *attribute, void *copy,
                        int *is_copied)
{
    (void)comm, (void)keyval, (void)extra;
    struct graph *graph = copy_graph(attribute);
    *(void **)copy = graph;
    *is_copied = graph != NULL;
    return graph ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static struct graph *graph_of(MPI_Comm comm)
{
    void *graph = NULL;
    int found = 0;
    if (graph_keyval == MPI_KEYVAL_INVALID || comm == MPI_COMM_NULL || comm == MPI_COMM_WORLD ||
        PMPI_Comm_get_attr(comm, graph_keyval, &graph, &found) != MPI_SUCCESS)
        return NULL;
    return found ? graph : NULL;
}

int PMPI_Dist_graph_create_adjacent(MPI_Comm comm, int n_in, const int *sources,
                                    const int *source_weights, int n_out, const int *destinations,
                                    const int *weights, MPI_Info info, int reorder, MPI_Comm *graph)
{
    (void)source_weights, (void)weights, (void)info, (void)reorder;
    struct graph given = {n_in, n_out, (int *)(uintptr_t)sources, (int *)(uintptr_t)destinations};
    int result = MPI_SUCCESS;
    if (graph_keyval == MPI_KEYVAL_INVALID)
        result = PMPI_Comm_create_keyval(graph_copied, graph_deleted, &graph_keyval, NULL);
    if (result == MPI_SUCCESS)
        result = PMPI_Comm_dup(comm, graph);
    if (result != MPI_SUCCESS)
        return result;
    struct graph *kept = copy_graph(&given);
    return kept ? PMPI_Comm_set_attr(*graph, graph_keyval, kept) : MPI_ERR_NO_MEM;
}

int PMPI_Topo_test(MPI_Comm comm, int *topology)
{
    *topology = graph_of(comm) ? MPI_DIST_GRAPH : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int PMPI_Dist_graph_neighbors_count(MPI_Comm comm, int *n_in, int *n_out, int *weighted)
{
    const struct graph *graph = graph_of(comm);
    if (!graph)
        return MPI_ERR_TOPOLOGY;
    *n_in = graph->n_in;
    *n_out = graph->n_out;
    *weighted = 0;
    return MPI_SUCCESS;
}

int PMPI_Dist_graph_neighbors(MPI_Comm comm, int n_in, int *sources, int *source_weights, int n_out,
                              int *destinations, int *weights)
{
    const struct graph *graph = graph_of(comm);
    (void)source_weights, (void)weights;
    if (!graph)
        return MPI_ERR_TOPOLOGY;
    memcpy(sources, graph->in, (size_t)(n_in < graph->n_in ? n_in : graph->n_in) * sizeof(int));
    memcpy(destinations, graph->out,
           (size_t)(n_out < graph->n_out ? n_out : graph->n_out) * sizeof(int));
    return MPI_SUCCESS;
}

/* One side of a call: the data of neighbour k. */
struct side {
    char *buffer;
    const int *counts; /* NULL: count */
    const int *displs;
    int count;
    MPI_Datatype type;
    MPI_Aint extent;
};

static int count_of(const struct side *side, int k)
{
    return side->counts ? side->counts[k] : side->count;
}

static void *address_of(const struct side *side, int k)
{
    MPI_Aint at = side->counts ? side->displs[k] : (MPI_Aint)k * side->count;
    return side->buffer + at * side->extent;
}

static int find_extent(struct side *side)
{
    MPI_Aint lower;
    return PMPI_Type_get_extent(side->type, &lower, &side->extent);
}

/* Like MPI_Waitall, for which SMPI spends O(n) on each of n requests: here on each arrival that
 * finds the rank idle. In simulated time both are the same: what has arrived is dealt with at once.
 */
static int wait_for_all(int n, MPI_Request *requests, int *indices)
{
    int n_done = 0, result = MPI_SUCCESS;
    while (n > 0 && result == MPI_SUCCESS) {
        int n_left = 0;
        result = PMPI_Waitsome(n, requests, &n_done, indices, MPI_STATUSES_IGNORE);
        if (n_done == MPI_UNDEFINED)
            break;
        for (int k = 0; k < n; k++)
            if (requests[k] != MPI_REQUEST_NULL)
                requests[n_left++] = requests[k];
        n = n_left;
    }
    return result;
}

/* MPICH's way: all sends are started, then all receives. */
static int start(const struct graph *graph, const struct side *sent, const struct side *received,
                 MPI_Comm comm, MPI_Request *requests)
{
    int result = MPI_SUCCESS;
    MPI_Request *receives = requests + graph->n_out;
    for (int k = 0; k < graph->n_out && result == MPI_SUCCESS; k++)
        result = PMPI_Isend(address_of(sent, k), count_of(sent, k), sent->type, graph->out[k], TAG,
                            comm, &requests[k]);
    for (int k = 0; k < graph->n_in && result == MPI_SUCCESS; k++)
        result = PMPI_Irecv(address_of(received, k), count_of(received, k), received->type,
                            graph->in[k], TAG, comm, &receives[k]);
    return result;
}

/* A call that has been started. The handle of a nonblocking one is its address. */
struct call {
    struct call *next; /* of the nonblocking ones */
    int n_in, n_out;
    MPI_Request *requests; /* of the sends, then of the receives */
    int *indices;
};

static struct call *calls;

static void free_call(struct call *call)
{
    free(call->requests);
    free(call->indices);
    free(call);
}

/* Returns NULL with the error in *result when it cannot be started. */
static struct call *begin(struct side sent, struct side received, MPI_Comm comm, int *result)
{
    const struct graph *graph = graph_of(comm);
    struct call *call = graph ? calloc(1, sizeof *call) : NULL;
    *result = graph ? MPI_ERR_NO_MEM : MPI_ERR_TOPOLOGY;
    if (!call)
        return NULL;
    call->n_in = graph->n_in;
    call->n_out = graph->n_out;
    size_t n = (size_t)graph->n_in + (size_t)graph->n_out + 1;
    call->requests = calloc(n, sizeof *call->requests);
    call->indices = calloc(n, sizeof *call->indices);
    if (call->requests && call->indices)
        *result = find_extent(&sent);
    if (*result == MPI_SUCCESS)
        *result = find_extent(&received);
    if (*result == MPI_SUCCESS)
        *result = start(graph, &sent, &received, comm, call->requests);
    if (*result == MPI_SUCCESS)
        return call;
    free_call(call);
    return NULL;
}

static int finish(struct call *call)
{
    int result = wait_for_all(call->n_in, call->requests + call->n_out, call->indices);
    for (int k = 0; k < call->n_out && result == MPI_SUCCESS; k++)
        result = PMPI_Wait(&call->requests[k], MPI_STATUS_IGNORE);
    free_call(call);
    return result;
}

static int carry(struct side sent, struct side received, MPI_Comm comm)
{
    int result;
    struct call *call = begin(sent, received, comm, &result);
    return call ? finish(call) : result;
}

static struct call **find_call(MPI_Request handle)
{
    struct call **at = &calls;
    while (*at && (MPI_Request)*at != handle)
        at = &(*at)->next;
    return at;
}

int cpl_sim_is_neighbor(MPI_Request request)
{
    return *find_call(request) != NULL;
}

int cpl_sim_end_neighbor(MPI_Request *request, int *flag)
{
    struct call **at = find_call(*request), *call = *at;
    int n = call->n_in + call->n_out, came = 1;
    for (int k = 0; flag && k < n && came; k++) {
        int result = call->requests[k] == MPI_REQUEST_NULL
                         ? MPI_SUCCESS
                         : PMPI_Test(&call->requests[k], &came, MPI_STATUS_IGNORE);
        if (result != MPI_SUCCESS)
            return result;
    }
    if (flag)
        *flag = came;
    if (!came)
        return MPI_SUCCESS;
    *at = call->next;
    *request = MPI_REQUEST_NULL;
    return finish(call);
}

int PMPI_Ineighbor_alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[],
                             MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                             const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                             MPI_Request *request)
{
    int result;
    struct call *call =
        begin((struct side){(char *)(uintptr_t)sendbuf, sendcounts, sdispls, 0, sendtype, 0},
              (struct side){recvbuf, recvcounts, rdispls, 0, recvtype, 0}, comm, &result);
    if (!call)
        return result;
    call->next = calls;
    calls = call;
    *request = (MPI_Request)call;
    return MPI_SUCCESS;
}

int PMPI_Neighbor_alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[],
                            MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                            const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
    return carry((struct side){(char *)(uintptr_t)sendbuf, sendcounts, sdispls, 0, sendtype, 0},
                 (struct side){recvbuf, recvcounts, rdispls, 0, recvtype, 0}, comm);
}

int PMPI_Neighbor_alltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                           int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    return carry((struct side){(char *)(uintptr_t)sendbuf, NULL, NULL, sendcount, sendtype, 0},
                 (struct side){recvbuf, NULL, NULL, recvcount, recvtype, 0}, comm);
}
