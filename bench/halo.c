/*
 * halo: a stencil on a periodic grid in two or three dimensions, in blocks on a Cartesian
 * communicator, with the time that the exchange of halos takes.
 *
 *     halo [--dims 2|3] [--grid AxBxC] [--cells N] [--corners] [--open] [--reorder] [--compare] ...
 *
 * Every rank has a block of N cells a side. Each iteration it sends the cells at its faces, with
 * --corners those at its edges and corners, too, to the neighbours there (MPI_Irecv, MPI_Isend,
 * MPI_Waitall), and replaces each cell by the sum over itself and its neighbours modulo a small
 * prime: exact, so that the checksum depends on the whole grid only. With --compare the same halos
 * are exchanged by PMPI_ names on a duplicate of the communicator, too, in turns.
 * Exit status: 0, 1 when memory runs out, 2 for bad arguments.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* getopt_long */
#endif
#include "arguments.h"
#include "common.h"
#include "report.h"
#include "together.h"

#include <getopt.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIMS = 3,
    MOST_NEIGHBOURS = 26,
    PRIME = 8191,
    MOST_CELLS = 1000,
    MOST_ITERATIONS = 10000000
};

static const char usage[] =
    "usage: halo [options]\n"
    "  repeats a stencil on a grid in blocks and times the exchange of halos\n"
    "  --dims 2|3       dimensions (default 3)\n"
    "  --grid AxB[xC]   ranks in each dimension (default: MPI_Dims_create)\n"
    "  --cells N        cells of a rank's block in each dimension (default 8)\n"
    "  --corners        exchange edges and corners, too: 8 or 26 neighbours instead of 4 or 6\n"
    "  --open           the grid ends at its borders; otherwise it is periodic\n"
    "  --reorder        MPI may place the ranks\n"
    "  --iterations N   timed iterations (default 50)\n"
    "  --warmup N       iterations before those (default 20)\n"
    "  --compare        exchange twice an iteration, also by the library's PMPI names\n"
    "  --json           print one JSON object on one line\n"
    "  --help           print this\n";

struct options {
    int n_dims, grid[DIMS], n_cells, has_corners, is_open, reorders;
    int n_iterations, n_warmup, compares, is_json, wants_help;
};

/* The cells that go to one neighbour, and those that come from it, as ranges in each dimension. */
struct neighbour {
    int rank, tag, tag_there; /* of what is sent to it, and of what it sends here */
    int sent[DIMS], received[DIMS], size[DIMS];
    int n;
    double *out, *in;
};

/* A rank's block, with a layer of other ranks' cells around it. */
struct block {
    MPI_Comm comm, library; /* the second one for PMPI names */
    int rank, n_ranks, n_dims, grid[DIMS], place[DIMS];
    int n_cells[DIMS], room[DIMS];
    double *now, *next;
    int n_neighbours;
    struct neighbour neighbour[MOST_NEIGHBOURS];
};

/* Seconds that the exchange of one iteration took, by MPI_ and by PMPI_ names. */
struct timing {
    double called, library;
};

/* ---- arguments ---- */

static int read_grid(struct options *options, struct bench_error *error)
{
    char rest;
    int *g = options->grid, n = sscanf(optarg, "%dx%dx%d%c", &g[0], &g[1], &g[2], &rest);

    for (int d = 0; d < n && d < DIMS; d++)
        if (g[d] < 1 || g[d] > 1000000)
            n = 0;
    if (n < 2 || n > DIMS)
        return bench_fail(error, "--grid wants numbers of ranks like 8x4x4, not '%s'", optarg);
    options->n_dims = n;
    return 0;
}

static int read_count(const char *name, int least, int most, int *out, struct bench_error *error)
{
    int64_t value;

    if (bench_parse_integer(optarg, least, most, &value) != 0)
        return bench_fail(error, "--%s wants a number from %d to %d, not '%s'", name, least, most,
                          optarg);
    *out = (int)value;
    return 0;
}

static int take_option(int letter, void *to, struct bench_error *error)
{
    struct options *options = to;

    switch (letter) {
    case 'd':
        return read_count("dims", 2, DIMS, &options->n_dims, error);
    case 'g':
        return read_grid(options, error);
    case 'c':
        return read_count("cells", 1, MOST_CELLS, &options->n_cells, error);
    case 'i':
        return read_count("iterations", 1, MOST_ITERATIONS, &options->n_iterations, error);
    case 'w':
        return read_count("warmup", 0, MOST_ITERATIONS, &options->n_warmup, error);
    default:
        return 0; /* a flag */
    }
}

