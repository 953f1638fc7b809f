/*
 * Declarations for the files of spmv: the options, the part of the matrix that a rank owns, and its
 * exchange. spmv.c says what the program does.
 */
#ifndef BENCH_SPMV_H
#define BENCH_SPMV_H

#include "main.h"
#include "matrix.h"
#include "report.h"

#include <stdint.h>

enum spmv_form { SPMV_COLUMN, SPMV_ROW };

struct spmv_options {
    int form;              /* enum spmv_form */
    const char *partition; /* "block", "metis" or the name of a file */
    const char *matrix;
    int n_iterations, n_warmup;
    int64_t seed;
    const char *pattern; /* the file to write the pattern to, NULL: multiply */
    int n_parts;         /* of that pattern */
    int lists_items;     /* the pattern lists items, not their numbers */
    int splits; /* the pattern is of half of the nonzeros, the other form's of the others */
    /* Gives the parts other numbers, after partitioning; NULL: no. 0, or -1 with the error set. */
    int (*renumber)(const struct matrix *lines, int n_parts, int *part, struct bench_error *error);
    int compares; /* also time the MPI library's own MPI_Neighbor_alltoallv */
};

/* The remedy of programs with a matrix (struct bench_program). */
extern const char spmv_remedy[];

/* Take the one argument that is no option as the matrix. 0, or -1 with the error set. */
int spmv_take_matrix(const struct bench *bench, struct spmv_options *options,
                     struct bench_error *error);

/* Items exchanged with other ranks, grouped by rank: counts and displacements as MPI wants them. */
struct spmv_side {
    int n_ranks, n_items;
    int *rank, *count, *displ;
};

/*
 * A rank's part. A line is a row (row form) or a column (column form). An entry names the line
 * across it by a local number: from 0 for own lines, from n_own for the halo.
 */
struct spmv_share {
    int n_own;
    int *own;   /* number of each own line in the matrix file, from 0 */
    int *start; /* n_own + 1: entries of line i are start[i] to start[i + 1] - 1 */
    int *entry;
    double *value; /* the matrix elements: small whole numbers */
    int *border;   /* own lines that other ranks refer to, grouped by rank: border_side */
    struct spmv_side halo_side; /* lines of other ranks that this rank refers to */
    struct spmv_side border_side;
    MPI_Comm graph; /* the neighbors, in the direction of the form */
    int n_rows;     /* of the whole matrix */
    int64_t n_entries;
};

/* The sides that are sent and received: x travels border to halo, partial sums halo to border. */
static inline const struct spmv_side *spmv_sent(const struct spmv_share *share, enum spmv_form form)
{
    return form == SPMV_ROW ? &share->border_side : &share->halo_side;
}

static inline const struct spmv_side *spmv_received(const struct spmv_share *share,
                                                    enum spmv_form form)
{
    return form == SPMV_ROW ? &share->halo_side : &share->border_side;
}

/*
 * Read the matrix on rank 0 of MPI_COMM_WORLD and give every rank its share. Collective.
 * 0 on all ranks, or -1 on all ranks with the error set on rank 0.
 */
int spmv_setup(const struct spmv_options *options, struct spmv_share *out,
               struct bench_error *error);

/*
 * Read the matrix and turn it so that the lines that ranks own are its rows. Local.
 * 0, or -1 with the error set.
 */
int spmv_load_lines(const struct spmv_options *options, struct matrix *lines,
                    struct bench_error *error);

/* Write the pattern that options ask for. Local. 0, or -1 with the error set. */
int spmv_write_pattern(const struct spmv_options *options, struct bench_error *error);

void spmv_share_free(struct spmv_share *share);

/* The matrix, its rows and nonzeros. */
void spmv_report_matrix(struct report *report, const struct spmv_options *options,
                        const struct spmv_share *share);

#endif
