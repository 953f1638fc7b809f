/*
 * Communicators that MPI may reorder: whatever process plays a rank, its neighbours, weights and
 * coordinates are those of the rank, and what travels along the edges is the same.
 *
 *   reorder [--rounds N] [--seed N]
 *
 * In each round a graph with random weights, a grid, or a ring dealt out in turn is made by every
 * call that there is, on MPI_COMM_WORLD or on a communicator in another order. Prints a hash of
 * what each rank of it has received, which does not depend on the process. Wrong arguments, grids
 * with fewer points than ranks and communicators of two groups are tried, too.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEGREE 12

/* A multigraph that every process knows: the out-edges of each rank. */
struct graph {
    int n;
    bool weighted;
    int *degree; /* n */
    int *dest;   /* n x MOST_DEGREE */
    int *weight;
};

/* A rank's neighbours as MPI_Dist_graph_create_adjacent takes them. */
struct list {
    int n_in, n_out;
    int *in, *in_weight, *out, *out_weight;
};

static void add(struct graph *g, int from, int to, int weight)
{
    int k = from * MOST_DEGREE + g->degree[from]++;
    g->dest[k] = to;
    g->weight[k] = weight;
}

static struct graph make_graph(struct test_rng *rng, int n, int round)
{
    size_t room = (size_t)n * MOST_DEGREE;
    struct graph g = {.n = n, .weighted = test_chance(rng, 2)};
    g.degree = test_alloc((size_t)n * sizeof(int));
    g.dest = test_alloc(room * sizeof(int));
    g.weight = test_alloc(room * sizeof(int));
    memset(g.degree, 0, (size_t)n * sizeof(int));
    for (int i = 0; i < n; i++) {
        if (round % 2 == 0) { /* pairs and stretches that lie far apart in rank order */
            add(&g, i, (i + n / 2) % n, 1 + test_below(rng, 100));
            add(&g, i, (i + n - n / 3) % n, 1 + test_below(rng, 5));
        }
        for (int k = test_below(rng, round % 2 == 0 ? 3 : MOST_DEGREE); k > 0; k--)
            add(&g, i, test_below(rng, n), test_below(rng, 50));
    }
    return g;
}

static void free_graph(struct graph *g)
{
    free(g->degree);
    free(g->dest);
    free(g->weight);
}

static struct list list_of(const struct graph *g, int rank)
{
    size_t room = (size_t)g->n * MOST_DEGREE * sizeof(int);
    struct list l = {0};
    l.in = test_alloc(room);
    l.in_weight = test_alloc(room);
    l.out = test_alloc(MOST_DEGREE * sizeof(int));
    l.out_weight = test_alloc(MOST_DEGREE * sizeof(int));
    for (int i = 0; i < g->n; i++)
        for (int k = 0; k < g->degree[i]; k++) {
            int edge = i * MOST_DEGREE + k;
            if (g->dest[edge] == rank) {
                l.in[l.n_in] = i;
                l.in_weight[l.n_in++] = g->weight[edge];
            }
            if (i == rank) {
                l.out[l.n_out] = g->dest[edge];
                l.out_weight[l.n_out++] = g->weight[edge];
            }
        }
    return l;
}

static void free_list(struct list *l)
{
    free(l->in);
    free(l->in_weight);
    free(l->out);
    free(l->out_weight);
}

/* What goes along an edge: its ends and some more. */
static int token(int from, int to)
{
    return from * 1000 + to;
}

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Exchanges a token along every edge, several times so that the library plans it, and hashes what
 * has come, in ascending order. */
