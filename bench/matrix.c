/* Sparse matrix structures and the Matrix Market reader; see matrix.h. */
#include "matrix.h"

#include "text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What the banner and the size line say. */
struct header {
    int has_values;  /* entries are followed by a number */
    int is_mirrored; /* one triangle is stored, the other follows from it */
    int n_rows, n_cols;
    int64_t n_entries;
};

/* The entries as they stand in the file, from 0. */
struct entries {
    size_t n, room;
    int *row, *col;
};

/* ---- matrices ---- */

int matrix_create(int n_rows, int n_cols, size_t n_entries, struct matrix *out)
{
    struct matrix matrix = {.n_rows = n_rows, .n_cols = n_cols};

    matrix.start = bench_array((size_t)n_rows + 1, sizeof *matrix.start);
    matrix.col = bench_array(n_entries, sizeof *matrix.col);
    if (!matrix.start || !matrix.col) {
        matrix_free(&matrix);
        return -1;
    }
    *out = matrix;
    return 0;
}

void matrix_free(struct matrix *matrix)
{
    free(matrix->start);
    free(matrix->col);
    memset(matrix, 0, sizeof *matrix);
}

/* Counting sort leaves the number of entries of row i in start[i + 1]; make starts of them. */
static void sum_counts(struct matrix *matrix)
{
    for (int i = 0; i < matrix->n_rows; i++)
        matrix->start[i + 1] += matrix->start[i];
}

/* While rows were filled, start[i] moved to the end of row i, the start of row i + 1: move back. */
static void shift_starts(struct matrix *matrix)
{
    for (int i = matrix->n_rows; i > 0; i--)
        matrix->start[i] = matrix->start[i - 1];
    matrix->start[0] = 0;
}

int matrix_transpose(const struct matrix *in, struct matrix *out)
{
    struct matrix result;
    size_t n = matrix_entries(in);

    if (matrix_create(in->n_cols, in->n_rows, n, &result) != 0)
        return -1;
    for (size_t k = 0; k < n; k++)
        result.start[in->col[k] + 1]++;
    sum_counts(&result);
    for (int i = 0; i < in->n_rows; i++)
        for (size_t k = in->start[i]; k < in->start[i + 1]; k++)
            result.col[result.start[in->col[k]]++] = i;
    shift_starts(&result);
    *out = result;
    return 0;
}

/* Merge equal neighbours in sorted rows, in place. */
static void merge_duplicates(struct matrix *matrix)
{
    size_t n = 0;
    size_t next = 0;

    for (int i = 0; i < matrix->n_rows; i++) {
        size_t first = n;
        for (size_t end = matrix->start[i + 1]; next < end; next++)
            if (n == first || matrix->col[n - 1] != matrix->col[next])
                matrix->col[n++] = matrix->col[next];
        matrix->start[i + 1] = n;
    }
}

/* ---- entries ---- */

static int entries_grow(struct entries *entries)
{
    if (entries->room > SIZE_MAX / 2)
        return -1;
    size_t room = entries->room > 0 ? 2 * entries->room : 1 << 16;
    int *row = bench_resize(entries->row, room, sizeof *row);
    if (row)
        entries->row = row;
    int *col = bench_resize(entries->col, room, sizeof *col);
    if (col)
        entries->col = col;
    if (!row || !col)
        return -1;
    entries->room = room;
    return 0;
}

static void entries_free(struct entries *entries)
{
    free(entries->row);
    free(entries->col);
}

/* The columns as rows, in the order of the file; both triangles if one was mirrored. */
static int gather_columns(const struct header *header, const struct entries *entries,
                          struct matrix *out)
{
    size_t copies = header->is_mirrored ? 2 : 1;

    if (entries->n > SIZE_MAX / copies ||
        matrix_create(header->n_cols, header->n_rows, copies * entries->n, out) != 0)
        return -1;
    for (size_t k = 0; k < entries->n; k++) {
        out->start[entries->col[k] + 1]++;
        if (header->is_mirrored && entries->row[k] != entries->col[k])
            out->start[entries->row[k] + 1]++;
    }
    sum_counts(out);
    for (size_t k = 0; k < entries->n; k++) {
        out->col[out->start[entries->col[k]]++] = entries->row[k];
        if (header->is_mirrored && entries->row[k] != entries->col[k])
            out->col[out->start[entries->row[k]]++] = entries->col[k];
    }
    shift_starts(out);
    return 0;
}

/* Two counting sorts, by column and then by row, sort all rows at once in linear time. */
static int assemble(const struct header *header, const struct entries *entries, struct matrix *out)
{
    struct matrix columns;

    if (gather_columns(header, entries, &columns) != 0)
        return -1;
    int status = matrix_transpose(&columns, out);
    matrix_free(&columns);
    if (status == 0)
        merge_duplicates(out);
    return status;
}

/* ---- the file ---- */

static int read_field(struct text *text, const char *field, struct header *header,
                      struct bench_error *error)
{
    if (strcasecmp(field, "complex") == 0)
        return text_fail(text, error, "complex matrices are not read; convert it to real");
    if (strcasecmp(field, "pattern") != 0 && strcasecmp(field, "real") != 0 &&
        strcasecmp(field, "integer") != 0)
        return text_fail(text, error, "unknown field '%s'; known are pattern, real, integer",
                         field);
    header->has_values = strcasecmp(field, "pattern") != 0;
    return 0;
}

static int read_symmetry(struct text *text, const char *symmetry, struct header *header,
                         struct bench_error *error)
{
    header->is_mirrored = strcasecmp(symmetry, "general") != 0;
    if (header->is_mirrored && strcasecmp(symmetry, "symmetric") != 0 &&
        strcasecmp(symmetry, "skew-symmetric") != 0)
        return text_fail(text, error,
                         "unknown symmetry '%s'; known are general, symmetric, skew-symmetric",
                         symmetry);
    return 0;
}

