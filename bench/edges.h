/*
 * A growing list of matrix entries and its output as a Matrix Market coordinate pattern file.
 *
 * Use: zero it, edges_add in any order, edges_finish once, edges_write, edges_free. Local.
 * Cost: 8 bytes per entry, twice that while sorting; sorting is linear in the entries.
 */
#ifndef BENCH_EDGES_H
#define BENCH_EDGES_H

#include "common.h"

#include <stdio.h>

struct edges {
    int n_vertices;
    int is_symmetric; /* keep the lower triangle only, whichever side an entry is given on */
    int is_full;      /* memory ran out: edges_add dropped entries and edges_finish will fail */
    size_t n, room;
    uint64_t *key; /* column in the upper, row in the lower half: the order of the file */
};

/* Add the entry (row, column), from 0; duplicates are fine. edges_finish reports failures. */
void edges_add(struct edges *edges, int row, int col);

/* Add the diagonal, sort, drop duplicates. 0, or -1 with the error set. */
int edges_finish(struct edges *edges, struct bench_error *error);

/* Write the file with the comment in its header. 0, or -1 with errno set. */
int edges_write(const struct edges *edges, const char *comment, FILE *file);

void edges_free(struct edges *edges);

#endif
