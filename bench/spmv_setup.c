/*
 * Distribution of the matrix: rank 0 reads and partitions it and deals out the lines; then the
 * ranks tell each other which of whose lines they refer to.
 *
 * Rank 0 renumbers the lines so that each rank's are contiguous. Who owns a line, and as which of
 * its own, then follows from one small table of first lines, and no rank but 0 ever holds an
 * array of the size of the matrix. Cost on rank 0: linear in the entries, beside METIS; on the
 * others a sort of the entries that refer to other ranks.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* nanosleep */
#endif
#include "spmv.h"

#include "matrix.h"
#include "partition.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Matrix elements are 1 to MOST_VALUE. */
enum { MOST_VALUE = 9, COUNT_TAG = 1, LINES_TAG = 2 };

/* What rank 0 deals out. Lines are in their new order; entries name lines by new number. */
struct deal {
    int n_parts, n_lines;
    int *n_own; /* per part: lines, and where they begin (one more, the end) */
    int *first_line;
    int *n_entries; /* per part: entries, and where they begin */
    int *first_entry;
    int *old_number, *length; /* per line */
    int *entry;               /* per entry */
    signed char *value;
};

const char spmv_remedy[] = "use a smaller matrix or fewer ranks per node";

int spmv_take_matrix(const struct bench *bench, struct spmv_options *options,
                     struct bench_error *error)
{
    if (bench->arguments.n_names != 1)
        return bench_fail(error, bench->arguments.n_names == 0
                                     ? "no matrix given; name one file"
                                     : "more than one matrix given; name one");
    options->matrix = bench->arguments.names[0];
    return 0;
}

void spmv_report_matrix(struct report *report, const struct spmv_options *options,
                        const struct spmv_share *share)
{
    report_text(report, "matrix", options->matrix);
    report_integer(report, "rows", share->n_rows, "");
    report_integer(report, "nonzeros", share->n_entries, "");
}

/* ---- rank 0: dealing ---- */

static void deal_free(struct deal *deal)
{
    free(deal->n_own);
    free(deal->first_line);
    free(deal->n_entries);
    free(deal->first_entry);
    free(deal->old_number);
    free(deal->length);
    free(deal->entry);
    free(deal->value);
    memset(deal, 0, sizeof *deal);
}

static int deal_create(int n_parts, int n_lines, size_t n_entries, struct deal *deal)
{
    size_t parts = (size_t)n_parts;
    size_t n = (size_t)n_lines;

    deal->n_parts = n_parts;
    deal->n_lines = n_lines;
    deal->n_own = bench_array(parts, sizeof(int));
    deal->first_line = bench_array(parts + 1, sizeof(int));
    deal->n_entries = bench_array(parts, sizeof(int));
    deal->first_entry = bench_array(parts, sizeof(int));
    deal->old_number = bench_array(n, sizeof(int));
    deal->length = bench_array(n, sizeof(int));
    deal->entry = bench_array(n_entries, sizeof(int));
    deal->value = bench_array(n_entries, 1);
    return deal->n_own && deal->first_line && deal->n_entries && deal->first_entry &&
                   deal->old_number && deal->length && deal->entry && deal->value
               ? 0
               : -1;
}

/* Order the lines by part and, within a part, as in the matrix; new_number is the inverse. */
static void deal_order(const int *part, struct deal *deal, int *new_number)
{
    for (int i = 0; i < deal->n_lines; i++)
        deal->n_own[part[i]]++;
    for (int p = 0; p < deal->n_parts; p++) {
        deal->first_line[p + 1] = deal->first_line[p] + deal->n_own[p];
        deal->n_own[p] = 0; /* counted again below */
    }
    for (int i = 0; i < deal->n_lines; i++) {
        int at = deal->first_line[part[i]] + deal->n_own[part[i]]++;
        new_number[i] = at;
        deal->old_number[at] = i;
    }
}

/* A hash of the element's place, so that it does not depend on who owns it. */
static signed char element_value(int64_t seed, int row, int col)
{
    uint64_t hash = bench_hash((uint64_t)seed, (uint64_t)row, (uint64_t)col);

    return (signed char)(1 + hash % MOST_VALUE);
}

static void deal_entries(const struct matrix *lines, const struct spmv_options *options,
                         const int *new_number, struct deal *deal)
{
    int n = 0;

    for (int at = 0; at < deal->n_lines; at++) {
        int line = deal->old_number[at];
        deal->length[at] = (int)(lines->start[line + 1] - lines->start[line]);
        for (size_t k = lines->start[line]; k < lines->start[line + 1]; k++) {
            int across = lines->col[k];
            int is_row = options->form == SPMV_ROW;
            deal->entry[n] = new_number[across];
            deal->value[n++] =
                element_value(options->seed, is_row ? line : across, is_row ? across : line);
        }
    }
}

