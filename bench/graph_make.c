/* Distributed graphs (graph.h): R-MAT and uniformly random ones, and the way of edges to owners. */
#include "generators.h"
#include "graph.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void graph_add(struct graph *graph, int64_t from, int64_t to)
{
    if (graph->n_edges == graph->room) {
        graph->room = 2 * graph->room + 64;
        graph->edge = bench_resize(graph->edge, (size_t)graph->room, sizeof *graph->edge);
        if (!graph->edge)
            bench_abort("no memory for the edges; ask for fewer");
    }
    graph->edge[graph->n_edges++] = (struct graph_edge){from, to};
}

/* A bijection of the numbers below 2^scale (odd factors and shifts), for vertices in random order.
 */
static int64_t scramble(int64_t vertex, int64_t scale, int64_t seed)
{
    uint64_t mask = (UINT64_C(1) << scale) - 1, word = (uint64_t)vertex;
    int shift = (int)(scale + 1) / 2;

    for (uint64_t round = 0; round < 4; round++) {
        word = (word * (bench_hash((uint64_t)seed, 3, round) | 1)) & mask;
        word ^= word >> shift;
        word = (word + bench_hash((uint64_t)seed, 4, round)) & mask;
    }
    return (int64_t)word;
}

static int64_t log2_of(int64_t n)
{
    int64_t scale = 0;

    while (INT64_C(1) << scale < n)
        scale++;
    return scale;
}

static void draw_edge(const struct graph_options *options, int64_t number, int64_t *from,
                      int64_t *to)
{
    struct bench_random random = {bench_hash((uint64_t)options->seed, 1, (uint64_t)number)};
    uint64_t n = (uint64_t)options->n_vertices;

    if (options->kind == GRAPH_GNM) {
        *from = (int64_t)bench_random_below(&random, n);
        *to = (int64_t)bench_random_below(&random, n);
        return;
    }
    int64_t scale = log2_of(options->n_vertices);
    int row, col;
    generate_rmat_edge(scale, &random, &row, &col);
    *from = options->is_scrambled ? scramble(row, scale, options->seed) : row;
    *to = options->is_scrambled ? scramble(col, scale, options->seed) : col;
}

/* Edges first .. end-1 of the whole graph. */
static void draw_edges(const struct graph_options *options, int both_ways, int64_t first,
                       int64_t end, struct graph *graph)
{
    for (int64_t number = first; number < end; number++) {
        int64_t from, to;
        draw_edge(options, number, &from, &to);
        if (from == to)
            continue;
        graph_add(graph, from, to);
        if (both_ways)
            graph_add(graph, to, from);
    }
}

/* For each process how many edges go to it, and the edges in that order. */
static struct graph_edge *sort_by_owner(const struct graph *graph, int n_ranks, int *count,
                                        int *start)
{
    struct graph_edge *sorted = bench_need((size_t)graph->n_edges, sizeof *sorted);

    if (graph->n_edges > INT_MAX)
        bench_abort("a process made more than 2^31 edges; ask for fewer");
    memset(count, 0, (size_t)n_ranks * sizeof *count);
    for (int64_t k = 0; k < graph->n_edges; k++)
        count[graph_owner(graph, graph->edge[k].from)]++;
    for (int r = 0, sum = 0; r < n_ranks; sum += count[r++])
        start[r] = sum;
    for (int64_t k = 0; k < graph->n_edges; k++)
        sorted[start[graph_owner(graph, graph->edge[k].from)]++] = graph->edge[k];
    for (int r = 0; r < n_ranks; r++)
        start[r] -= count[r];
    return sorted;
}

static void send_to_owners(struct graph *graph, int n_ranks)
{
    int *out = bench_need(4 * (size_t)n_ranks, sizeof *out);
    int64_t total = 0;

    int *out_start = out + n_ranks, *in = out_start + n_ranks, *in_start = in + n_ranks;
    struct graph_edge *sorted = sort_by_owner(graph, n_ranks, out, out_start);
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < n_ranks; r++) {
        in_start[r] = (int)total;
        total += in[r];
    }
    if (total > INT_MAX)
        bench_abort("a process would own more than 2^31 edges; ask for fewer");
    free(graph->edge);
    graph->edge = bench_need((size_t)total, sizeof *graph->edge);
    graph->n_edges = graph->room = total;
    MPI_Datatype type;
    MPI_Type_contiguous((int)sizeof *sorted, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Alltoallv(sorted, out, out_start, type, graph->edge, in, in_start, type, MPI_COMM_WORLD);
    MPI_Type_free(&type);
    free(sorted);
    free(out);
}

void graph_make(const struct graph_options *options, int both_ways, struct graph *graph)
{
    int rank, n_ranks;
    int64_t n = options->n_vertices, n_edges = options->n_edges;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    *graph = (struct graph){.n_vertices = n, .block = (n + n_ranks - 1) / n_ranks};
    graph->first = rank * graph->block < n ? rank * graph->block : n;
    graph->n_own = n - graph->first < graph->block ? n - graph->first : graph->block;
    if (options->kind == GRAPH_RGG) {
        graph_make_rgg(options, both_ways, graph);
        return;
    }
    int64_t share = n_edges / n_ranks, rest = n_edges % n_ranks;
    int64_t first = rank * share + (rank < rest ? rank : rest);
    draw_edges(options, both_ways, first, first + share + (rank < rest), graph);
    send_to_owners(graph, n_ranks);
}

void graph_free(struct graph *graph)
{
    free(graph->edge);
    *graph = (struct graph){0};
}
