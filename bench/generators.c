/* The generators of generators.h. */
#include "generators.h"

#include <math.h>
#include <stdlib.h>

/* ---- R-MAT ---- */

/* The vertices in random order (Fisher and Yates); NULL without memory. */
static int *random_order(int n, struct bench_random *random)
{
    int *order = bench_array((size_t)n, sizeof *order);

    for (int i = 0; order && i < n; i++) {
        int j = (int)bench_random_below(random, (uint64_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    return order;
}

/* Choose a quadrant per level of the recursion, the most significant bit first. */
void generate_rmat_edge(int64_t scale, struct bench_random *random, int *row, int *col)
{
    *row = *col = 0;
    for (int64_t level = 0; level < scale; level++) {
        uint64_t percent = bench_random_below(random, 100);
        *row = 2 * *row + (percent >= 57 + 19);
        *col = 2 * *col + ((percent >= 57 && percent < 57 + 19) || percent >= 57 + 19 + 19);
    }
}

int generate_rmat(const struct generator_options *options, struct edges *edges)
{
    struct bench_random random = {(uint64_t)options->seed};
    int64_t n_edges = edges->n_vertices * options->edges_per_vertex;
    int *order = random_order(edges->n_vertices, &random);

    if (!order)
        return -1;
    for (int64_t k = 0; k < n_edges && !edges->is_full; k++) {
        int row, col;
        generate_rmat_edge(options->scale, &random, &row, &col);
        edges_add(edges, order[row], order[col]);
    }
    free(order);
    return 0;
}

/* ---- random geometric graph ---- */

/* Coordinates are whole numbers below this, so that distances are exact. */
#define SIDE (UINT64_C(1) << 31)

struct points {
    int n, n_cells; /* points; cells along a side */
    uint32_t *x, *y;
    int *first; /* per cell, by rows of cells: its first point; and the end */
};

static int points_create(int n, int n_cells, struct points *points)
{
    size_t cells = (size_t)n_cells * (size_t)n_cells;

    points->n = n;
    points->n_cells = n_cells;
    points->x = bench_array((size_t)n, sizeof *points->x);
    points->y = bench_array((size_t)n, sizeof *points->y);
    points->first = bench_array(cells + 1, sizeof *points->first);
    return points->x && points->y && points->first ? 0 : -1;
}

static void points_free(struct points *points)
{
    free(points->x);
    free(points->y);
    free(points->first);
}

static size_t cell_of(const struct points *points, uint32_t x, uint32_t y)
{
    uint64_t n_cells = (uint64_t)points->n_cells;

    return (size_t)(y * n_cells / SIDE * n_cells + x * n_cells / SIDE);
}

/*
 * Draw the points in two runs with the same random numbers: the first counts the points of each
 * cell, the second puts them in their places.
 */
static void points_draw(uint64_t seed, struct points *points)
{
    size_t n_cells = (size_t)points->n_cells * (size_t)points->n_cells;

    for (int run = 0; run < 2; run++) {
        struct bench_random random = {seed};
        for (int i = 0; i < points->n; i++) {
            uint64_t bits = bench_random_next(&random);
            uint32_t x = (uint32_t)(bits >> 33);
            uint32_t y = (uint32_t)(bits & (SIDE - 1));
            int at = points->first[cell_of(points, x, y) + (run == 0)]++;
            if (run == 1) {
                points->x[at] = x;
                points->y[at] = y;
            }
        }
        for (size_t cell = 0; run == 0 && cell < n_cells; cell++)
            points->first[cell + 1] += points->first[cell];
    }
    /* The second run moved each start to its cell's end: move them back by one cell. */
    for (size_t cell = n_cells; cell > 0; cell--)
        points->first[cell] = points->first[cell - 1];
    points->first[0] = 0;
}

static uint64_t distance_squared(const struct points *points, int i, int j)
{
    int64_t dx = (int64_t)points->x[i] - points->x[j];
    int64_t dy = (int64_t)points->y[i] - points->y[j];

    return (uint64_t)(dx * dx) + (uint64_t)(dy * dy);
}

/* Join point i with the points before it in the cells around (row, col). */
static void join_point(const struct points *points, int i, int row, int col, uint64_t most_squared,
                       struct edges *edges)
{
    int n = points->n_cells;

    for (int r = row > 0 ? row - 1 : 0; r <= row; r++)
        for (int c = col > 0 ? col - 1 : 0; c <= col + 1 && c < n; c++) {
            size_t cell = (size_t)r * (size_t)n + (size_t)c;
            for (int j = points->first[cell]; j < points->first[cell + 1] && j < i; j++)
                if (distance_squared(points, i, j) <= most_squared)
                    edges_add(edges, i, j);
        }
}

/* Cells as wide as the radius or wider, and no more of them than points. */
static int cells_per_side(double radius_squared, double n_points)
{
    double cells = 1 / sqrt(radius_squared);
    double most = sqrt(n_points);

    if (cells > most)
        cells = most;
    return cells < 1 ? 1 : (int)cells;
}

int generate_rgg(const struct generator_options *options, struct edges *edges)
{
    /* A circle of this radius holds `degree` points on average; the unit of length is the side. */
    double radius_squared = options->degree / (3.14159265358979323846 * (double)options->n_rows);
    int n_cells = cells_per_side(radius_squared, (double)options->n_rows);
    struct points points = {0};

    if (points_create(edges->n_vertices, n_cells, &points) != 0) {
        points_free(&points);
        return -1;
    }
    if (radius_squared > 1.99)
        radius_squared = 1.99; /* the diagonal of the square; keeps the product in 64 bits */
    uint64_t most_squared = (uint64_t)(radius_squared * (double)SIDE * (double)SIDE);
    points_draw((uint64_t)options->seed, &points);
    for (int row = 0; row < n_cells; row++)
        for (int col = 0; col < n_cells; col++) {
            size_t cell = (size_t)row * (size_t)n_cells + (size_t)col;
            for (int i = points.first[cell]; i < points.first[cell + 1] && !edges->is_full; i++)
                join_point(&points, i, row, col, most_squared, edges);
        }
    points_free(&points);
    return 0;
}

/* ---- finite elements ---- */

/* The 13 of the 26 neighbors that have smaller numbers; the others follow by symmetry. */
static void couple_node(int x, int y, int z, int side, struct edges *edges)
{
    int node = (z * side + y) * side + x;

    for (int dz = -1; dz <= 0; dz++)
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++) {
                int step = (dz * side + dy) * side + dx;
                int is_inside =
                    x + dx >= 0 && x + dx < side && y + dy >= 0 && y + dy < side && z + dz >= 0;
                if (is_inside && step < 0)
                    edges_add(edges, node, node + step);
            }
}

int generate_fe(const struct generator_options *options, struct edges *edges)
{
    struct bench_random random = {(uint64_t)options->seed};
    uint64_t n = (uint64_t)edges->n_vertices;
    int side = (int)options->nodes_per_side;

    for (int z = 0; z < side && !edges->is_full; z++)
        for (int y = 0; y < side; y++)
            for (int x = 0; x < side; x++)
                couple_node(x, y, z, side, edges);
    for (int64_t k = 0; k < options->n_dense_rows; k++) {
        int row = (int)bench_random_below(&random, n);
        for (int64_t j = 0; j < options->dense_entries && !edges->is_full; j++)
            edges_add(edges, row, (int)bench_random_below(&random, n));
    }
    return 0;
}

/* ---- power law ---- */

/* Bits of a logarithm that are computed; enough for degrees below 2^31. */
enum { LOG_BITS = 40 };

/*
 * Logarithm and power to the base 2 of x in (0, 1] and x >= 0, from products and square roots
 * only. IEEE 754 rounds those alike everywhere; log() and pow() may differ in the last place
 * between C libraries, and a degree with them.
 */
static double log2_portable(double x)
{
    int exponent;
    double mantissa = 2 * frexp(x, &exponent);
    double result = exponent - 1;

    for (int i = 1; i <= LOG_BITS; i++) {
        mantissa *= mantissa;
        if (mantissa >= 2) {
            mantissa /= 2;
            result += ldexp(1, -i);
        }
    }
    return result;
}

static double exp2_portable(double x)
{
    int whole = (int)x;
    double rest = x - whole;
    double result = 1;
    double root = 2;

    for (int i = 1; i <= LOG_BITS; i++) {
        root = sqrt(root);
        rest *= 2;
        if (rest >= 1) {
            result *= root;
            rest -= 1;
        }
    }
    return ldexp(result, whole);
}

/* Unscaled degrees, at least 1 and at most n: u^(-1 / (exponent - 1)) for uniform u. */
static double *draw_weights(int n, double exponent, struct bench_random *random, double *sum)
{
    double *weight = bench_array((size_t)n, sizeof *weight);
    double total = 0;

    for (int i = 0; weight && i < n; i++) {
        double u = ldexp((double)((bench_random_next(random) >> 11) + 1), -53);
        double power = -log2_portable(u) / (exponent - 1);
        /* The cap comes first: small exponents reach powers that no degree can have. */
        double drawn = exp2_portable(power < 31 ? power : 31);
        weight[i] = drawn < n ? drawn : n;
        total += weight[i];
    }
    *sum = total;
    return weight;
}

int generate_powerlaw(const struct generator_options *options, struct edges *edges)
{
    struct bench_random random = {(uint64_t)options->seed};
    int n = edges->n_vertices;
    double sum;
    double *weight = draw_weights(n, options->exponent, &random, &sum);

    if (!weight)
        return -1;
    double scale = options->degree * n / sum;
    for (int i = 0; i < n; i++) {
        double degree = weight[i] * scale;
        uint64_t drawn = degree < n ? (uint64_t)degree : (uint64_t)n;
        /* Half of them, odd ones up or down at random: others choose this row as often again. */
        uint64_t half = (drawn + (bench_random_next(&random) & 1)) / 2;
        for (uint64_t k = 0; k < half && !edges->is_full; k++)
            edges_add(edges, i, (int)bench_random_below(&random, (uint64_t)n));
    }
    free(weight);
    return 0;
}

int generate_gnm(const struct generator_options *options, struct edges *edges)
{
    struct bench_random random = {(uint64_t)options->seed};
    uint64_t n = (uint64_t)edges->n_vertices;
    int64_t n_edges = (int64_t)(options->degree * (double)n / 2);

    for (int64_t k = 0; k < n_edges && !edges->is_full; k++) {
        int row = (int)bench_random_below(&random, n);
        edges_add(edges, row, (int)bench_random_below(&random, n));
    }
    return 0;
}
