/*
 * halo: a stencil on a periodic grid in two or three dimensions, in blocks on a Cartesian
 * communicator, with the time that the exchange of halos takes.
 *
 *     halo [--dims 2|3] [--grid AxBxC] [--cells N] [--corners] [--open] [--reorder] [--compare] ...
 *
 * Every rank has a block of N cells a side. Each iteration it sends the cells at its faces, with
 * --corners those at its edges and corners, too, to the neighbours there (MPI_Irecv, MPI_Isend,
 * MPI_Waitall), and replaces each cell by the sum over itself and its neighbours modulo a small
 * prime: exact, so that the checksum depends on the whole grid only. With --compare, in simulations
 * only, the same halos are exchanged by MPI's own functions (alone.h) on a duplicate of the
 * communicator, too, in turns; while a library carries messages nobody else may call MPI past it.
 * With --loop N an iteration is N exchanges in a row, each with an MPI_Allreduce, as solvers have
 * it, and is timed as a whole. Exit status: 0, 1 when memory runs out, 2 for bad arguments.
 */
#include "alone.h"
#include "main.h"
#include "report.h"
#include "together.h"

#include <inttypes.h>
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
    "  --compare        exchange twice an iteration, also by MPI's own functions (in simulations)\n"
    "  --loop N         time N exchanges in a row, each with a reduction, and without barriers\n"
    "  --json           print one JSON object on one line\n"
    "  --help           print this\n";

struct options {
    int n_dims, grid[DIMS], n_cells, has_corners, is_open, reorders;
    int n_iterations, n_warmup, compares, n_loop;
};

static struct options given = {.n_dims = DIMS, .n_cells = 8, .n_iterations = 50, .n_warmup = 20};

/* The cells that go to one neighbour, and those that come from it, as ranges in each dimension. */
struct neighbour {
    int rank, tag, tag_there; /* of what is sent to it, and of what it sends here */
    int sent[DIMS], received[DIMS], size[DIMS];
    int n;
    double *out, *in;
};

/* A rank's block, with a layer of other ranks' cells around it. */
struct block {
    MPI_Comm comm, library; /* the second one for MPI's own functions */
    int rank, n_ranks, n_dims, grid[DIMS], place[DIMS];
    int n_cells[DIMS], room[DIMS];
    double *now, *next;
    int n_neighbours;
    struct neighbour neighbour[MOST_NEIGHBOURS];
};

/* Microseconds that the exchange of one iteration took, by MPI_ names and by MPI's own functions.
 */
struct timing {
    double called, library;
};

/* ---- arguments ---- */

static int read_grid(const struct bench_option *option, char *value, struct bench_error *error)
{
    char rest;
    int *g = given.grid, n = sscanf(value, "%dx%dx%d%c", &g[0], &g[1], &g[2], &rest);

    for (int d = 0; d < n && d < DIMS; d++)
        if (g[d] < 1 || g[d] > 1000000)
            n = 0;
    if (n < 2 || n > DIMS)
        return bench_fail(error, "--%s wants numbers of ranks like 8x4x4, not '%s'", option->name,
                          value);
    given.n_dims = n;
    return 0;
}

static const struct bench_option table[] = {
    {"dims", .count = &given.n_dims, .least = 2, .most = DIMS},
    {"grid", .take = read_grid},
    {"cells", .count = &given.n_cells, .least = 1, .most = MOST_CELLS},
    {"corners", .flag = &given.has_corners},
    {"open", .flag = &given.is_open},
    {"reorder", .flag = &given.reorders},
    {"iterations", .count = &given.n_iterations, .least = 1, .most = MOST_ITERATIONS},
    {"warmup", .count = &given.n_warmup, .most = MOST_ITERATIONS},
    {"compare", .flag = &given.compares},
    {"loop", .count = &given.n_loop, .least = 1, .most = MOST_ITERATIONS},
    {NULL},
};

/* Whether the ranks are as many as the grid has places. */
static int check(const struct bench *bench, struct bench_error *error)
{
    int64_t n_places = 1;

#ifndef CPL_SIMULATED
    if (given.compares)
        return bench_fail(error,
                          "--compare is for simulations; compare with a run without library");
#endif
    for (int d = 0; given.grid[0] && d < given.n_dims; d++)
        n_places *= given.grid[d];
    if (given.grid[0] && n_places != bench->n_ranks)
        return bench_fail(error, "--grid has %" PRId64 " places for %d ranks", n_places,
                          bench->n_ranks);
    return 0;
}

/* ---- the block ---- */

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
    n->out = bench_need((size_t)n->n, sizeof *n->out);
    n->in = bench_need((size_t)n->n, sizeof *n->in);
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
        ALONE(Comm_dup)(block.comm, &block.library);
    for (int d = 0; d < DIMS; d++) {
        int own = d < options->n_dims;
        block.grid[d] = own ? dims[d] : 1;
        block.n_cells[d] = own ? options->n_cells : 1;
        block.room[d] = block.n_cells[d] + 2 * own;
        n *= (size_t)block.room[d];
    }
    block.now = bench_need(n, sizeof(double));
    block.next = bench_need(n, sizeof(double));
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
        ALONE(Comm_free)(&block->library);
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

