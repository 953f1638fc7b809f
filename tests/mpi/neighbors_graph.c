/*
 * Graphs for the program `neighbors`. Edge lists are computed alike on all ranks from the key; what
 * a rank then uses is what MPI says its neighbors are.
 */
#include "bench/alone.h"
#include "neighbors.h"

#include <stdlib.h>
#include <string.h>

const char *const kind_names[N_KINDS + 1] = {
    "random", "cart", "cartodd", "graph", "hub", "all", "ring", "empty", "sparse", "simple", NULL,
};

struct pairs {
    int n, n_max;
    int *from, *to;
};

static void add_pair(struct pairs *pairs, int from, int to)
{
    if (pairs->n == pairs->n_max) {
        int n_max = pairs->n_max > 0 ? 2 * pairs->n_max : 64;
        struct pairs larger = {.n = pairs->n, .n_max = n_max};
        larger.from = test_alloc((size_t)n_max * sizeof(int));
        larger.to = test_alloc((size_t)n_max * sizeof(int));
        for (int i = 0; i < pairs->n; i++) {
            larger.from[i] = pairs->from[i];
            larger.to[i] = pairs->to[i];
        }
        free(pairs->from);
        free(pairs->to);
        *pairs = larger;
    }
    pairs->from[pairs->n] = from;
    pairs->to[pairs->n++] = to;
}

static void free_pairs(struct pairs *pairs)
{
    free(pairs->from);
    free(pairs->to);
}

/* Random ranks, of which every sixth is left out; returns how many. */
static int pick_ranks(struct test_rng *rng, int size, int ranks[])
{
    int n = 0;
    for (int rank = 0; rank < size; rank++) {
        if (!test_chance(rng, 6))
            ranks[n++] = rank;
    }
    test_shuffle(rng, n, ranks);
    return n;
}

/* Duplicates, self edges and ranks without neighbors; some ranks have many neighbors. */
static void random_pairs(struct test_rng *rng, int size, struct pairs *pairs)
{
    int *ranks = test_alloc((size_t)size * sizeof(int));
    int n = pick_ranks(rng, size, ranks);

    for (int i = 0; i < 4 * n; i++) {
        int from = ranks[test_below(rng, test_chance(rng, 4) ? 1 : n)];
        int to = ranks[test_chance(rng, 5) ? n - 1 : test_below(rng, n)];
        add_pair(pairs, from, test_chance(rng, 8) ? from : to);
        if (test_chance(rng, 5))
            add_pair(pairs, pairs->from[pairs->n - 1], pairs->to[pairs->n - 1]);
    }
    free(ranks);
}

/* Each pair at most once. */
static void drop_duplicates(struct pairs *pairs)
{
    int n = 0;
    for (int i = 0; i < pairs->n; i++) {
        int j = 0;
        while (j < n && (pairs->from[j] != pairs->from[i] || pairs->to[j] != pairs->to[i]))
            j++;
        pairs->from[j] = pairs->from[i];
        pairs->to[j] = pairs->to[i];
        n += j == n;
    }
    pairs->n = n;
}

/* As many sources as destinations for every rank: those at some distances, alike for all. */
static void circulant_pairs(struct test_rng *rng, int size, struct pairs *pairs)
{
    for (int distance = 0; distance < size; distance++) {
        if (!test_chance(rng, 2))
            continue;
        for (int rank = 0; rank < size; rank++)
            add_pair(pairs, rank, (rank + distance) % size);
    }
}

/* Unions of random cycles, some twice: every rank has as many sources as destinations. */
static void equal_pairs(struct test_rng *rng, int size, struct pairs *pairs)
{
    int *ranks = test_alloc((size_t)size * sizeof(int));
    int n_cycles = 2 + test_below(rng, 5);

    for (int cycle = 0; cycle < n_cycles; cycle++) {
        int n = pick_ranks(rng, size, ranks);
        int step = test_chance(rng, 6) ? 0 : 1; /* 0: self edges */
        int n_times = test_chance(rng, 3) ? 2 : 1;
        for (int i = 0; i < n * n_times; i++)
            add_pair(pairs, ranks[i % n], ranks[(i + step) % n]);
    }
    free(ranks);
}

