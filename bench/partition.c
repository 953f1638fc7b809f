/* Assignment of matrix lines to ranks; see partition.h. */
#include "partition.h"

#include "text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_METIS
#include <metis.h>
#endif

/* A line goes to the part in whose share of the total weight its middle lies. */
static void partition_block(const struct matrix *lines, int n_parts, int *part)
{
    uint64_t total = (uint64_t)matrix_entries(lines) + (uint64_t)lines->n_rows;

    for (int i = 0; i < lines->n_rows; i++) {
        uint64_t before = (uint64_t)lines->start[i] + (uint64_t)i;
        uint64_t weight = (uint64_t)(lines->start[i + 1] - lines->start[i]) + 1;
        double middle = ((double)before + (double)weight / 2) / (double)total;
        int at = (int)(middle * n_parts);
        part[i] = at < n_parts ? at : n_parts - 1;
    }
}

static int read_parts(struct text *text, int n_lines, int n_parts, int *part,
                      struct bench_error *error)
{
    int n = 0;

    while (text_skip_comments(text, '#')) {
        int64_t number;
        if (n == n_lines)
            return text_fail(text, error,
                             "more part numbers than the matrix has rows (%d); is "
                             "this the partition of another matrix?",
                             n_lines);
        if (text_number(text, INT64_MAX, &number) != 0 || number >= n_parts)
            return text_fail(text, error,
                             "a part number from 0 to %d expected; make the partition "
                             "for %d parts or start as many ranks as it has",
                             n_parts - 1, n_parts);
        if (text_end_line(text) != 0)
            return text_fail(text, error, "text after the part number; one number per line");
        part[n++] = (int)number;
    }
    if (n < n_lines)
        return text_fail(text, error,
                         "ends after %d part numbers, the matrix has %d rows; is this "
                         "the partition of another matrix?",
                         n, n_lines);
    return 0;
}

static int partition_file(const char *path, int n_lines, int n_parts, int *part,
                          struct bench_error *error)
{
    struct text text;

    if (text_open(&text, path, error) != 0)
        return -1;
    int status = read_parts(&text, n_lines, n_parts, part, error);
    if (text_status(&text, error) != 0)
        status = -1;
    text_close(&text);
    return status;
}

#ifdef HAVE_METIS

/* The input of METIS: an undirected graph without loops, in METIS's integer type. */
struct graph {
    idx_t *start, *neighbor, *weight, *part;
};

static void graph_free(struct graph *graph)
{
    free(graph->start);
    free(graph->neighbor);
    free(graph->weight);
    free(graph->part);
}

static int graph_create(int n_lines, size_t n_neighbors, struct graph *graph)
{
    size_t n = (size_t)n_lines;

    if (n_neighbors > (size_t)IDX_MAX)
        return -1;
    graph->start = bench_array(n + 1, sizeof *graph->start);
    graph->neighbor = bench_array(n_neighbors, sizeof *graph->neighbor);
    graph->weight = bench_array(n, sizeof *graph->weight);
    graph->part = bench_array(n, sizeof *graph->part);
    return graph->start && graph->neighbor && graph->weight && graph->part ? 0 : -1;
}

/* Write the union of row i of both matrices, without i itself; both are sorted. Their number. */
static size_t merge_rows(const struct matrix *a, const struct matrix *b, int i, idx_t *out)
{
    size_t n = 0;
    size_t at_a = a->start[i], end_a = a->start[i + 1];
    size_t at_b = b->start[i], end_b = b->start[i + 1];

    while (at_a < end_a || at_b < end_b) {
        int in_a = at_a < end_a ? a->col[at_a] : INT_MAX;
        int in_b = at_b < end_b ? b->col[at_b] : INT_MAX;
        int next = in_a < in_b ? in_a : in_b;
        at_a += in_a == next;
        at_b += in_b == next;
        if (next != i)
            out[n++] = next;
    }
    return n;
}

static void graph_fill(const struct matrix *lines, const struct matrix *transposed,
                       struct graph *graph)
{
    size_t n = 0;

    for (int i = 0; i < lines->n_rows; i++) {
        n += merge_rows(lines, transposed, i, graph->neighbor + n);
        graph->start[i + 1] = (idx_t)n;
        graph->weight[i] = (idx_t)(lines->start[i + 1] - lines->start[i]) + 1;
    }
}

static int call_metis(struct graph *graph, int n_lines, int n_parts, int64_t seed)
{
    idx_t options[METIS_NOPTIONS];
    idx_t n = n_lines;
    idx_t n_constraints = 1;
    idx_t parts = n_parts;
    idx_t cut;

    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = (idx_t)(seed & INT_MAX);
    /* What is sent is a line once per rank that refers to it: METIS's volume, not its edge cut. */
    options[METIS_OPTION_OBJTYPE] = METIS_OBJTYPE_VOL;
    options[METIS_OPTION_UFACTOR] = 100; /* the heaviest part may exceed the mean by a tenth */
    return METIS_PartGraphKway(&n, &n_constraints, graph->start, graph->neighbor, graph->weight,
                               NULL, NULL, &parts, NULL, NULL, options, &cut,
                               graph->part) == METIS_OK
               ? 0
               : -1;
}

static int partition_graph(const struct matrix *lines, const struct matrix *transposed, int n_parts,
                           int64_t seed, int *part, struct bench_error *error)
{
    struct graph graph = {0};
    size_t n = matrix_entries(lines);
    int status = -1;

    if (n > SIZE_MAX / 2 || graph_create(lines->n_rows, 2 * n, &graph) != 0) {
        bench_fail(error, "no memory for METIS, or more than its %lld edges; use --partition block",
                   (long long)IDX_MAX);
    } else {
        graph_fill(lines, transposed, &graph);
        status = call_metis(&graph, lines->n_rows, n_parts, seed);
        if (status != 0)
            bench_fail(error, "METIS failed for %d rows in %d parts; use --partition block",
                       lines->n_rows, n_parts);
        for (int i = 0; status == 0 && i < lines->n_rows; i++)
            part[i] = (int)graph.part[i];
    }
    graph_free(&graph);
    return status;
}

static int partition_metis(const struct matrix *lines, int n_parts, int64_t seed, int *part,
                           struct bench_error *error)
{
    struct matrix transposed;

    /* METIS is not made for one part, nor for parts that must stay empty. */
    if (n_parts == 1 || n_parts >= lines->n_rows) {
        for (int i = 0; i < lines->n_rows; i++)
            part[i] = i % n_parts;
        return 0;
    }
    if (matrix_transpose(lines, &transposed) != 0)
        return bench_fail(error,
                          "no memory to transpose %zu entries for METIS; use --partition "
                          "block",
                          matrix_entries(lines));
    int status = partition_graph(lines, &transposed, n_parts, seed, part, error);
    matrix_free(&transposed);
    return status;
}

#else

static int partition_metis(const struct matrix *lines, int n_parts, int64_t seed, int *part,
                           struct bench_error *error)
{
    (void)lines, (void)n_parts, (void)seed, (void)part;
    return bench_fail(error, "--partition metis: this program was built without METIS; install "
                             "libmetis-dev and build again, or use --partition block");
}

#endif

int partition_lines(const char *how, const struct matrix *lines, int n_parts, int64_t seed,
                    int *part, struct bench_error *error)
{
    if (strcmp(how, "metis") == 0)
        return partition_metis(lines, n_parts, seed, part, error);
    if (strcmp(how, "block") != 0)
        return partition_file(how, lines->n_rows, n_parts, part, error);
    partition_block(lines, n_parts, part);
    return 0;
}