/* MPI's functions by one of their names. */
struct names {
    int (*receive)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    int (*wait)(int, MPI_Request *, MPI_Status *);
    int (*reduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
};

static const struct names called = {MPI_Irecv, MPI_Isend, MPI_Waitall, MPI_Allreduce};

static void exchange(struct block *block, MPI_Comm comm, const struct names *by)
{
    MPI_Request requests[2 * MOST_NEIGHBOURS];
    int n = 0;

    for (int k = 0; k < block->n_neighbours; k++) {
        struct neighbour *from = &block->neighbour[k];
        by->receive(from->in, from->n, MPI_DOUBLE, from->rank, from->tag_there, comm,
                    &requests[n++]);
    }
    for (int k = 0; k < block->n_neighbours; k++) {
        struct neighbour *to = &block->neighbour[k];
        copy_halo(block, to, to->sent, to->out, 1);
        by->send(to->out, to->n, MPI_DOUBLE, to->rank, to->tag, comm, &requests[n++]);
    }
    by->wait(n, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < block->n_neighbours; k++) {
        const struct neighbour *from = &block->neighbour[k];
        if (from->rank != MPI_PROC_NULL)
            copy_halo(block, from, from->received, from->in, 0);
    }
}

/* Microseconds of an exchange on this rank, from a common start. */
static double time_exchange(struct block *block, MPI_Comm comm, const struct names *by, int n_loop)
{
    double mine = 1, sum;

    bench_start_together(block->comm);
    double begin = MPI_Wtime();
    exchange(block, comm, by);
    for (int i = 1; i < n_loop; i++) {
        by->reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
        exchange(block, comm, by);
    }
    double us = (MPI_Wtime() - begin) * 1e6;
    /* With more ranks than cores, one that computed already would keep others from exchanging. */
    MPI_Barrier(block->comm);
    return us / (n_loop > 0 ? n_loop : 1);
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
    const struct names own = {ALONE(Irecv), ALONE(Isend), ALONE(Waitall), ALONE(Allreduce)};
    struct timing timing = {0};

    if (options->compares && number % 2)
        timing.library = time_exchange(block, block->library, &own, options->n_loop);
    timing.called = time_exchange(block, block->comm, &called, options->n_loop);
    if (options->compares && number % 2 == 0)
        timing.library = time_exchange(block, block->library, &own, options->n_loop);
    step(block, options->has_corners);
    return timing;
}

/* ---- results ---- */

static uint64_t checksum(struct block *block)
{
    uint64_t sum = 0;

    FOR_OWN_CELLS(block, x, y, z)
    {
        uint64_t bits, number = (uint64_t)start_value(block, x, y, z);
        memcpy(&bits, cell(block, block->now, x, y, z), sizeof bits);
        sum +=
            bench_hash((uint64_t)number, (uint64_t)(block->place[0] * block->n_cells[0] + x), bits);
    }
    return bench_sum(sum, block->comm);
}

/* Returns the median. */
static double print_times(struct report *report, const char *what, double *us, size_t n)
{
    double median = bench_median(us, n);

    report->about = what;
    report_real(report, "median", median, 3, "us");
    report_real(report, "max", us[n - 1], 3, "us");
    report->about = "";
    return median;
}

static void print_results(const struct block *block, int is_json, double *by_name,
                          double *by_library, uint64_t sum)
{
    struct report report = report_begin(stdout, is_json);
    size_t n = (size_t)given.n_iterations;
    char text[64];
    int bytes = 0;

    for (int k = 0; k < block->n_neighbours; k++)
        bytes += block->neighbour[k].n * (int)sizeof(double);
    report_integer(&report, "ranks", block->n_ranks, "");
    snprintf(text, sizeof text, "%dx%dx%d", block->grid[0], block->grid[1], block->grid[2]);
    report_text(&report, "grid", text);
    report_integer(&report, "cells", given.n_cells, "");
    report_integer(&report, "neighbours", block->n_neighbours, "");
    report_integer(&report, "exchange", bytes, "bytes");
    report_integer(&report, "iterations", given.n_iterations, "");
    double median = print_times(&report, "time", by_name, n);
    if (given.compares)
        report_real(&report, "speedup", print_times(&report, "library", by_library, n) / median, 3,
                    "");
    report_checksum(&report, sum);
    report_end(&report);
}

static int run(const struct bench *bench, struct bench_error *error)
{
    struct block block = block_create(&given);
    size_t n = (size_t)given.n_iterations;
    double *by_name = bench_need(n, sizeof *by_name),
           *by_library = bench_need(n, sizeof *by_library);

    (void)error;
    for (int i = 0; i < given.n_warmup; i++)
        (void)iterate(&block, &given, i);
    for (int i = 0; i < given.n_iterations; i++) {
        struct timing timing = iterate(&block, &given, i);
        by_name[i] = timing.called;
        by_library[i] = timing.library;
    }
    bench_slowest(by_name, n, block.comm);
    bench_slowest(by_library, n, block.comm);
    uint64_t sum = checksum(&block);
    if (block.rank == 0)
        print_results(&block, bench->arguments.is_json, by_name, by_library, sum);
    free(by_name);
    free(by_library);
    block_free(&block);
    return 0;
}

const struct bench_program bench_program = {"halo", usage,          "use fewer cells",
                                            table,  .check = check, .run = run};