static uint64_t exchange(MPI_Comm comm, int n_in, const int *in, int n_out, const int *out)
{
    int rank, *sent = test_alloc((size_t)n_out * sizeof(int) + 1),
              *got = test_alloc((size_t)n_in * sizeof(int) + 1);
    uint64_t hash = TEST_HASH_START;
    MPI_Comm_rank(comm, &rank);
    for (int call = 0; call < 3; call++) {
        for (int k = 0; k < n_out; k++)
            sent[k] = token(rank, out[k]) + call;
        for (int k = 0; k < n_in; k++)
            got[k] = -1;
        MPI_Neighbor_alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, comm);
        for (int k = 0; k < n_in; k++)
            if (in[k] != MPI_PROC_NULL && got[k] != token(in[k], rank) + call)
                test_fail("rank %d, call %d: %d from %d", rank, call, got[k], in[k]);
        qsort(got, (size_t)n_in, sizeof *got, compare_ints);
        hash = test_hash(hash, got, (size_t)n_in * sizeof *got);
    }
    free(sent);
    free(got);
    return hash;
}

/* The same processes, and errors still go to the old communicator's handler. */
static void check_comm(MPI_Comm old, MPI_Comm made)
{
    MPI_Group before, after;
    MPI_Errhandler old_handler, handler;
    int relation;
    MPI_Comm_group(old, &before);
    MPI_Comm_group(made, &after);
    MPI_Group_compare(before, after, &relation);
    if (relation == MPI_UNEQUAL)
        test_fail("other processes");
    MPI_Group_free(&before);
    MPI_Group_free(&after);
    MPI_Comm_get_errhandler(old, &old_handler);
    MPI_Comm_get_errhandler(made, &handler);
    if (handler != old_handler)
        test_fail("another error handler");
    MPI_Errhandler_free(&handler);
    MPI_Errhandler_free(&old_handler);
}

/* Sums what the ranks of the communicator have found, whoever plays them. */
static void print_sum(const char *what, MPI_Comm comm, uint64_t hash)
{
    int rank;
    uint64_t mine, sum;
    MPI_Comm_rank(comm, &rank);
    mine = test_key(hash, rank);
    MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, comm);
    test_print("%s %016llx\n", what, (unsigned long long)sum);
}

/* Whether two lists of ranks with weights are the same, the weights' order included among equals
 * when the whole order must be the same. */
static bool same_edges(int n, const int *ranks, const int *weights, const int *expected,
                       const int *expected_weights, bool in_order)
{
    uint64_t sums[2] = {0, 0};
    for (int k = 0; k < n; k++) {
        if (in_order && (ranks[k] != expected[k] || (weights && weights[k] != expected_weights[k])))
            return false;
        sums[0] += test_key((uint64_t)ranks[k], weights ? weights[k] : 0);
        sums[1] += test_key((uint64_t)expected[k], weights ? expected_weights[k] : 0);
    }
    return sums[0] == sums[1];
}

static void check_dist_graph(MPI_Comm comm, const struct graph *g, bool in_order)
{
    int rank, n_in, n_out, weighted;
    MPI_Comm_rank(comm, &rank);
    struct list l = list_of(g, rank);
    MPI_Dist_graph_neighbors_count(comm, &n_in, &n_out, &weighted);
    if (n_in != l.n_in || n_out != l.n_out || !weighted != !g->weighted)
        test_fail("rank %d has %d and %d neighbours, weighted %d", rank, n_in, n_out, weighted);
    int *in = test_alloc((size_t)(2 * n_in + 1) * sizeof(int));
    int *out = test_alloc((size_t)(2 * n_out + 1) * sizeof(int));
    MPI_Dist_graph_neighbors(comm, n_in, in, g->weighted ? in + n_in : MPI_UNWEIGHTED, n_out, out,
                             g->weighted ? out + n_out : MPI_UNWEIGHTED);
    if (n_in == l.n_in && n_out == l.n_out &&
        (!same_edges(n_in, in, g->weighted ? in + n_in : NULL, l.in, l.in_weight, in_order) ||
         !same_edges(n_out, out, g->weighted ? out + n_out : NULL, l.out, l.out_weight, in_order)))
        test_fail("rank %d has other neighbours", rank);
    print_sum("dist graph", comm, exchange(comm, n_in, in, n_out, out));
    free(in);
    free(out);
    free_list(&l);
}