static void count_entries(struct deal *deal)
{
    int n = 0;

    for (int p = 0; p < deal->n_parts; p++) {
        deal->first_entry[p] = n;
        for (int at = deal->first_line[p]; at < deal->first_line[p + 1]; at++)
            n += deal->length[at];
        deal->n_entries[p] = n - deal->first_entry[p];
    }
}

static int deal_lines(const struct spmv_options *options, const struct matrix *lines,
                      const int *part, struct deal *deal, struct bench_error *error)
{
    int *new_number = bench_array((size_t)lines->n_rows, sizeof *new_number);

    if (!new_number ||
        deal_create(deal->n_parts, lines->n_rows, matrix_entries(lines), deal) != 0) {
        free(new_number);
        return bench_fail(error, "%s: no memory to deal out %zu nonzeros", options->matrix,
                          matrix_entries(lines));
    }
    deal_order(part, deal, new_number);
    deal_entries(lines, options, new_number, deal);
    count_entries(deal);
    free(new_number);
    return 0;
}

static int check_matrix(const char *path, const struct matrix *matrix, struct bench_error *error)
{
    if (matrix->n_rows != matrix->n_cols)
        return bench_fail(error,
                          "%s: is %d x %d; y = A x is repeated with x = y, which needs a "
                          "square matrix",
                          path, matrix->n_rows, matrix->n_cols);
    if (matrix_entries(matrix) > INT_MAX)
        return bench_fail(error,
                          "%s: has %zu nonzeros; at most %d are supported, use a smaller "
                          "matrix",
                          path, matrix_entries(matrix), INT_MAX);
    return 0;
}

/* The owned lines as rows: the matrix itself, or its transpose for the column form. */
int spmv_load_lines(const struct spmv_options *options, struct matrix *lines,
                    struct bench_error *error)
{
    struct matrix matrix;
    int status = 0;

    if (matrix_read(options->matrix, &matrix, error) != 0)
        return -1;
    if (check_matrix(options->matrix, &matrix, error) != 0) {
        status = -1;
    } else if (options->form == SPMV_ROW) {
        *lines = matrix;
        return 0;
    } else if (matrix_transpose(&matrix, lines) != 0) {
        status = bench_fail(error, "%s: no memory to transpose %zu nonzeros", options->matrix,
                            matrix_entries(&matrix));
    }
    matrix_free(&matrix);
    return status;
}

static int prepare(const struct spmv_options *options, struct deal *deal, struct bench_error *error)
{
    struct matrix lines;

    if (spmv_load_lines(options, &lines, error) != 0)
        return -1;
    int *part = bench_array((size_t)lines.n_rows, sizeof *part);
    int status = part ? partition_lines(options->partition, &lines, deal->n_parts, options->seed,
                                        part, error)
                      : bench_fail(error, "no memory for %d part numbers", lines.n_rows);
    if (status == 0 && options->renumber)
        status = options->renumber(&lines, deal->n_parts, part, error);
    if (status == 0)
        status = deal_lines(options, &lines, part, deal, error);
    free(part);
    matrix_free(&lines);
    return status;
}

/*
 * Wait asleep until rank 0 has come this far. MPI's own waiting spins, and with more ranks than
 * cores would take the processor from the one rank that has work.
 */
static void wait_for_all(void)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    MPI_Request request;
    int is_done = 0;

    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    while (!is_done) {
        nanosleep(&nap, NULL);
        MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    }
}

/* ---- all ranks: taking one's share ---- */

