/*
 * Which rank owns which row and column of a square matrix (rows and columns are assigned alike). A
 * "line" is a row or a column of the matrix, whichever the ranks own: functions get the structure
 * with the owned lines as rows. The weight of a line is its entries plus one.
 *
 * Local, no MPI, no global state; the same input gives the same parts.
 */
#ifndef BENCH_PARTITION_H
#define BENCH_PARTITION_H

#include "common.h"
#include "matrix.h"

#include <stdint.h>

/*
 * Assign the lines to parts 0 to n_parts - 1; part has room for one number per line.
 * how is "block" (contiguous blocks of equal weight), "metis" (METIS_PartGraphKway on the
 * structure plus its transpose, least communication volume, weights within a tenth, the given
 * seed) or the name of a file with one number per line. Parts may be empty.
 * 0, or -1 with the error set. Cost: linear for block and files; METIS takes up to 6 seconds for
 * the irregular graphs with a million entries, a tenth of that for meshes.
 */
int partition_lines(const char *how, const struct matrix *lines, int n_parts, int64_t seed,
                    int *part, struct bench_error *error);

#endif