static void try_adjacent(MPI_Comm old, const struct graph *g)
{
    int rank;
    MPI_Comm comm;
    MPI_Comm_rank(old, &rank);
    struct list l = list_of(g, rank);
    const int *in_weight = l.n_in > 0 ? l.in_weight : MPI_WEIGHTS_EMPTY;
    const int *out_weight = l.n_out > 0 ? l.out_weight : MPI_WEIGHTS_EMPTY;
    MPI_Dist_graph_create_adjacent(old, l.n_in, l.in, g->weighted ? in_weight : MPI_UNWEIGHTED,
                                   l.n_out, l.out, g->weighted ? out_weight : MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 1, &comm);
    check_comm(old, comm);
    check_dist_graph(comm, g, true);
    MPI_Comm_free(&comm);
    free_list(&l);
}

/* Rank i names the edges of rank 2 i and its like, so that others than their ends do. */
static void try_general(MPI_Comm old, const struct graph *g)
{
    int rank, n = 0, n_edges = 0;
    MPI_Comm comm;
    MPI_Comm_rank(old, &rank);
    int *source = test_alloc((size_t)g->n * sizeof(int));
    int *degree = test_alloc((size_t)g->n * sizeof(int));
    int *dest = test_alloc((size_t)g->n * MOST_DEGREE * sizeof(int));
    int *weight = test_alloc((size_t)g->n * MOST_DEGREE * sizeof(int));
    for (int i = 0; i < g->n; i++)
        if (i / 2 == rank || (i + g->n) / 2 == rank + g->n) {
            source[n] = i;
            degree[n++] = g->degree[i];
            for (int k = 0; k < g->degree[i]; k++, n_edges++) {
                dest[n_edges] = g->dest[i * MOST_DEGREE + k];
                weight[n_edges] = g->weight[i * MOST_DEGREE + k];
            }
        }
    const int *weights = n_edges > 0 ? weight : MPI_WEIGHTS_EMPTY;
    MPI_Dist_graph_create(old, n, source, degree, dest, g->weighted ? weights : MPI_UNWEIGHTED,
                          MPI_INFO_NULL, 1, &comm);
    check_comm(old, comm);
    check_dist_graph(comm, g, false);
    MPI_Comm_free(&comm);
    free(source);
    free(degree);
    free(dest);
    free(weight);
}

