/*
 * Random geometric graphs (graph.h) whose points need not be drawn by everybody. The square is
 * halved again and again, by turns across and along, down to cells that are at least as wide as
 * two joined points may be apart; how many of a part's points lie in its first half is a binomial
 * number made from that part's own random bits. So the points of any cell, numbered from cell to
 * cell, are known from the parts above it, and their places are hashed from their numbers.
 */
#include "graph.h"

#include <math.h>
#include <stdlib.h>

#define SIDE (INT64_C(1) << 31) /* coordinates are whole numbers below this */

struct cell {
    int64_t number, first, n; /* along the halvings; its points */
    int64_t at;               /* where their coordinates are kept */
};

struct cells {
    uint64_t seed;
    int n_halvings; /* even: as many across as along */
    int64_t n, room;
    struct cell *cell; /* ascending */
    int64_t *x, *y;
};

/* Of which cells something is wanted: those with points in a range, or those of a list. */
struct wanted {
    int64_t first, end;
    const int64_t *list; /* ascending; NULL: the range */
    int64_t n;
};

static int64_t count_first_half(uint64_t seed, int level, int64_t part, int64_t n)
{
    uint64_t key = bench_hash(seed, (uint64_t)level, (uint64_t)part);
    int64_t count = 0;

    for (int64_t k = 0; k < n; k += 64) {
        uint64_t bits = bench_hash(key, 5, (uint64_t)k);
        if (n - k < 64)
            bits &= (UINT64_C(1) << (n - k)) - 1;
        count += __builtin_popcountll(bits);
    }
    return count;
}