static void take_lines(const struct deal *deal, struct spmv_share *share)
{
    size_t n_own = (size_t)share->n_own;
    int *length = bench_need(n_own, sizeof *length);

    share->own = bench_need(n_own, sizeof *share->own);
    share->start = bench_need(n_own + 1, sizeof *share->start);
    MPI_Scatterv(deal->old_number, deal->n_own, deal->first_line, MPI_INT, share->own, share->n_own,
                 MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatterv(deal->length, deal->n_own, deal->first_line, MPI_INT, length, share->n_own,
                 MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < share->n_own; i++)
        share->start[i + 1] = share->start[i] + length[i];
    free(length);
}

static void take_entries(const struct deal *deal, struct spmv_share *share)
{
    int n = share->start[share->n_own];
    signed char *value = bench_need((size_t)n, 1);

    share->entry = bench_need((size_t)n, sizeof *share->entry);
    share->value = bench_need((size_t)n, sizeof *share->value);
    MPI_Scatterv(deal->entry, deal->n_entries, deal->first_entry, MPI_INT, share->entry, n, MPI_INT,
                 0, MPI_COMM_WORLD);
    MPI_Scatterv(deal->value, deal->n_entries, deal->first_entry, MPI_SIGNED_CHAR, value, n,
                 MPI_SIGNED_CHAR, 0, MPI_COMM_WORLD);
    for (int k = 0; k < n; k++)
        share->value[k] = value[k];
    free(value);
}

/* The table of first lines, one per rank and the end; the caller frees it. */
static int *take_share(const struct deal *deal, int rank, int n_ranks, struct spmv_share *share)
{
    int *first_line = bench_need((size_t)n_ranks + 1, sizeof *first_line);

    if (rank == 0)
        memcpy(first_line, deal->first_line, ((size_t)n_ranks + 1) * sizeof *first_line);
    MPI_Bcast(first_line, n_ranks + 1, MPI_INT, 0, MPI_COMM_WORLD);
    share->n_own = first_line[rank + 1] - first_line[rank];
    share->n_rows = first_line[n_ranks];
    take_lines(deal, share);
    take_entries(deal, share);
    int64_t n_entries = share->start[share->n_own];
    MPI_Allreduce(&n_entries, &share->n_entries, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return first_line;
}

/* ---- all ranks: who refers to whose lines ---- */

static int compare_numbers(const void *left, const void *right)
{
    int a = *(const int *)left;
    int b = *(const int *)right;

    return (a > b) - (a < b);
}

/* The lines of other ranks (outside begin to end - 1) that entries name, each once, sorted. */
static int *list_halo(const struct spmv_share *share, int begin, int end, int *n_out)
{
    int n_entries = share->start[share->n_own];
    int *halo = bench_need((size_t)n_entries, sizeof *halo);
    int n = 0;
    int n_different = 0;

    for (int k = 0; k < n_entries; k++)
        if (share->entry[k] < begin || share->entry[k] >= end)
            halo[n++] = share->entry[k];
    qsort(halo, (size_t)n, sizeof *halo, compare_numbers);
    for (int k = 0; k < n; k++)
        if (k == 0 || halo[k] != halo[k - 1])
            halo[n_different++] = halo[k];
    *n_out = n_different;
    return halo;
}

/* From the numbers of the whole matrix to local ones. */
static void localize_entries(struct spmv_share *share, int begin, int end, const int *halo,
                             int n_halo)
{
    int n_entries = share->start[share->n_own];

    for (int k = 0; k < n_entries; k++) {
        int *entry = &share->entry[k];
        if (*entry >= begin && *entry < end) {
            *entry -= begin;
        } else {
            const int *at = bsearch(entry, halo, (size_t)n_halo, sizeof *halo, compare_numbers);
            *entry = share->n_own + (int)(at - halo);
        }
    }
}

/* Keep the ranks that something is exchanged with; counts has one number per rank. */
static void side_create(const int *counts, int n_ranks, struct spmv_side *side)
{
    int n = 0;

    for (int rank = 0; rank < n_ranks; rank++)
        side->n_ranks += counts[rank] > 0;
    side->rank = bench_need((size_t)side->n_ranks, sizeof *side->rank);
    side->count = bench_need((size_t)side->n_ranks, sizeof *side->count);
    side->displ = bench_need((size_t)side->n_ranks, sizeof *side->displ);
    for (int rank = 0; rank < n_ranks; rank++) {
        if (counts[rank] == 0)
            continue;
        side->rank[n] = rank;
        side->count[n] = counts[rank];
        side->displ[n++] = side->n_items;
        side->n_items += counts[rank];
    }
}

/* How many of the sorted lines belong to each rank. */
static void count_by_owner(const int *halo, int n_halo, const int *first_line, int *counts)
{
    int owner = 0;

    for (int k = 0; k < n_halo; k++) {
        while (halo[k] >= first_line[owner + 1])
            owner++;
        counts[owner]++;
    }
}

/*
 * The ranks that refer to lines of this one, and to how many. Each tells the owners; how many will,
 * a reduction says. So a rank has messages with its neighbors only, however many ranks there are.
 */
static void hear_counts(const struct spmv_side *halo_side, int n_ranks, int *border_counts)
{
    int *is_owner = bench_need((size_t)n_ranks, sizeof *is_owner);
    MPI_Request *requests = bench_need((size_t)halo_side->n_ranks, sizeof *requests);
    int n_to_come, count;
    MPI_Status status;

    for (int k = 0; k < halo_side->n_ranks; k++)
        is_owner[halo_side->rank[k]] = 1;
    MPI_Reduce_scatter_block(is_owner, &n_to_come, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int k = 0; k < halo_side->n_ranks; k++)
        MPI_Isend(&halo_side->count[k], 1, MPI_INT, halo_side->rank[k], COUNT_TAG, MPI_COMM_WORLD,
                  &requests[k]);
    for (int k = 0; k < n_to_come; k++) {
        MPI_Recv(&count, 1, MPI_INT, MPI_ANY_SOURCE, COUNT_TAG, MPI_COMM_WORLD, &status);
        border_counts[status.MPI_SOURCE] = count;
    }
    MPI_Waitall(halo_side->n_ranks, requests, MPI_STATUSES_IGNORE);
    free(is_owner);
    free(requests);
}

/* Send the numbers of the halo's lines to their owners, and receive those of the border's. */
static void exchange_lines(const struct spmv_side *halo_side, const int *halo,
                           const struct spmv_side *border_side, int *border)
{
    int n = 0;
    MPI_Request *requests =
        bench_need((size_t)halo_side->n_ranks + (size_t)border_side->n_ranks, sizeof *requests);

    for (int k = 0; k < border_side->n_ranks; k++)
        MPI_Irecv(border + border_side->displ[k], border_side->count[k], MPI_INT,
                  border_side->rank[k], LINES_TAG, MPI_COMM_WORLD, &requests[n++]);
    for (int k = 0; k < halo_side->n_ranks; k++)
        MPI_Isend(halo + halo_side->displ[k], halo_side->count[k], MPI_INT, halo_side->rank[k],
                  LINES_TAG, MPI_COMM_WORLD, &requests[n++]);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    free(requests);
}

/* Tell the owners which of their lines this rank refers to, and hear it from the others. */
static void meet_neighbors(const int *halo, int n_halo, const int *first_line, int rank,
                           int n_ranks, struct spmv_share *share)
{
    int *halo_counts = bench_need((size_t)n_ranks, sizeof(int));
    int *border_counts = bench_need((size_t)n_ranks, sizeof(int));

    count_by_owner(halo, n_halo, first_line, halo_counts);
    side_create(halo_counts, n_ranks, &share->halo_side);
    hear_counts(&share->halo_side, n_ranks, border_counts);
    side_create(border_counts, n_ranks, &share->border_side);
    free(halo_counts);
    free(border_counts);

    share->border = bench_need((size_t)share->border_side.n_items, sizeof(int));
    exchange_lines(&share->halo_side, halo, &share->border_side, share->border);
    for (int k = 0; k < share->border_side.n_items; k++)
        share->border[k] -= first_line[rank];
}

static void connect(enum spmv_form form, struct spmv_share *share)
{
    const struct spmv_side *sent = spmv_sent(share, form);
    const struct spmv_side *received = spmv_received(share, form);

    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, received->n_ranks, received->rank,
                                   MPI_UNWEIGHTED, sent->n_ranks, sent->rank, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &share->graph);
}

int spmv_setup(const struct spmv_options *options, struct spmv_share *out,
               struct bench_error *error)
{
    struct deal deal = {0};
    struct spmv_share share = {0};
    int rank, n_ranks, n_halo;
    int status = 0;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    deal.n_parts = n_ranks;
    if (rank == 0)
        status = prepare(options, &deal, error);
    wait_for_all();
    MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (status != 0) {
        deal_free(&deal);
        return -1;
    }
    int *first_line = take_share(&deal, rank, n_ranks, &share);
    deal_free(&deal);
    int *halo = list_halo(&share, first_line[rank], first_line[rank + 1], &n_halo);
    localize_entries(&share, first_line[rank], first_line[rank + 1], halo, n_halo);
    meet_neighbors(halo, n_halo, first_line, rank, n_ranks, &share);
    connect(options->form, &share);
    free(halo);
    free(first_line);
    *out = share;
    return 0;
}

static void side_free(struct spmv_side *side)
{
    free(side->rank);
    free(side->count);
    free(side->displ);
}

void spmv_share_free(struct spmv_share *share)
{
    MPI_Comm_free(&share->graph);
    side_free(&share->halo_side);
    side_free(&share->border_side);
    free(share->own);
    free(share->start);
    free(share->entry);
    free(share->value);
    free(share->border);
    memset(share, 0, sizeof *share);
}
