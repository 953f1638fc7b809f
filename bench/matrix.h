/*
 * The structure of a sparse matrix in compressed rows, and its reader for Matrix Market files.
 *
 * Use: matrix_read, matrix_transpose as needed, matrix_free. Local, no MPI, no global state.
 * Cost: time and memory linear in rows, columns and entries; 4 million lines take about a second,
 * most of it decompression.
 */
#ifndef BENCH_MATRIX_H
#define BENCH_MATRIX_H

#include "common.h"

struct matrix {
    int n_rows, n_cols;
    size_t *start; /* n_rows + 1: row i is col[start[i]] to col[start[i + 1] - 1] */
    int *col;      /* from 0; ascending and different within a row */
};

/*
 * Read the structure of a Matrix Market coordinate file (pattern, real or integer; general,
 * symmetric or skew-symmetric), plain or gzip. Symmetric files are expanded to both triangles,
 * duplicate entries merged; an entry stored as zero belongs to the structure like any other.
 * 0, or -1 with an error `FILE:LINE: what; remedy`.
 */
int matrix_read(const char *path, struct matrix *out, struct bench_error *error);

/* The transposed structure, rows sorted even where the input's are not. 0, or -1: no memory. */
int matrix_transpose(const struct matrix *in, struct matrix *out);

/* Allocate a matrix, all zeros: the caller fills start and col. 0, or -1: no memory. */
int matrix_create(int n_rows, int n_cols, size_t n_entries, struct matrix *out);

/* Free the arrays; a zeroed matrix is fine too. */
void matrix_free(struct matrix *matrix);

/* Number of entries. */
static inline size_t matrix_entries(const struct matrix *matrix)
{
    return matrix->start[matrix->n_rows];
}

#endif