static int read_options(int n_arguments, char **arguments, struct options *out,
                        struct bench_error *error)
{
    struct options options = {.n_dims = DIMS, .n_cells = 8, .n_iterations = 50, .n_warmup = 20};
    const struct option names[] = {
        {"dims", required_argument, NULL, 'd'},
        {"grid", required_argument, NULL, 'g'},
        {"cells", required_argument, NULL, 'c'},
        {"iterations", required_argument, NULL, 'i'},
        {"warmup", required_argument, NULL, 'w'},
        {"corners", no_argument, &options.has_corners, 1},
        {"open", no_argument, &options.is_open, 1},
        {"reorder", no_argument, &options.reorders, 1},
        {"compare", no_argument, &options.compares, 1},
        {"json", no_argument, &options.is_json, 1},
        {"help", no_argument, &options.wants_help, 1},
        {NULL, 0, NULL, 0},
    };
    if (bench_read_options(n_arguments, arguments, names, take_option, &options, error) != 0)
        return -1;
    if (optind < n_arguments)
        return bench_fail(error, "'%s' is no option", arguments[optind]);
    *out = options;
    return 0;
}

/* ---- the block ---- */

static void *array(size_t n, size_t size)
{
    void *memory = bench_array(n, size);

    if (!memory) {
        fprintf(stderr, "halo: no memory for %zu items of %zu bytes; use fewer cells\n", n, size);
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
    return memory;
}

static double *cell(const struct block *block, double *cells, int x, int y, int z)
{
    return &cells[((size_t)x * (size_t)block->room[1] + (size_t)y) * (size_t)block->room[2] +
                  (size_t)z];
}

/* The rank that many blocks away; MPI_PROC_NULL beyond the border of an open grid. */
static int rank_at(const struct block *block, const int *step, int is_open)
{
    int place[DIMS], rank;

    for (int d = 0; d < block->n_dims; d++) {
        place[d] = block->place[d] + step[d];
        if (is_open && (place[d] < 0 || place[d] >= block->grid[d]))
            return MPI_PROC_NULL;
    }
    MPI_Cart_rank(block->comm, place, &rank);
    return rank;
}

static int number_of(const int *step)
{
    return (step[0] + 1) * 9 + (step[1] + 1) * 3 + step[2] + 1;
}

static void add_neighbour(struct block *block, const int *step, int is_open)
{
    const int back[DIMS] = {-step[0], -step[1], -step[2]};
    struct neighbour *n = &block->neighbour[block->n_neighbours++];

    n->rank = rank_at(block, step, is_open);
    n->tag = number_of(step);
    n->tag_there = number_of(back);
    n->n = 1;
    for (int d = 0; d < DIMS; d++) {
        int own = d < block->n_dims; /* a layer lies around dimensions that the grid has */
        n->size[d] = step[d] ? 1 : block->n_cells[d];
        n->sent[d] = step[d] > 0 ? block->n_cells[d] : own;
        n->received[d] = step[d] > 0 ? block->n_cells[d] + 1 : step[d] < 0 ? 0 : own;
        n->n *= n->size[d];
    }
    n->out = array((size_t)n->n, sizeof *n->out);
    n->in = array((size_t)n->n, sizeof *n->in);
}

static void add_neighbours(struct block *block, const struct options *options)
{
    int step[DIMS], deep = options->n_dims > 2;

    for (step[0] = -1; step[0] <= 1; step[0]++)
        for (step[1] = -1; step[1] <= 1; step[1]++)
            for (step[2] = -deep; step[2] <= deep; step[2]++) {
                int n_steps = abs(step[0]) + abs(step[1]) + abs(step[2]);
                if (n_steps == 1 || (n_steps > 1 && options->has_corners))
                    add_neighbour(block, step, options->is_open);
            }
}

static double start_value(const struct block *block, int x, int y, int z)
{
    int at[DIMS] = {x - 1, y - 1, z - (block->n_dims > 2)};
    uint64_t number = 0;

    for (int d = 0; d < DIMS; d++)
        number = number * (uint64_t)block->grid[d] * (uint64_t)block->n_cells[d] +
                 (uint64_t)(block->place[d] * block->n_cells[d] + at[d]);
    return (double)(bench_mix(number) % PRIME);
}

#define FOR_OWN_CELLS(block, x, y, z)                                                              \
    for (int x = 1; x <= (block)->n_cells[0]; x++)                                                 \
        for (int y = 1; y <= (block)->n_cells[1]; y++)                                             \
            for (int z = (block)->n_dims > 2; z < (block)->n_cells[2] + ((block)->n_dims > 2); z++)

static struct block block_create(const struct options *options)
{
    struct block block = {.n_dims = options->n_dims, .library = MPI_COMM_NULL, .grid = {1, 1, 1}};
    int dims[DIMS] = {0}, periods[DIMS];
    size_t n = 1;

    MPI_Comm_size(MPI_COMM_WORLD, &block.n_ranks);
    memcpy(dims, options->grid, sizeof dims);
    MPI_Dims_create(block.n_ranks, options->n_dims, dims);
    for (int d = 0; d < DIMS; d++)
        periods[d] = !options->is_open;
    MPI_Cart_create(MPI_COMM_WORLD, options->n_dims, dims, periods, options->reorders, &block.comm);
    MPI_Comm_rank(block.comm, &block.rank);
    MPI_Cart_coords(block.comm, block.rank, options->n_dims, block.place);
    if (options->compares)
        PMPI_Comm_dup(block.comm, &block.library);
    for (int d = 0; d < DIMS; d++) {
        int own = d < options->n_dims;
        block.grid[d] = own ? dims[d] : 1;
        block.n_cells[d] = own ? options->n_cells : 1;
        block.room[d] = block.n_cells[d] + 2 * own;
        n *= (size_t)block.room[d];
    }
    block.now = array(n, sizeof(double));
    block.next = array(n, sizeof(double));
    add_neighbours(&block, options);
    FOR_OWN_CELLS(&block, x, y, z)
    *cell(&block, block.now, x, y, z) = start_value(&block, x, y, z);
    return block;
}

static void block_free(struct block *block)
{
    for (int k = 0; k < block->n_neighbours; k++) {
        free(block->neighbour[k].out);
        free(block->neighbour[k].in);
    }
    free(block->now);
    free(block->next);
    if (block->library != MPI_COMM_NULL)
        PMPI_Comm_free(&block->library);
    MPI_Comm_free(&block->comm);
}

/* ---- one iteration ---- */

static void copy_halo(struct block *block, const struct neighbour *n, const int *first,
                      double *packed, int packs)
{
    for (int x = first[0]; x < first[0] + n->size[0]; x++)
        for (int y = first[1]; y < first[1] + n->size[1]; y++) {
            double *row = cell(block, block->now, x, y, first[2]);
            size_t bytes = (size_t)n->size[2] * sizeof *row;
            if (packs)
                memcpy(packed, row, bytes);
            else
                memcpy(row, packed, bytes);
            packed += n->size[2];
        }
}

typedef int receive_function(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
typedef int send_function(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
typedef int wait_function(int, MPI_Request *, MPI_Status *);

/* Seconds on this rank, from a common start. */
static double exchange(struct block *block, MPI_Comm comm, receive_function *receive,
                       send_function *send, wait_function *wait)
{
    MPI_Request requests[2 * MOST_NEIGHBOURS];
    int n = 0;

    bench_start_together(block->comm);
    double begin = MPI_Wtime();
    for (int k = 0; k < block->n_neighbours; k++) {
        struct neighbour *from = &block->neighbour[k];
        receive(from->in, from->n, MPI_DOUBLE, from->rank, from->tag_there, comm, &requests[n++]);
    }
    for (int k = 0; k < block->n_neighbours; k++) {
        struct neighbour *to = &block->neighbour[k];
        copy_halo(block, to, to->sent, to->out, 1);
        send(to->out, to->n, MPI_DOUBLE, to->rank, to->tag, comm, &requests[n++]);
    }
    wait(n, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < block->n_neighbours; k++) {
        const struct neighbour *from = &block->neighbour[k];
        if (from->rank != MPI_PROC_NULL)
            copy_halo(block, from, from->received, from->in, 0);
    }
    double seconds = MPI_Wtime() - begin;
    /* With more ranks than cores, one that computed already would keep others from exchanging. */
    MPI_Barrier(block->comm);
    return seconds;
}

static void step(struct block *block, int has_corners)
{
    int deep = block->n_dims > 2;

    FOR_OWN_CELLS(block, x, y, z)
    {
        double sum = 0;
        for (int i = -1; i <= 1; i++)
            for (int j = -1; j <= 1; j++)
                for (int k = -deep; k <= deep; k++)
                    if (has_corners || abs(i) + abs(j) + abs(k) <= 1)
                        sum += *cell(block, block->now, x + i, y + j, z + k);
        *cell(block, block->next, x, y, z) = (double)((int64_t)sum % PRIME);
    }
    FOR_OWN_CELLS(block, x, y, z)
    *cell(block, block->now, x, y, z) = *cell(block, block->next, x, y, z);
}

/* Exchanges once, or twice in alternating order: the second time brings the same again. */
static struct timing iterate(struct block *block, const struct options *options, int number)
{
    struct timing timing = {0};

    if (options->compares && number % 2)
        timing.library = exchange(block, block->library, PMPI_Irecv, PMPI_Isend, PMPI_Waitall);
    timing.called = exchange(block, block->comm, MPI_Irecv, MPI_Isend, MPI_Waitall);
    if (options->compares && number % 2 == 0)
        timing.library = exchange(block, block->library, PMPI_Irecv, PMPI_Isend, PMPI_Waitall);
    step(block, options->has_corners);
    return timing;
}

/* ---- results ---- */

static uint64_t checksum(struct block *block)
{
    uint64_t sum = 0, total = 0;

    FOR_OWN_CELLS(block, x, y, z)
    {
        uint64_t bits, number = (uint64_t)start_value(block, x, y, z);
        memcpy(&bits, cell(block, block->now, x, y, z), sizeof bits);
        sum +=
            bench_hash((uint64_t)number, (uint64_t)(block->place[0] * block->n_cells[0] + x), bits);
    }
    MPI_Reduce(&sum, &total, 1, MPI_UINT64_T, MPI_SUM, 0, block->comm);
    return total;
}

static void print_times(struct report *report, const char *what, double *seconds, int n)
{
    char name[64];

    bench_sort(seconds, (size_t)n);
    snprintf(name, sizeof name, "%s median", what);
    report_real(report, name, 1e6 * bench_quantile(seconds, (size_t)n, 0.5), 3, "us");
    snprintf(name, sizeof name, "%s max", what);
    report_real(report, name, 1e6 * seconds[n - 1], 3, "us");
}

static void print_results(const struct options *options, const struct block *block, double *called,
                          double *library, uint64_t sum)
{
    struct report report = report_begin(stdout, options->is_json);
    char text[64];
    int bytes = 0, n = options->n_iterations;

    for (int k = 0; k < block->n_neighbours; k++)
        bytes += block->neighbour[k].n * (int)sizeof(double);
    report_integer(&report, "ranks", block->n_ranks, "");
    snprintf(text, sizeof text, "%dx%dx%d", block->grid[0], block->grid[1], block->grid[2]);
    report_text(&report, "grid", text);
    report_integer(&report, "cells", options->n_cells, "");
    report_integer(&report, "neighbours", block->n_neighbours, "");
    report_integer(&report, "exchange", bytes, "bytes");
    report_integer(&report, "iterations", n, "");
    print_times(&report, "time", called, n);
    if (options->compares) {
        double ratio = bench_quantile(called, (size_t)n, 0.5);
        print_times(&report, "library", library, n);
        ratio = bench_quantile(library, (size_t)n, 0.5) / ratio;
        report_real(&report, "speedup", ratio, 3, "");
    }
    snprintf(text, sizeof text, "%016" PRIx64, sum);
    report_text(&report, "checksum", text);
    report_end(&report);
}

static void run(const struct options *options)
{
    struct block block = block_create(options);
    size_t n = (size_t)options->n_iterations;
    double *called = array(n, sizeof *called), *library = array(n, sizeof *library);

    for (int i = 0; i < options->n_warmup; i++)
        (void)iterate(&block, options, i);
    for (int i = 0; i < options->n_iterations; i++) {
        struct timing timing = iterate(&block, options, i);
        called[i] = timing.called;
        library[i] = timing.library;
    }
    const void *mine = block.rank == 0 ? MPI_IN_PLACE : called;
    MPI_Reduce(mine, called, (int)n, MPI_DOUBLE, MPI_MAX, 0, block.comm);
    mine = block.rank == 0 ? MPI_IN_PLACE : library;
    MPI_Reduce(mine, library, (int)n, MPI_DOUBLE, MPI_MAX, 0, block.comm);
    uint64_t sum = checksum(&block);
    if (block.rank == 0)
        print_results(options, &block, called, library, sum);
    free(called);
    free(library);
    block_free(&block);
}

/* Whether the ranks are as many as the grid has places. The same answer on all ranks. */
static int check_grid(const struct options *options, struct bench_error *error)
{
    int64_t n_places = 1;
    int n_ranks;

    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    for (int d = 0; options->grid[0] && d < options->n_dims; d++)
        n_places *= options->grid[d];
    if (options->grid[0] && n_places != n_ranks)
        return bench_fail(error, "--grid has %" PRId64 " places for %d ranks", n_places, n_ranks);
    return 0;
}

int main(int n_arguments, char **arguments)
{
    struct options options;
    struct bench_error error;
    int rank, status = 0;

    MPI_Init(&n_arguments, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (read_options(n_arguments, arguments, &options, &error) ||
        (!options.wants_help && check_grid(&options, &error)))
        status = 2;
    if (status && rank == 0)
        fprintf(stderr, "halo: %s\n%s", error.text, usage);
    else if (!status && options.wants_help && rank == 0)
        fputs(usage, stdout);
    else if (!status && !options.wants_help)
        run(&options);
    MPI_Finalize();
    return status;
}