static void simple_pairs(enum kind kind, int variant, int size, struct pairs *pairs)
{
    for (int rank = 0; rank < size; rank++) {
        int right = (rank + 1) % size;
        if (kind == KIND_HUB && rank > 0)
            add_pair(pairs, 0, rank);
        if (kind == KIND_RING)
            add_pair(pairs, rank, right);
        if (kind == KIND_RING && variant % 2 == 1)
            add_pair(pairs, right, rank);
        for (int to = 0; kind == KIND_ALL && to < size; to++)
            add_pair(pairs, rank, to);
    }
}

/* The communicator that a graph is created on and that is freed then: the ranks of the world, in
 * every third variant in opposite order. */
static MPI_Comm parent_of(int variant)
{
    MPI_Comm parent;
    MPI_Comm_split(MPI_COMM_WORLD, 0, variant % 3 == 2 ? -test_rank() : test_rank(), &parent);
    return parent;
}

static int rank_in(MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

/* The other ends of a rank's edges in one direction, shuffled; returns how many. */
static int ends_of(const int *mine, const int *other, const struct pairs *pairs, int rank,
                   struct test_rng *rng, int ends[])
{
    int n_ends = 0;
    for (int i = 0; i < pairs->n; i++) {
        if (mine[i] == rank)
            ends[n_ends++] = other[i];
    }
    test_shuffle(rng, n_ends, ends);
    return n_ends;
}

static MPI_Comm create_adjacent(MPI_Comm parent, const struct pairs *pairs, bool weighted,
                                uint64_t key)
{
    int rank = rank_in(parent);
    struct test_rng rng = {test_key(key, 1000 + test_rank())};
    size_t n = (size_t)pairs->n;
    int *in = test_alloc(n * sizeof(int)), *out = test_alloc(n * sizeof(int));
    int *weights = test_alloc(n * sizeof(int));
    int n_in = ends_of(pairs->to, pairs->from, pairs, rank, &rng, in);
    int n_out = ends_of(pairs->from, pairs->to, pairs, rank, &rng, out);
    int *given = weighted ? weights : MPI_UNWEIGHTED;
    MPI_Comm comm;

    for (size_t i = 0; i < n; i++)
        weights[i] = test_below(&rng, 100);
    MPI_Dist_graph_create_adjacent(parent, n_in, in, given, n_out, out, given, MPI_INFO_NULL, 0,
                                   &comm);
    free(in);
    free(out);
    free(weights);
    return comm;
}

/* Every edge is given by some rank, seldom one of its ends. */
static MPI_Comm create_sparse(MPI_Comm parent, const struct pairs *pairs, uint64_t key)
{
    struct test_rng rng = {test_key(key, 2)};
    size_t n = (size_t)pairs->n;
    int *from = test_alloc(n * sizeof(int)), *to = test_alloc(n * sizeof(int));
    int *degrees = test_alloc(n * sizeof(int));
    int n_mine = 0;
    MPI_Comm comm;

    for (int i = 0; i < pairs->n; i++) {
        degrees[i] = 1;
        if (test_below(&rng, test_size()) == test_rank()) {
            from[n_mine] = pairs->from[i];
            to[n_mine++] = pairs->to[i];
        }
    }
    MPI_Dist_graph_create(parent, n_mine, from, degrees, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                          &comm);
    free(from);
    free(to);
    free(degrees);
    return comm;
}

static MPI_Comm create_graph(MPI_Comm parent, struct test_rng *rng)
{
    int size = test_size(), n = 0;
    struct pairs pairs = {0};
    int *index = test_alloc((size_t)size * sizeof(int)), *ends;
    MPI_Comm comm;

    for (int i = 0; i < 2 * size; i++) {
        int a = test_below(rng, size), b = test_below(rng, size);
        add_pair(&pairs, a, b);
        if (a != b)
            add_pair(&pairs, b, a);
    }
    ends = test_alloc((size_t)pairs.n * sizeof(int));
    for (int rank = 0; rank < size; rank++) {
        for (int i = 0; i < pairs.n; i++) {
            if (pairs.from[i] == rank)
                ends[n++] = pairs.to[i];
        }
        index[rank] = n;
    }
    MPI_Graph_create(parent, size, index, ends, 0, &comm);
    free_pairs(&pairs);
    free(index);
    free(ends);
    return comm;
}

static MPI_Comm create_cart(MPI_Comm parent, enum kind kind, int variant)
{
    int size = test_size();
    int n_dims = variant % 2 == 0 ? 2 : 3;
    int dims[3] = {0}, periods[3] = {1, 0, 1};
    MPI_Comm comm;

    if (kind == KIND_CARTODD) { /* narrow, all periodic, or without the last rank */
        size -= size > 2 && variant % 2 == 1;
        dims[0] = size % 2 == 0 ? 2 : 1;
        dims[2] = 1;
        periods[1] = variant % 2 == 0;
        n_dims = variant % 3 == 1 ? 2 : 3;
    }
    MPI_Dims_create(size, n_dims, dims);
    MPI_Cart_create(parent, n_dims, dims, periods, 0, &comm);
    return comm;
}

static MPI_Comm create_pairs(MPI_Comm parent, enum kind kind, int variant, bool equal, uint64_t key)
{
    struct test_rng rng = {test_key(key, 3)};
    struct pairs pairs = {0};
    MPI_Comm comm;

    if (kind == KIND_SIMPLE && equal)
        circulant_pairs(&rng, test_size(), &pairs);
    else if (kind != KIND_RANDOM && kind != KIND_SPARSE && kind != KIND_SIMPLE)
        simple_pairs(kind, variant, test_size(), &pairs);
    else if (equal)
        equal_pairs(&rng, test_size(), &pairs);
    else
        random_pairs(&rng, test_size(), &pairs);
    if (kind == KIND_SIMPLE)
        drop_duplicates(&pairs);
    if (kind == KIND_SPARSE)
        comm = create_sparse(parent, &pairs, key);
    else
        comm = create_adjacent(parent, &pairs, variant % 2 == 1, key);
    free_pairs(&pairs);
    return comm;
}

static struct edge *number_edges(int n, const int peers[])
{
    struct edge *edges = test_alloc((size_t)n * sizeof *edges);
    for (int i = 0; i < n; i++) {
        edges[i] = (struct edge){.peer = peers[i]};
        for (int j = 0; j < i; j++)
            edges[i].k += peers[j] == peers[i];
        edges[i].k_alltoall = edges[i].k;
    }
    return edges;
}

static void query_cart(struct graph *graph)
{
    int n_dims;
    int *peers;

    MPI_Cartdim_get(graph->comm, &n_dims);
    peers = test_alloc(2 * (size_t)n_dims * sizeof(int));
    for (int dim = 0; dim < n_dims; dim++)
        MPI_Cart_shift(graph->comm, dim, 1, &peers[2 * dim], &peers[2 * dim + 1]);
    graph->n_in = graph->n_out = 2 * n_dims;
    graph->in = number_edges(graph->n_in, peers);
    graph->out = number_edges(graph->n_out, peers);
    free(peers);
}

static void query_graph(struct graph *graph)
{
    int n;
    int *peers;

    MPI_Graph_neighbors_count(graph->comm, graph->rank, &n);
    peers = test_alloc((size_t)n * sizeof(int));
    MPI_Graph_neighbors(graph->comm, graph->rank, n, peers);
    graph->n_in = graph->n_out = n;
    graph->in = number_edges(n, peers);
    graph->out = number_edges(n, peers);
    free(peers);
}

static void query_dist_graph(struct graph *graph)
{
    int n_in, n_out, weighted;
    int *in, *out, *weights;

    MPI_Dist_graph_neighbors_count(graph->comm, &n_in, &n_out, &weighted);
    in = test_alloc((size_t)n_in * sizeof(int));
    out = test_alloc((size_t)n_out * sizeof(int));
    weights = test_alloc((size_t)(n_in + n_out) * sizeof(int));
    MPI_Dist_graph_neighbors(graph->comm, n_in, in, weighted ? weights : MPI_UNWEIGHTED, n_out, out,
                             weighted ? weights + n_in : MPI_UNWEIGHTED);
    graph->n_in = n_in;
    graph->n_out = n_out;
    graph->in = number_edges(n_in, in);
    graph->out = number_edges(n_out, out);
    free(in);
    free(out);
    free(weights);
}

/* Which edge of its sender each edge comes from, as MPI alone pairs them: the sender tells its
 * number for it. To be called when all ranks have arrived here, as the library sees nothing of it.
 */
static void learn_pairs(struct graph *graph)
{
    int n = graph->n_in > graph->n_out ? graph->n_in : graph->n_out;
    int *sent = test_alloc((size_t)n * sizeof(int)), *got = test_alloc((size_t)n * sizeof(int));
    int *ones = test_alloc((size_t)n * sizeof(int)), *places = test_alloc((size_t)n * sizeof(int));

    for (int i = 0; i < n; i++) {
        sent[i] = i < graph->n_out ? graph->out[i].k : 0;
        ones[i] = 1;
        places[i] = i;
        got[i] = 0;
    }
    ALONE(Neighbor_alltoallv)(sent, ones, places, MPI_INT, got, ones, places, MPI_INT, graph->comm);
    for (int i = 0; i < graph->n_in; i++)
        graph->in[i].k = got[i];
    ALONE(Neighbor_alltoall)(sent, 1, MPI_INT, got, 1, MPI_INT, graph->comm);
    for (int i = 0; i < graph->n_in; i++)
        graph->in[i].k_alltoall = got[i];
    free(sent);
    free(got);
    free(ones);
    free(places);
}

static void query(struct graph *graph)
{
    int topology = MPI_UNDEFINED, any[2]; /* unequal, without neighbors */

    if (graph->comm != MPI_COMM_NULL) {
        MPI_Topo_test(graph->comm, &topology);
        graph->rank = rank_in(graph->comm);
    }
    if (topology == MPI_CART)
        query_cart(graph);
    else if (topology == MPI_GRAPH)
        query_graph(graph);
    else if (topology == MPI_DIST_GRAPH)
        query_dist_graph(graph);
    any[0] = graph->n_in != graph->n_out;
    any[1] = graph->comm != MPI_COMM_NULL && graph->n_in + graph->n_out == 0;
    MPI_Allreduce(MPI_IN_PLACE, any, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    graph->equal = !any[0];
    graph->whole = !any[1];
    if (graph->comm != MPI_COMM_NULL)
        learn_pairs(graph);
}

struct graph graph_make(enum kind kind, int variant, bool equal, uint64_t key)
{
    struct graph graph = {.kind = kind};
    struct test_rng rng = {test_key(key, 4)};
    MPI_Comm parent = parent_of(variant);

    if (kind == KIND_CART || kind == KIND_CARTODD)
        graph.comm = create_cart(parent, kind, variant);
    else if (kind == KIND_GRAPH)
        graph.comm = create_graph(parent, &rng);
    else
        graph.comm = create_pairs(parent, kind, variant, equal, key);
    MPI_Comm_free(&parent);
    query(&graph);
    return graph;
}

struct graph graph_dup(const struct graph *graph)
{
    struct graph twin = {.kind = graph->kind, .comm = MPI_COMM_NULL};

    if (graph->comm != MPI_COMM_NULL)
        MPI_Comm_dup(graph->comm, &twin.comm);
    query(&twin);
    return twin;
}

void graph_free(struct graph *graph)
{
    if (graph->comm != MPI_COMM_NULL)
        MPI_Comm_free(&graph->comm);
    free(graph->in);
    free(graph->out);
}
