/*
 * Generators of matrix structures, which depend on a seed only.
 *
 * Each adds its off-diagonal entries to a list prepared with n_vertices and is_symmetric (which the
 * caller takes from generate_size and the options), and uses 64-bit integers and those floating
 * point operations only that IEEE 754 rounds alike everywhere: a seed gives the same file on every
 * machine. Local. Cost: linear in the entries. Each returns 0, or -1 when there is no memory.
 */
#ifndef BENCH_GENERATORS_H
#define BENCH_GENERATORS_H

#include "edges.h"

struct generator_options {
    int64_t scale, edges_per_vertex, is_directed; /* rmat */
    int64_t n_rows;                               /* rgg, powerlaw, gnm */
    double degree, exponent; /* mean degree: rgg, powerlaw, gnm; exponent: powerlaw */
    int64_t nodes_per_side, n_dense_rows, dense_entries; /* fe */
    int64_t seed;
};

/*
 * Recursive matrix (R-MAT) with the Graph500 probabilities 0.57, 0.19, 0.19, 0.05: 2^scale
 * vertices in random order, edges_per_vertex edges each, some of them the same. Few vertices have
 * very many neighbors.
 */
int generate_rmat(const struct generator_options *options, struct edges *edges);

/* One edge of it, before the vertices are put in random order. */
void generate_rmat_edge(int64_t scale, struct bench_random *random, int *row, int *col);

/*
 * Random geometric graph: n_rows points in the unit square, joined if their distance is below the
 * one that gives the mean degree; points are numbered cell by cell, so neighbors have near numbers.
 */
int generate_rgg(const struct generator_options *options, struct edges *edges);

/*
 * Finite elements: nodes_per_side^3 nodes of a mesh of trilinear bricks, each coupled to the 26
 * around it, and n_dense_rows of them, spread at random, to dense_entries random nodes more.
 */
int generate_fe(const struct generator_options *options, struct edges *edges);

/*
 * Row degrees from a power law P(degree > d) ~ d^(1 - exponent) with the mean degree, columns
 * uniformly random.
 */
int generate_powerlaw(const struct generator_options *options, struct edges *edges);

/* Uniformly random edges, as many as give the mean degree, some of them the same. */
int generate_gnm(const struct generator_options *options, struct edges *edges);

#endif