static int read_banner(struct text *text, struct header *header, struct bench_error *error)
{
    char word[5][32];

    for (int i = 0; i < 5; i++)
        if (text_word(text, sizeof word[i], word[i]) != 0 ||
            (i == 0 && strcmp(word[0], "%%MatrixMarket") != 0))
            return text_fail(text, error,
                             "not a Matrix Market file; the first line must be "
                             "'%%%%MatrixMarket matrix coordinate FIELD SYMMETRY'");
    if (strcasecmp(word[1], "matrix") != 0)
        return text_fail(text, error, "holds a '%s'; only 'matrix' is read", word[1]);
    if (strcasecmp(word[2], "coordinate") != 0)
        return text_fail(text, error, "format '%s' is not read; convert it to 'coordinate'",
                         word[2]);
    if (read_field(text, word[3], header, error) != 0 ||
        read_symmetry(text, word[4], header, error) != 0)
        return -1;
    if (text_end_line(text) != 0)
        return text_fail(text, error, "more than five words in the banner; remove the rest");
    return 0;
}

static int read_sizes(struct text *text, struct header *header, struct bench_error *error)
{
    int64_t n_rows, n_cols;

    if (!text_skip_comments(text, '%'))
        return text_fail(text, error, "ends before the size line; it is cut short");
    if (text_number(text, INT_MAX - 1, &n_rows) != 0 ||
        text_number(text, INT_MAX - 1, &n_cols) != 0 ||
        text_number(text, INT64_MAX, &header->n_entries) != 0)
        return text_fail(text, error,
                         "bad size line; it must be 'ROWS COLUMNS ENTRIES', rows and columns "
                         "at most %d",
                         INT_MAX - 1);
    if (header->is_mirrored && n_rows != n_cols)
        return text_fail(text, error,
                         "symmetric, but %lld x %lld; make it square or call it general",
                         (long long)n_rows, (long long)n_cols);
    if (text_end_line(text) != 0)
        return text_fail(text, error, "more than three numbers in the size line; remove the rest");
    header->n_rows = (int)n_rows;
    header->n_cols = (int)n_cols;
    return 0;
}

/* The value is checked and dropped: only the structure is wanted. */
static int read_value(struct text *text)
{
    char word[64];
    char *end;

    if (text_word(text, sizeof word, word) != 0)
        return -1;
    (void)strtod(word, &end);
    return end != word && *end == '\0' ? 0 : -1;
}

static int read_index(struct text *text, const char *name, int most, int *out,
                      struct bench_error *error)
{
    int64_t index;

    if (text_number(text, INT64_MAX, &index) != 0)
        return text_fail(text, error, "%s number expected; write it as digits only", name);
    if (index < 1 || index > most)
        return text_fail(text, error, "%s %lld lies outside 1 to %d; correct it or the size line",
                         name, (long long)index, most);
    *out = (int)index - 1;
    return 0;
}

static int read_entry(struct text *text, const struct header *header, struct entries *entries,
                      struct bench_error *error)
{
    int row, col;

    if (entries->n == entries->room && entries_grow(entries) != 0)
        return text_fail(text, error, "no memory for more than %zu entries", entries->n);
    if (read_index(text, "row", header->n_rows, &row, error) != 0 ||
        read_index(text, "column", header->n_cols, &col, error) != 0)
        return -1;
    if (header->has_values && read_value(text) != 0)
        return text_fail(text, error,
                         "value expected after row and column; add it, or call the "
                         "file a pattern");
    if (text_end_line(text) != 0)
        return text_fail(text, error,
                         "text after the entry; one entry per line, and values only "
                         "where the banner says real or integer");
    entries->row[entries->n] = row;
    entries->col[entries->n++] = col;
    return 0;
}

/* The array grows with what is there: the size line of a broken file may promise anything. */
static int read_entries(struct text *text, const struct header *header, struct entries *entries,
                        struct bench_error *error)
{
    while (text_skip_comments(text, '%')) {
        if ((int64_t)entries->n == header->n_entries)
            return text_fail(text, error, "more than the %lld entries of the size line; correct it",
                             (long long)header->n_entries);
        if (read_entry(text, header, entries, error) != 0)
            return -1;
    }
    if ((int64_t)entries->n < header->n_entries)
        return text_fail(text, error, "ends after %zu of %lld entries; it is cut short", entries->n,
                         (long long)header->n_entries);
    return 0;
}

static int read_all(struct text *text, struct matrix *out, struct bench_error *error)
{
    struct header header = {0};
    struct entries entries = {0};
    struct matrix matrix;

    int status = read_banner(text, &header, error);
    if (status == 0)
        status = read_sizes(text, &header, error);
    if (status == 0)
        status = read_entries(text, &header, &entries, error);
    /* A read error looks like an early end: report the cause, not the symptom. */
    if (text_status(text, error) != 0)
        status = -1;
    if (status == 0 && assemble(&header, &entries, &matrix) != 0)
        status = bench_fail(error, "%s: no memory for %d rows, %d columns and %zu entries",
                            text->path, header.n_rows, header.n_cols, entries.n);
    if (status == 0)
        *out = matrix;
    entries_free(&entries);
    return status;
}

int matrix_read(const char *path, struct matrix *out, struct bench_error *error)
{
    struct text text;

    if (text_open(&text, path, error) != 0)
        return -1;
    int status = read_all(&text, out, error);
    text_close(&text);
    return status;
}
