/*
 * Graphs that are distributed over processes, and the benchmarks of bench/graph on the distributed
 * array (Peters 2024, chapter 5).
 *
 * A graph depends on its seed only, not on the number of processes. Vertices are owned in blocks,
 * as elements of an array of that length. Every process makes its part from numbers that are hashes
 * of the vertices or edges they belong to, and edges go to the owner of their first vertex.
 */
#ifndef BENCH_GRAPH_H
#define BENCH_GRAPH_H

#include "array/carpool_array.h"
#include "main.h"

enum graph_kind { GRAPH_RMAT, GRAPH_RGG, GRAPH_GNM };

struct graph_options {
    int kind; /* enum graph_kind */
    int64_t n_vertices,
        n_edges; /* of the whole graph: number of edges drawn, for rgg the expected number */
    int64_t seed;
    int is_scrambled; /* rmat: vertices in random order */
};

struct graph_edge {
    int64_t from, to;
};

struct graph {
    int64_t n_vertices, block, first, n_own; /* this process owns first .. first + n_own - 1 */
    int64_t n_edges, room;                   /* held here */
    struct graph_edge *edge;
};

/* The process that owns a vertex. */
static inline int graph_owner(const struct graph *graph, int64_t vertex)
{
    return (int)(vertex / graph->block);
}

/* Makes the graph: each edge once, at the owner of the vertex it starts from, or (both_ways) in
 * both directions. No loops; equal edges may occur more than once in rmat and gnm. Collective. */
void graph_make(const struct graph_options *options, int both_ways, struct graph *graph);

/* Adds an edge to those held here. */
void graph_add(struct graph *graph, int64_t from, int64_t to);

/* Makes the edges of this process's vertices of a random geometric graph: n points in the unit
 * square, joined if they are near enough for the number of edges in the options. Local. */
void graph_make_rgg(const struct graph_options *options, int both_ways, struct graph *graph);

void graph_free(struct graph *graph);

/* What the array did in the steps of one repetition, on this process. */
struct graph_counts {
    int n_stages;
    int64_t n_steps, rounds, messages;
    int64_t queued[2], sent[2][CARPOOL_ARRAY_MAX_STAGES]; /* writes; reads */
    int64_t received_last[2];                             /* in the last stage */
};

/* A benchmark: all reads and writes of a repetition. */
struct graph_run {
    double seconds;          /* time of queueing and steps, on this process */
    double doubling_seconds; /* boruvka: the part of seconds that pointer doubling took */
    struct graph_counts counts;
    char taken[100]; /* the array's method in this process's step with most requests */
    int64_t most_requests;
    uint64_t checksum; /* checksum of all processes' results */
    int64_t n_wrong;   /* results that differ from those computed without the array */
};

/* The ways in which a benchmark's arrays work: carpool_array_options.method and aggregation. */
struct graph_method {
    const char *name; /* as given */
    char method[100];
    enum carpool_array_aggregation aggregation;
};

struct graph_setting {
    const struct graph_method *method;
    int64_t memory;
    int ranks_per_node;
    int64_t n_elements; /* overload: elements of the process that everybody asks */
    int64_t equal;      /* overload: percent of a process's requests that all make */
};

/*
 * The first round of Boruvka's algorithm: every edge writes its weight to both its vertices, of
 * which the least wins, and reads both back; edges that won make their vertices' parents; pointer
 * doubling finds the roots.
 */
void graph_boruvka(const struct graph *graph, const struct graph_setting *setting, int64_t seed,
                   int n_runs, struct graph_run *runs);

/*
 * The same round, and the same checksum, where each owner finds the least edges of its vertices
 * itself, which is not timed: vertices only write and read parents. The graph has its edges both
 * ways.
 */
void graph_boruvka_owned(const struct graph *graph, const struct graph_setting *setting,
                         int64_t seed, int n_runs, struct graph_run *runs);

/* Every vertex reads the value of each of its neighbors. The graph has its edges both ways. */
void graph_neighborhood(const struct graph *graph, const struct graph_setting *setting,
                        int64_t seed, int n_runs, struct graph_run *runs);

/* Every process writes (added up) and reads all elements of one process. */
void graph_overload(const struct graph_setting *setting, int n_runs, struct graph_run *runs);

/* Prints the time of folding and of a step's own work on this process, in ns a request, on standard
 * output. */
void graph_work(int64_t n_requests, int is_json);

#endif
