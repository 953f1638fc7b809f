/*
 * spmv --pattern: who would send how much to whom, without that many ranks. Partitions the matrix
 * and writes the exchange of the form as text: P, then a line "source destination volume" for each
 * message, or with --items lines "source destination : item ..." with the entries of x that travel,
 * numbered from 0 among those of their owner. Runs on rank 0 alone; time linear in the entries,
 * memory 8 bytes per pair of parts and with --items 8 more and 4 per item sent.
 */
#include "matrix.h"
#include "partition.h"
#include "spmv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS_PER_LINE = 1000 };

struct volumes {
    int n_parts;
    int64_t *items; /* n_parts x n_parts, from source to destination */
    int *item;      /* with --items: what is sent, by source, then destination */
    int64_t *next;  /* where the next item of each pair goes while these are listed */
};

/* With --split a nonzero belongs to the owner of its row, whom the entry of x is sent, or of its
 * column, who sends the partial sum; a hash of its place says which. */
static int is_of_form(const struct spmv_options *options, int row, int col)
{
    uint64_t hash = bench_hash((uint64_t)options->seed + 3, (uint64_t)row, (uint64_t)col);

    return !options->splits || hash % 2 == (options->form == SPMV_ROW);
}

/*
 * Each line across is one item, once for every other part with an entry on it: in row form its
 * owner sends it there, in column form that part sends its partial sum to the owner. The first pass
 * (next is NULL) counts the items, the second lists them.
 */
static void pass_items(const struct matrix *across, const int *part, const int *number,
                       const struct spmv_options *options, int *seen, struct volumes *volumes)
{
    int is_row = options->form == SPMV_ROW;

    memset(seen, 0, (size_t)volumes->n_parts * sizeof *seen);
    for (int j = 0; j < across->n_rows; j++) {
        int owner = part[j];
        for (size_t k = across->start[j]; k < across->start[j + 1]; k++) {
            int i = across->col[k], other = part[i];
            if (other == owner || seen[other] == j + 1 ||
                !is_of_form(options, is_row ? i : j, is_row ? j : i))
                continue;
            seen[other] = j + 1;
            int source = is_row ? owner : other;
            int destination = is_row ? other : owner;
            size_t pair = (size_t)source * (size_t)volumes->n_parts + (size_t)destination;
            if (volumes->next)
                volumes->item[volumes->next[pair]++] = number[j];
            else
                volumes->items[pair]++;
        }
    }
}

/* Lists the items that pass_items has counted. 0, or -1 without memory. */
static int list_items(const struct matrix *across, const int *part,
                      const struct spmv_options *options, int *seen, struct volumes *volumes)
{
    size_t n_pairs = (size_t)volumes->n_parts * (size_t)volumes->n_parts;
    int64_t n_items = 0;
    int *number = bench_array((size_t)across->n_rows, sizeof *number);
    int *n_owned = bench_array((size_t)volumes->n_parts, sizeof *n_owned);
    volumes->next = bench_array(n_pairs, sizeof *volumes->next);
    if (volumes->next)
        for (size_t pair = 0; pair < n_pairs; pair++) {
            volumes->next[pair] = n_items;
            n_items += volumes->items[pair];
        }
    volumes->item = bench_array((size_t)n_items, sizeof *volumes->item);
    int status = number && n_owned && volumes->next && volumes->item ? 0 : -1;
    if (status == 0) {
        for (int j = 0; j < across->n_rows; j++)
            number[j] = n_owned[part[j]]++;
        pass_items(across, part, number, options, seen, volumes);
    }
    free(number);
    free(n_owned);
    return status;
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
        pass_items(&across, part, NULL, options, seen, volumes);
    if (status == 0 && options->lists_items) {
        status = list_items(&across, part, options, seen, volumes);
        if (status != 0)
            bench_fail(error, "no memory for the items of %d parts", volumes->n_parts);
    }
    matrix_free(&across);
    free(part);
    free(seen);
    return status;
}

/* A pair's items, in lines that are not too long for readers. next is behind the last of them. */
static void write_items(FILE *file, int source, int destination, const struct volumes *volumes,
                        size_t pair)
{
    const int *item = volumes->item + volumes->next[pair] - volumes->items[pair];

    for (int64_t k = 0; k < volumes->items[pair]; k++) {
        if (k % ITEMS_PER_LINE == 0)
            fprintf(file, "%s%d %d :", k ? "\n" : "", source, destination);
        fprintf(file, " %d", item[k]);
    }
    fputc('\n', file);
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
            size_t pair = (size_t)i * (size_t)volumes->n_parts + (size_t)j;
            if (volumes->items[pair] > 0 && volumes->item)
                write_items(file, i, j, volumes, pair);
            else if (volumes->items[pair] > 0)
                fprintf(file, "%d %d %" PRId64 "\n", i, j, volumes->items[pair]);
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
    free(volumes.item);
    free(volumes.next);
    return status;
}