/* The place of the first number of an ascending list that is not below a value. */
static int64_t lower_bound(const int64_t *list, int64_t n, int64_t value)
{
    int64_t low = 0, high = n;

    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (list[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int is_wanted(const struct wanted *wanted, int64_t cell, int64_t n_cells, int64_t first,
                     int64_t n)
{
    if (!wanted->list)
        return wanted->first < wanted->end && first < wanted->end && first + n > wanted->first;
    int64_t at = lower_bound(wanted->list, wanted->n, cell);
    return at < wanted->n && wanted->list[at] < cell + n_cells;
}

static void add_cell(struct cells *cells, int64_t number, int64_t first, int64_t n)
{
    if (cells->n == cells->room) {
        cells->room = 2 * cells->room + 16;
        cells->cell = bench_resize(cells->cell, (size_t)cells->room, sizeof *cells->cell);
        if (!cells->cell)
            bench_abort("no memory for the cells");
    }
    cells->cell[cells->n++] = (struct cell){.number = number, .first = first, .n = n};
}

static void find_cells(struct cells *cells, const struct wanted *wanted, int level, int64_t part,
                       int64_t first, int64_t n)
{
    int rest = cells->n_halvings - level;

    if (!is_wanted(wanted, part << rest, INT64_C(1) << rest, first, n))
        return;
    if (rest == 0) {
        add_cell(cells, part, first, n);
        return;
    }
    int64_t half = count_first_half(cells->seed, level, part, n);
    find_cells(cells, wanted, level + 1, 2 * part, first, half);
    find_cells(cells, wanted, level + 1, 2 * part + 1, first + half, n - half);
}

/* Halvings 0, 2, ... are across (x), the others along (y). */
static void split_number(int64_t number, int n_halvings, int64_t *x, int64_t *y)
{
    *x = *y = 0;
    for (int h = 0; h < n_halvings; h++) {
        int64_t *to = h % 2 ? y : x;
        *to = 2 * *to + (number >> (n_halvings - 1 - h) & 1);
    }
}

static int64_t join_number(int64_t x, int64_t y, int n_halvings)
{
    int64_t number = 0;

    for (int h = 0; h < n_halvings; h++)
        number = 2 * number + ((h % 2 ? y : x) >> ((n_halvings - 1 - h) / 2) & 1);
    return number;
}

static int compare_numbers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* The cells around those with own points, ascending; returns their number. */
static int64_t list_around(const struct cells *own, int64_t **list)
{
    int64_t side = INT64_C(1) << own->n_halvings / 2, n = 0, n_kept = 0;
    int64_t *around = bench_need(9 * (size_t)own->n, sizeof *around);

    for (int64_t c = 0; c < own->n; c++) {
        int64_t x, y;
        split_number(own->cell[c].number, own->n_halvings, &x, &y);
        for (int64_t d = 0; d < 9; d++) {
            int64_t cx = x + d % 3 - 1, cy = y + d / 3 - 1;
            if (cx >= 0 && cx < side && cy >= 0 && cy < side)
                around[n++] = join_number(cx, cy, own->n_halvings);
        }
    }
    qsort(around, (size_t)n, sizeof *around, compare_numbers);
    for (int64_t k = 0; k < n; k++)
        if (k == 0 || around[k] != around[n_kept - 1])
            around[n_kept++] = around[k];
    *list = around;
    return n_kept;
}

static void place_points(struct cells *cells)
{
    int64_t n = 0, width = SIDE >> cells->n_halvings / 2;

    for (int64_t c = 0; c < cells->n; c++) {
        cells->cell[c].at = n;
        n += cells->cell[c].n;
    }
    cells->x = bench_need((size_t)n, sizeof *cells->x);
    cells->y = bench_need((size_t)n, sizeof *cells->y);
    for (int64_t c = 0; c < cells->n; c++) {
        const struct cell *cell = &cells->cell[c];
        int64_t x, y;
        split_number(cell->number, cells->n_halvings, &x, &y);
        for (int64_t k = 0; k < cell->n; k++) {
            uint64_t bits = bench_hash(cells->seed, 6, (uint64_t)(cell->first + k));
            cells->x[cell->at + k] = x * width + (int64_t)(bits >> 32) % width;
            cells->y[cell->at + k] = y * width + (int64_t)(bits & 0xffffffff) % width;
        }
    }
}

static const struct cell *find_cell(const struct cells *cells, int64_t number)
{
    int64_t low = 0, high = cells->n - 1;

    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (cells->cell[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return &cells->cell[low];
}

/* The edges from one own point to those of a cell. */
static void join_point(const struct cells *cells, int64_t vertex, int64_t at,
                       const struct cell *there, int64_t most_squared, int both_ways,
                       struct graph *graph)
{
    for (int64_t k = 0; k < there->n; k++) {
        int64_t other = there->first + k;
        int64_t dx = cells->x[at] - cells->x[there->at + k];
        int64_t dy = cells->y[at] - cells->y[there->at + k];
        if ((both_ways ? other != vertex : other > vertex) && dx * dx + dy * dy <= most_squared)
            graph_add(graph, vertex, other);
    }
}

static void join_cell(const struct cells *cells, const struct cell *cell, int64_t most_squared,
                      int both_ways, struct graph *graph)
{
    int64_t side = INT64_C(1) << cells->n_halvings / 2, x, y;

    split_number(cell->number, cells->n_halvings, &x, &y);
    for (int64_t d = 0; d < 9; d++) {
        int64_t cx = x + d % 3 - 1, cy = y + d / 3 - 1;
        if (cx < 0 || cx >= side || cy < 0 || cy >= side)
            continue;
        const struct cell *there = find_cell(cells, join_number(cx, cy, cells->n_halvings));
        for (int64_t k = 0; k < cell->n; k++)
            if (cell->first + k >= graph->first && cell->first + k < graph->first + graph->n_own)
                join_point(cells, cell->first + k, cell->at + k, there, most_squared, both_ways,
                           graph);
    }
}

void graph_make_rgg(const struct graph_options *options, int both_ways, struct graph *graph)
{
    double n = (double)options->n_vertices;
    /* a circle of this radius holds twice as many points as there are edges a vertex */
    double squared = 2 * (double)options->n_edges / n / (3.14159265358979323846 * n);
    struct cells own = {.seed = (uint64_t)options->seed}, cells = own;
    struct wanted range = {.first = graph->first, .end = graph->first + graph->n_own};
    int64_t *list;

    if (squared > 1.99)
        squared = 1.99; /* the diagonal of the square; keeps the product in 64 bits */
    while (own.n_halvings < 40 && ldexp(1, -(own.n_halvings + 2)) >= squared &&
           ldexp(1, own.n_halvings + 2) <= n)
        own.n_halvings += 2;
    cells.n_halvings = own.n_halvings;
    find_cells(&own, &range, 0, 0, 0, options->n_vertices);
    struct wanted around = {.n = list_around(&own, &list)};
    around.list = list;
    find_cells(&cells, &around, 0, 0, 0, options->n_vertices);
    place_points(&cells);
    int64_t most_squared = (int64_t)(squared * (double)SIDE * (double)SIDE);
    for (int64_t c = 0; c < own.n; c++)
        join_cell(&cells, find_cell(&cells, own.cell[c].number), most_squared, both_ways, graph);
    free(list);
    free(own.cell);
    free(cells.cell);
    free(cells.x);
    free(cells.y);
}
