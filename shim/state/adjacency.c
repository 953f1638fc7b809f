/* Neighbours of a rank (adjacency.h). */
#include "shim/state/adjacency.h"

#include <stdlib.h>
#include <string.h>

static int *new_ints(int n)
{
    return calloc((size_t)n + 1, sizeof(int));
}

static bool allocate_peers(struct cpl_adjacency *a, int n_in, int n_out)
{
    a->in.n = n_in;
    a->out.n = n_out;
    a->in.peer = new_ints(n_in);
    a->out.peer = new_ints(n_out);
    return a->in.peer && a->out.peer;
}

static bool query_dist_graph(MPI_Comm comm, struct cpl_adjacency *a)
{
    int n_in, n_out, weighted;
    if (PMPI_Dist_graph_neighbors_count(comm, &n_in, &n_out, &weighted) != MPI_SUCCESS ||
        !allocate_peers(a, n_in, n_out))
        return false;
    int *weights = new_ints(n_in + n_out);
    /* MPI does not write weights of an unweighted graph. */
    bool done = weights && PMPI_Dist_graph_neighbors(comm, n_in, a->in.peer, weights, n_out,
                                                     a->out.peer, weights + n_in) == MPI_SUCCESS;
    free(weights);
    return done;
}

/* A grid has two neighbours a dimension: the one below, then the one above. */
static bool query_both_ways(MPI_Comm comm, bool is_grid, int rank, struct cpl_adjacency *a)
{
    int n = 0;
    if ((is_grid ? PMPI_Cartdim_get(comm, &n) : PMPI_Graph_neighbors_count(comm, rank, &n)) !=
        MPI_SUCCESS)
        return false;
    n *= is_grid ? 2 : 1;
    if (!allocate_peers(a, n, n) ||
        (!is_grid && PMPI_Graph_neighbors(comm, rank, n, a->in.peer) != MPI_SUCCESS))
        return false;
    for (int k = 0; is_grid && k < n; k += 2)
        if (PMPI_Cart_shift(comm, k / 2, 1, &a->in.peer[k], &a->in.peer[k + 1]) != MPI_SUCCESS)
            return false;
    memcpy(a->out.peer, a->in.peer, (size_t)n * sizeof(int));
    return true;
}

struct keyed {
    int peer, number;
};

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->peer != y->peer)
        return x->peer < y->peer ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Walks the neighbours in order of rank and fills the grouped arrays. */
static void fill_groups(struct cpl_neighbors *n, const struct keyed *sorted, int self)
{
    int n_parts = 0;
    for (int k = 0; k < n->n; k++) {
        int peer = sorted[k].peer, number = sorted[k].number;
        bool repeated = k > 0 && sorted[k - 1].peer == peer;
        n->ordinal[number] = repeated ? n->ordinal[sorted[k - 1].number] + 1 : 0;
        n->message[number] = -1;
        if (peer == MPI_PROC_NULL)
            continue;
        if (peer == self) {
            n->self[n->n_self++] = number;
            continue;
        }
        if (!repeated) {
            n->rank[n->n_messages] = peer;
            n->first_part[n->n_messages++] = n_parts;
        }
        n->message[number] = n->n_messages - 1;
        n->part[n_parts++] = number;
    }
    n->first_part[n->n_messages] = n_parts;
}

static bool group(struct cpl_neighbors *n, int self)
{
    const size_t room = (size_t)n->n + 2;
    struct keyed *sorted = calloc(room, sizeof *sorted);
    n->rank = calloc(6 * room, sizeof *n->rank);
    bool done = sorted && n->rank;
    if (done) {
        n->first_part = n->rank + room;
        n->part = n->first_part + room;
        n->self = n->part + room;
        n->ordinal = n->self + room;
        n->message = n->ordinal + room;
        for (int k = 0; k < n->n; k++)
            sorted[k] = (struct keyed){n->peer[k], k};
        qsort(sorted, (size_t)n->n, sizeof *sorted, compare_keyed);
        fill_groups(n, sorted, self);
    }
    free(sorted);
    return done;
}

/* The peers are known: groups them. Else, or when memory ran out, frees all and returns false. */
static bool finish(struct cpl_adjacency *a, bool known, int rank, struct cpl_adjacency *adjacency)
{
    if (!known || !group(&a->in, rank) || !group(&a->out, rank)) {
        cpl_adjacency_free(a);
        return false;
    }
    *adjacency = *a;
    return true;
}

bool cpl_adjacency_query(MPI_Comm comm, struct cpl_adjacency *adjacency)
{
    int topology, rank;
    struct cpl_adjacency a = {{0}, {0}};
    if (PMPI_Topo_test(comm, &topology) != MPI_SUCCESS ||
        PMPI_Comm_rank(comm, &rank) != MPI_SUCCESS)
        return false;
    bool done = (topology == MPI_DIST_GRAPH && query_dist_graph(comm, &a)) ||
                ((topology == MPI_GRAPH || topology == MPI_CART) &&
                 query_both_ways(comm, topology == MPI_CART, rank, &a));
    return finish(&a, done, rank, adjacency);
}

bool cpl_adjacency_make(int rank, int n_in, const int *in, int n_out, const int *out,
                        struct cpl_adjacency *adjacency)
{
    struct cpl_adjacency a = {{0}, {0}};
    bool done = allocate_peers(&a, n_in, n_out);
    if (done) {
        memcpy(a.in.peer, in, (size_t)n_in * sizeof *in);
        memcpy(a.out.peer, out, (size_t)n_out * sizeof *out);
    }
    return finish(&a, done, rank, adjacency);
}

static void free_neighbors(struct cpl_neighbors *n)
{
    free(n->peer);
    free(n->rank);
    *n = (struct cpl_neighbors){0};
}

void cpl_adjacency_free(struct cpl_adjacency *adjacency)
{
    free_neighbors(&adjacency->in);
    free_neighbors(&adjacency->out);
}
