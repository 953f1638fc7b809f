/* The benchmarks of graph.h. They time how long a process queues requests and is in steps; ranks
 * meet in a barrier before, and their own work on the results is not timed. */
#include "graph.h"
#include "together.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int code)
{
    if (code != MPI_SUCCESS) /* the error handler of MPI_COMM_WORLD has ended the program before */
        bench_abort("the array failed");
}

static carpool_array *make_array(const struct graph_setting *setting, int64_t length, size_t size,
                                 enum carpool_array_policy policy)
{
    struct carpool_array_options options = CARPOOL_ARRAY_OPTIONS;
    carpool_array *array;

    options.policy = policy;
    options.type = MPI_INT64_T;
    options.method = setting->method->method;
    options.aggregation = setting->method->aggregation;
    options.memory = setting->memory;
    options.ranks_per_node = setting->ranks_per_node;
    check(carpool_array_create(MPI_COMM_WORLD, length, size, &options, &array));
    return array;
}

static void start_clock(struct graph_run *run)
{
    MPI_Barrier(MPI_COMM_WORLD);
    run->seconds -= MPI_Wtime();
}

/* The step, to which what was queued since start_clock belongs. */
static void finish_step(carpool_array *array, struct graph_run *run)
{
    struct carpool_array_counts counts;
    struct graph_counts *all = &run->counts;

    check(carpool_array_step(array));
    run->seconds += MPI_Wtime();
    check(carpool_array_count(array, &counts));
    if (counts.reads + counts.writes >= run->most_requests) {
        const char *method;
        check(carpool_array_method(array, &method));
        snprintf(run->taken, sizeof run->taken, "%s", method);
        run->most_requests = counts.reads + counts.writes;
    }
    if (counts.n_stages > all->n_stages)
        all->n_stages = counts.n_stages;
    all->n_steps++;
    all->rounds += counts.rounds;
    all->messages += counts.messages_sent;
    all->queued[0] += counts.writes;
    all->queued[1] += counts.reads;
    for (int s = 0; s < counts.n_stages; s++) {
        all->sent[0][s] += counts.writes_sent[s];
        all->sent[1][s] += counts.reads_sent[s];
    }
    all->received_last[0] += counts.writes_received[counts.n_stages - 1];
    all->received_last[1] += counts.reads_received[counts.n_stages - 1];
}

/* ---- Boruvka ---- */

struct boruvka {
    const struct graph *graph;
    int64_t seed;
    carpool_array *least, *parent; /* weight of the least edge; parent, of each vertex */
    int64_t *read;                 /* two numbers for each edge, or one for each own vertex */
};

/* Positive, and the same in both directions. */
static int64_t weight_of(const struct graph_edge *edge, int64_t seed)
{
    uint64_t a = (uint64_t)edge->from, b = (uint64_t)edge->to;

    return (int64_t)(bench_hash((uint64_t)seed + 7, a < b ? a : b, a < b ? b : a) >> 1);
}

static void find_least(const struct boruvka *b, const int64_t *weight, struct graph_run *run)
{
    const struct graph *graph = b->graph;

    start_clock(run);
    for (int64_t k = 0; k < graph->n_edges; k++) {
        check(carpool_array_write(b->least, graph->edge[k].from, &weight[k]));
        check(carpool_array_write(b->least, graph->edge[k].to, &weight[k]));
        check(carpool_array_read(b->least, graph->edge[k].from, &b->read[2 * k]));
        check(carpool_array_read(b->least, graph->edge[k].to, &b->read[2 * k + 1]));
    }
    finish_step(b->least, run);
}

/* Edges that are the least of a vertex make the other one its parent; where two vertices have the
 * same one, the smaller vertex stays a root. */
static void hook(const struct boruvka *b, const int64_t *weight, struct graph_run *run)
{
    const struct graph *graph = b->graph;

    start_clock(run);
    for (int64_t k = 0; k < graph->n_edges; k++) {
        const struct graph_edge *edge = &graph->edge[k];
        int is_from = b->read[2 * k] == weight[k], is_to = b->read[2 * k + 1] == weight[k];
        if (is_from && !(is_to && edge->from < edge->to))
            check(carpool_array_write(b->parent, edge->from, &edge->to));
        if (is_to && !(is_from && edge->to < edge->from))
            check(carpool_array_write(b->parent, edge->to, &edge->from));
        run->n_wrong += b->read[2 * k] > weight[k] || b->read[2 * k + 1] > weight[k];
    }
    finish_step(b->parent, run);
}