/* A ring whose neighbours lie half the ranks apart, from both sides. */
static void try_graph(MPI_Comm old, int n)
{
    int rank, count, neighbors[2];
    MPI_Comm comm;
    int *index = test_alloc((size_t)n * sizeof(int));
    int *edge = test_alloc(2 * (size_t)n * sizeof(int));
    int *at = test_alloc((size_t)n * sizeof(int)); /* the ring: 0, n/2, 1, n/2 + 1, ... */
    for (int k = 0; k < n; k++)
        at[k] = k % 2 == 0 ? k / 2 : (n + 1) / 2 + k / 2;
    for (int k = 0; k < n; k++) {
        index[at[k]] = 2 * (at[k] + 1);
        edge[2 * at[k]] = at[(k + 1) % n];
        edge[2 * at[k] + 1] = at[(k + n - 1) % n];
    }
    MPI_Graph_create(old, n, index, edge, 1, &comm);
    check_comm(old, comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Graph_neighbors_count(comm, rank, &count);
    MPI_Graph_neighbors(comm, rank, 2, neighbors);
    if (count != 2 || neighbors[0] != edge[2 * rank] || neighbors[1] != edge[2 * rank + 1])
        test_fail("rank %d of the graph has other neighbours", rank);
    print_sum("graph", comm, exchange(comm, 2, neighbors, 2, neighbors));
    MPI_Comm_free(&comm);
    free(index);
    free(edge);
    free(at);
}

static int wrap(int at, int size, int is_periodic)
{
    if (at < 0 || at >= size)
        return is_periodic ? (at + size) % size : -1;
    return at;
}

/* A plane of which one dimension is periodic; the second one is short. */
static void try_grid(MPI_Comm old, int n, int round)
{
    int dims[2] = {0, 0}, periods[2] = {round % 2, round / 2 % 2}, coords[2], neighbors[4], rank;
    MPI_Comm comm;
    MPI_Dims_create(n, 2, dims);
    MPI_Cart_create(old, 2, dims, periods, 1, &comm);
    check_comm(old, comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Cart_coords(comm, rank, 2, coords);
    if (coords[0] != rank / dims[1] || coords[1] != rank % dims[1])
        test_fail("rank %d is at %d, %d", rank, coords[0], coords[1]);
    for (int d = 0; d < 2; d++) {
        for (int k = 0; k < 2; k++) {
            int to[2] = {coords[0], coords[1]};
            to[d] = wrap(to[d] + (k == 0 ? -1 : 1), dims[d], periods[d]);
            neighbors[2 * d + k] = to[d] < 0 ? MPI_PROC_NULL : to[0] * dims[1] + to[1];
        }
        int before, after;
        MPI_Cart_shift(comm, d, 1, &before, &after);
        if (before != neighbors[2 * d] || after != neighbors[2 * d + 1])
            test_fail("rank %d lies between %d and %d in dimension %d", rank, before, after, d);
    }
    print_sum("grid", comm, exchange(comm, 4, neighbors, 4, neighbors));
    MPI_Comm_free(&comm);
}

/* The error class of each wrong call, the same on all ranks. */
static void try_wrong(MPI_Comm old, int n)
{
    int dims[1] = {n + 1}, periods[1] = {1}, far = n, weight = -1, zero = 0, class_[3] = {0};
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(old, &handler);
    MPI_Comm_set_errhandler(old, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Cart_create(old, 1, dims, periods, 1, &comm), &class_[0]);
    MPI_Error_class(MPI_Dist_graph_create_adjacent(old, 1, &far, MPI_UNWEIGHTED, 0, NULL,
                                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 1, &comm),
                    &class_[1]);
    MPI_Error_class(MPI_Dist_graph_create_adjacent(old, 1, &zero, &weight, 1, &zero, &weight,
                                                   MPI_INFO_NULL, 1, &comm),
                    &class_[2]);
    MPI_Comm_set_errhandler(old, handler);
    MPI_Errhandler_free(&handler);
    test_print("wrong calls: %d %d %d\n", class_[0], class_[1], class_[2]);
}

/* A line of one point less than there are ranks. */
static void try_smaller(MPI_Comm old, int n)
{
    int dims[1] = {n - 1}, periods[1] = {0}, rank;
    MPI_Comm comm;
    if (n < 2)
        return;
    MPI_Comm_rank(old, &rank);
    MPI_Cart_create(old, 1, dims, periods, 1, &comm);
    if ((comm == MPI_COMM_NULL) != (rank == n - 1))
        test_fail("rank %d of the smaller grid", rank);
    if (comm != MPI_COMM_NULL)
        MPI_Comm_free(&comm);
}

static void run_round(struct test_rng *rng, MPI_Comm old, int round)
{
    int n = test_size();
    struct graph g = make_graph(rng, n, round);
    try_adjacent(old, &g);
    try_general(old, &g);
    try_graph(old, n);
    try_grid(old, n, round);
    try_smaller(old, n);
    free_graph(&g);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--rounds", "--seed", NULL};
    MPI_Comm backwards;
    test_start(&argc, &argv, known);
    struct test_rng rng = {test_key(5, test_option(argc, argv, "--seed", 1))};
    int n_rounds = (int)test_option(argc, argv, "--rounds", 8);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -test_rank(), &backwards);
    for (int round = 0; round < n_rounds; round++)
        run_round(&rng, round % 3 == 2 ? backwards : MPI_COMM_WORLD, round);
    try_wrong(backwards, test_size());
    MPI_Comm_free(&backwards);
    return test_finish();
}
