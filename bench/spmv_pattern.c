/*
 * spmv --pattern: who would send how much to whom, without that many ranks. Partitions the matrix
 * and writes the exchange of the form as text: P, then a line "source destination items" for each
 * message. Runs on rank 0 alone; time linear in the entries, memory 8 bytes per pair of parts.
 */
#include "matrix.h"
#include "partition.h"
#include "spmv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct volumes {
    int n_parts;
    int64_t *items; /* n_parts x n_parts, from source to destination */
};

/*
 * Each line across is one item, once for every other part with an entry on it: in row form its
 * owner sends it there, in column form that part sends its partial sum to the owner.
 */
static void count_items(const struct matrix *across, const int *part, enum spmv_form form,
                        int *seen, struct volumes *volumes)
{
    for (int j = 0; j < across->n_rows; j++) {
        int owner = part[j];
        for (size_t k = across->start[j]; k < across->start[j + 1]; k++) {
            int other = part[across->col[k]];
            if (other == owner || seen[other] == j + 1)
                continue;
            seen[other] = j + 1;
            int source = form == SPMV_ROW ? owner : other;
            int destination = form == SPMV_ROW ? other : owner;
            volumes->items[(size_t)source * (size_t)volumes->n_parts + (size_t)destination]++;
        }
    }
}

static int count(const struct spmv_options *options, const struct matrix *lines,
                 struct volumes *volumes, struct bench_error *error)
{
    size_t n_parts = (size_t)volumes->n_parts;
    struct matrix across = {0};
    int *part = bench_array((size_t)lines->n_rows, sizeof *part);
    int *seen = bench_array(n_parts, sizeof *seen);
    int status = -1;

    volumes->items = n_parts <= SIZE_MAX / n_parts
                         ? bench_array(n_parts * n_parts, sizeof *volumes->items)
                         : NULL;
    if (!part || !seen || !volumes->items || matrix_transpose(lines, &across) != 0)
        bench_fail(error, "no memory for %d parts; ask for fewer", volumes->n_parts);
    else
        status = partition_lines(options->partition, lines, volumes->n_parts, options->seed, part,
                                 error);
    if (status == 0)
        count_items(&across, part, options->form, seen, volumes);
    matrix_free(&across);
    free(part);
    free(seen);
    return status;
}

static int write_text(const struct spmv_options *options, const struct volumes *volumes,
                      struct bench_error *error)
{
    FILE *file = fopen(options->pattern, "w");

    if (!file)
        return bench_fail(error, "%s: cannot be written: %s", options->pattern, strerror(errno));
    fprintf(file, "# %s form of %s, %s partition\n%d\n",
            options->form == SPMV_ROW ? "row" : "column", options->matrix, options->partition,
            volumes->n_parts);
    for (int i = 0; i < volumes->n_parts; i++)
        for (int j = 0; j < volumes->n_parts; j++) {
            int64_t items = volumes->items[(size_t)i * (size_t)volumes->n_parts + (size_t)j];
            if (items > 0)
                fprintf(file, "%d %d %" PRId64 "\n", i, j, items);
        }
    int failed = ferror(file);
    if (fclose(file) != 0 || failed)
        return bench_fail(error, "%s: writing failed; is the disk full?", options->pattern);
    return 0;
}

int spmv_write_pattern(const struct spmv_options *options, struct bench_error *error)
{
    struct matrix lines;
    struct volumes volumes = {.n_parts = options->n_parts};

    if (spmv_load_lines(options, &lines, error) != 0)
        return -1;
    int status = count(options, &lines, &volumes, error);
    if (status == 0)
        status = write_text(options, &volumes, error);
    matrix_free(&lines);
    free(volumes.items);
    return status;
}