/* Replaces parents by their parents; returns whether there are any that are no roots yet. */
static int double_pointers(const struct boruvka *b, struct graph_run *run)
{
    int64_t first, n, *parent;
    int has_changed = 0;

    check(carpool_array_block(b->parent, &first, &n, (void **)&parent));
    start_clock(run);
    for (int64_t v = 0; v < n; v++)
        if (parent[v] != first + v)
            check(carpool_array_read(b->parent, parent[v], &b->read[v]));
    finish_step(b->parent, run);
    for (int64_t v = 0; v < n; v++)
        if (parent[v] != first + v && parent[v] != b->read[v]) {
            parent[v] = b->read[v];
            has_changed = 1;
        }
    MPI_Allreduce(MPI_IN_PLACE, &has_changed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return has_changed;
}

/* Pointer doubling until all parents are roots. */
static void find_roots(const struct boruvka *b, struct graph_run *run)
{
    run->doubling_seconds = -run->seconds;
    while (double_pointers(b, run))
        continue;
    run->doubling_seconds += run->seconds;
}

/* Of parents and least weights (0: no edge) of the own vertices, over all processes. */
static uint64_t sum_up(const struct graph *graph, const int64_t *parent, const int64_t *least)
{
    uint64_t sum = 0;

    for (int64_t v = 0; v < graph->n_own; v++)
        sum += bench_hash((uint64_t)least[v], (uint64_t)(graph->first + v), (uint64_t)parent[v]);
    return bench_sum(sum, MPI_COMM_WORLD);
}

static int64_t *reset_parents(const struct boruvka *b)
{
    int64_t first, n, *parent;

    check(carpool_array_block(b->parent, &first, &n, (void **)&parent));
    for (int64_t v = 0; v < n; v++)
        parent[v] = first + v;
    return parent;
}

static void boruvka_round(const struct boruvka *b, const int64_t *weight, struct graph_run *run)
{
    int64_t first, n, *least, *parent = reset_parents(b);

    find_least(b, weight, run);
    hook(b, weight, run);
    find_roots(b, run);
    check(carpool_array_block(b->least, &first, &n, (void **)&least));
    run->checksum = sum_up(b->graph, parent, least);
}

void graph_boruvka(const struct graph *graph, const struct graph_setting *setting, int64_t seed,
                   int n_runs, struct graph_run *runs)
{
    struct boruvka b = {.graph = graph, .seed = seed};
    size_t n_read = (size_t)(2 * graph->n_edges > graph->n_own ? 2 * graph->n_edges : graph->n_own);
    int64_t *weight = bench_need((size_t)graph->n_edges, sizeof *weight);

    b.read = bench_need(n_read, sizeof *b.read);
    for (int64_t k = 0; k < graph->n_edges; k++)
        weight[k] = weight_of(&graph->edge[k], seed);
    b.least = make_array(setting, graph->n_vertices, sizeof(int64_t), CARPOOL_ARRAY_MIN);
    b.parent = make_array(setting, graph->n_vertices, sizeof(int64_t), CARPOOL_ARRAY_LAST);
    for (int r = 0; r < n_runs; r++)
        boruvka_round(&b, weight, &runs[r]);
    check(carpool_array_free(&b.least));
    check(carpool_array_free(&b.parent));
    free(weight);
    free(b.read);
}

/* ---- Boruvka, least edges found by the owners ---- */

/* Of each own vertex the least weight (0: it has no edge) and where that edge leads. */
static void find_own_least(const struct graph *graph, int64_t seed, int64_t *least, int64_t *other)
{
    for (int64_t k = 0; k < graph->n_edges; k++) {
        int64_t v = graph->edge[k].from - graph->first;
        int64_t weight = weight_of(&graph->edge[k], seed);
        if (least[v] == 0 || weight < least[v]) {
            least[v] = weight;
            other[v] = graph->edge[k].to;
        }
    }
}

/* Vertices write where their least edges lead and read whether the edge is the other one's, too. */
static void hook_own(const struct boruvka *b, const int64_t *least, const int64_t *other,
                     int64_t *parent, struct graph_run *run)
{
    const struct graph *graph = b->graph;

    start_clock(run);
    for (int64_t v = 0; v < graph->n_own; v++)
        if (least[v] > 0) {
            check(carpool_array_write(b->parent, graph->first + v, &other[v]));
            check(carpool_array_read(b->parent, other[v], &b->read[v]));
        }
    finish_step(b->parent, run);
    for (int64_t v = 0; v < graph->n_own; v++) {
        run->n_wrong += least[v] > 0 && parent[v] != other[v];
        if (least[v] > 0 && b->read[v] == graph->first + v && graph->first + v < other[v])
            parent[v] = graph->first + v;
    }
}

void graph_boruvka_owned(const struct graph *graph, const struct graph_setting *setting,
                         int64_t seed, int n_runs, struct graph_run *runs)
{
    struct boruvka b = {.graph = graph, .seed = seed};
    size_t n = (size_t)graph->n_own;
    int64_t *least = bench_need(n, sizeof *least), *other = bench_need(n, sizeof *other);

    b.read = bench_need(n, sizeof *b.read);
    find_own_least(graph, seed, least, other);
    b.parent = make_array(setting, graph->n_vertices, sizeof(int64_t), CARPOOL_ARRAY_LAST);
    for (int r = 0; r < n_runs; r++) {
        int64_t *parent = reset_parents(&b);
        hook_own(&b, least, other, parent, &runs[r]);
        find_roots(&b, &runs[r]);
        runs[r].checksum = sum_up(graph, parent, least);
    }
    check(carpool_array_free(&b.parent));
    free(least);
    free(other);
    free(b.read);
}

/* ---- neighborhood ---- */

void graph_neighborhood(const struct graph *graph, const struct graph_setting *setting,
                        int64_t seed, int n_runs, struct graph_run *runs)
{
    carpool_array *array =
        make_array(setting, graph->n_vertices, sizeof(int64_t), CARPOOL_ARRAY_LAST);
    uint64_t *read = bench_need((size_t)graph->n_edges, sizeof *read), *own;
    int64_t first, n;

    check(carpool_array_block(array, &first, &n, (void **)&own));
    for (int64_t v = 0; v < n; v++)
        own[v] = bench_hash((uint64_t)seed, 9, (uint64_t)(first + v));
    for (int r = 0; r < n_runs; r++) {
        uint64_t sum = 0;
        memset(read, 0, (size_t)graph->n_edges * sizeof *read);
        start_clock(&runs[r]);
        for (int64_t k = 0; k < graph->n_edges; k++)
            check(carpool_array_read(array, graph->edge[k].to, &read[k]));
        finish_step(array, &runs[r]);
        for (int64_t k = 0; k < graph->n_edges; k++) {
            uint64_t value = bench_hash((uint64_t)seed, 9, (uint64_t)graph->edge[k].to);
            runs[r].n_wrong += read[k] != value;
            sum += bench_hash(read[k], (uint64_t)graph->edge[k].from, 10);
        }
        runs[r].checksum = bench_sum(sum, MPI_COMM_WORLD);
    }
    check(carpool_array_free(&array));
    free(read);
}

/* ---- overload ---- */

static int64_t common_divisor(int64_t a, int64_t b)
{
    return b ? common_divisor(b, a % b) : a;
}

/* An element that no other process asks for, the id-th of n in an order that scatters them. */
static int64_t scattered(int64_t id, int64_t n)
{
    int64_t factor = 1000003;
    while (common_divisor(factor, n) > 1)
        factor += 2;
    return (int64_t)((__int128)id * factor % n);
}

/* The elements that a process asks for: the first n_hot are wanted by all, the others by it alone.
 */
static void choose_elements(const struct graph_setting *setting, int rank, int64_t n_all,
                            int64_t first, int64_t *element)
{
    int64_t n = setting->n_elements, n_hot = n * setting->equal / 100;

    for (int64_t k = 0; k < n; k++) {
        element[k] = k < n_hot ? first + k : scattered(rank * n + k, n_all);
        if (k >= n_hot && element[k] >= first && element[k] < first + n_hot)
            element[k] = -1; /* it would be wanted by all */
    }
}

void graph_overload(const struct graph_setting *setting, int n_runs, struct graph_run *runs)
{
    int rank, n_ranks;
    int64_t n = setting->n_elements, n_hot = n * setting->equal / 100;
    int64_t *read = bench_need((size_t)n, sizeof *read);
    int64_t *element = bench_need((size_t)n, sizeof *element);

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    int64_t first = n_ranks / 2 * n, sum_of_ranks = (int64_t)n_ranks * (n_ranks + 1) / 2;
    carpool_array *array = make_array(setting, n_ranks * n, sizeof(int64_t), CARPOOL_ARRAY_SUM);
    choose_elements(setting, rank, n_ranks * n, first, element);
    for (int r = 0; r < n_runs; r++) {
        uint64_t sum = 0;
        memset(read, 0, (size_t)n * sizeof *read);
        start_clock(&runs[r]);
        for (int64_t k = 0; k < n; k++) {
            int64_t value = (rank + 1) * (k + r + 1);
            if (element[k] < 0)
                continue;
            check(carpool_array_write(array, element[k], &value));
            check(carpool_array_read(array, element[k], &read[k]));
        }
        finish_step(array, &runs[r]);
        for (int64_t k = 0; k < n; k++) {
            int64_t sum_of_values = (k < n_hot ? sum_of_ranks : rank + 1) * (k + r + 1);
            runs[r].n_wrong += element[k] >= 0 && read[k] != sum_of_values;
            sum += bench_hash((uint64_t)read[k], (uint64_t)k, (uint64_t)rank);
        }
        runs[r].checksum = bench_sum(sum, MPI_COMM_WORLD);
    }
    check(carpool_array_free(&array));
    free(read);
    free(element);
}
