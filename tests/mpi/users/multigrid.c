/*
 * A program as users write it: V-cycles of a multigrid method for the Poisson equation on a square.
 * Every level halves the cells in one dimension and gathers them on half of the ranks, the others
 * have nothing to do there; halos and transfers all use one tag.
 *
 *   multigrid [CELLS [CYCLES [overlap]]]      CELLS a rank in each dimension, a multiple of 4
 *
 * With `overlap` corrections are on their way while the next halos are exchanged.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS 4
#define TAG    0

/* What a rank has of a level. */
struct level {
    int active, rows, cols; /* cells without the halo; by how many its ranks are apart: */
    int step[2];
    int neighbor[8];  /* MPI_PROC_NULL where there is none */
    int owner, child; /* who gets this level's cells, whose it gets in the next one */
    double hx, hy, *u, *next, *f;
    double *correction; /* for the child, with `overlap` under way until the next one */
    MPI_Request sent;
};

static int dims[2], coords[2], cells = 16;
static struct level levels[LEVELS];
static double *packed;
static int overlap;

#define AT(l, i, j) ((size_t)(i) * (size_t)((l)->cols + 2) + (size_t)(j))

static int rank_at(int i, int j)
{
    if (i < 0 || i >= dims[0] || j < 0 || j >= dims[1])
        return MPI_PROC_NULL;
    return i * dims[1] + j;
}

/* How many cells of a level the rank at a coordinate has in dimension d: those of so many ranks. */
static int extent(int number, int d, int coord)
{
    int step = levels[number].step[d], n = dims[d] - coord < step ? dims[d] - coord : step;
    return cells * n / step;
}

static void setup_level(int number)
{
    struct level *l = &levels[number];
    int d = number % 2; /* the dimension that the next level halves */

    l->step[0] = 1 << (number + 1) / 2;
    l->step[1] = 1 << number / 2;
    l->hx = 1.0 / (cells * dims[0] >> (number + 1) / 2);
    l->hy = 1.0 / (cells * dims[1] >> number / 2);
    l->active = coords[0] % l->step[0] == 0 && coords[1] % l->step[1] == 0;
    l->owner = l->child = MPI_PROC_NULL;
    if (!l->active)
        return;
    l->rows = extent(number, 0, coords[0]);
    l->cols = extent(number, 1, coords[1]);
    for (int k = 0, n = 0; k < 9; k++) {
        if (k != 4)
            l->neighbor[n++] =
                rank_at(coords[0] + (k / 3 - 1) * l->step[0], coords[1] + (k % 3 - 1) * l->step[1]);
    }
    if (coords[d] / l->step[d] % 2)
        l->owner = rank_at(coords[0] - (d == 0) * l->step[0], coords[1] - (d == 1) * l->step[1]);
    else
        l->child = rank_at(coords[0] + (d == 0) * l->step[0], coords[1] + (d == 1) * l->step[1]);
    size_t n = AT(l, l->rows + 2, 0);
    l->u = calloc(n, sizeof(double));
    l->next = calloc(n, sizeof(double));
    l->f = calloc(n, sizeof(double));
    l->correction = calloc(n, sizeof(double));
    l->sent = MPI_REQUEST_NULL;
}

/* The cells that go to neighbor k, or with `halo` those that come from it. */
static void range(const struct level *l, int k, int halo, int first[2], int n[2])
{
    int at = k < 4 ? k : k + 1, side[2] = {at / 3 - 1, at % 3 - 1}, size[2] = {l->rows, l->cols};
    for (int d = 0; d < 2; d++) {
        n[d] = side[d] ? 1 : size[d];
        first[d] = side[d] < 0 ? 1 - halo : side[d] > 0 ? size[d] + halo : 1;
    }
}

static size_t copy(double *u, const struct level *l, int k, int halo, double *buffer)
{
    int first[2], n[2];
    range(l, k, halo, first, n);
    for (int i = 0; i < n[0]; i++) {
        for (int j = 0; j < n[1]; j++) {
            double *cell = &u[AT(l, first[0] + i, first[1] + j)], *other = &buffer[i * n[1] + j];
            if (halo)
                *cell = *other;
            else
                *other = *cell;
        }
    }
    return (size_t)(n[0] * n[1]);
}

static void exchange(struct level *l)
{
    MPI_Request requests[16];
    double *at = packed, *received[8];
    int first[2], n[2], r = 0;

    for (int k = 0; k < 8; k++) {
        range(l, k, 1, first, n);
        received[k] = at;
        MPI_Irecv(at, n[0] * n[1], MPI_DOUBLE, l->neighbor[k], TAG, MPI_COMM_WORLD, &requests[r++]);
        at += n[0] * n[1];
    }
    for (int k = 0; k < 8; k++) {
        size_t count = copy(l->u, l, k, 0, at);
        MPI_Isend(at, (int)count, MPI_DOUBLE, l->neighbor[k], TAG, MPI_COMM_WORLD, &requests[r++]);
        at += count;
    }
    MPI_Waitall(r, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < 8; k++) {
        if (l->neighbor[k] != MPI_PROC_NULL)
            copy(l->u, l, k, 1, received[k]);
    }
}

static double residual_at(const struct level *l, int i, int j)
{
    const double *u = l->u;
    double x = 1 / (l->hx * l->hx), y = 1 / (l->hy * l->hy);
    return l->f[AT(l, i, j)] - 2 * (x + y) * u[AT(l, i, j)] +
           x * (u[AT(l, i - 1, j)] + u[AT(l, i + 1, j)]) +
           y * (u[AT(l, i, j - 1)] + u[AT(l, i, j + 1)]);
}

/* Damped Jacobi. */
static void smooth(struct level *l, int times)
{
    double scale = 0.8 / (2 / (l->hx * l->hx) + 2 / (l->hy * l->hy));
    while (times-- > 0) {
        exchange(l);
        for (int i = 1; i <= l->rows; i++)
            for (int j = 1; j <= l->cols; j++)
                l->next[AT(l, i, j)] = l->u[AT(l, i, j)] + scale * residual_at(l, i, j);
        double *swap = l->u;
        l->u = l->next;
        l->next = swap;
    }
}

/* The cells of the coarser level that come from one rank of this one: n[0] x n[1], from `first`. */
static void part(int number, int of_child, int n[2], int first[2])
{
    const struct level *l = &levels[number];
    int d = number % 2;
    n[0] = l->rows;
    n[1] = l->cols;
    first[0] = first[1] = 1;
    if (of_child) {
        first[d] += n[d] / 2;
        n[d] = extent(number, d, coords[d] + l->step[d]);
    }
    n[d] /= 2;
}

static void restrict_residual(int number)
{
    struct level *l = &levels[number], *coarse = l + 1;
    int d = number % 2, n[2], first[2];
    MPI_Request request;

    exchange(l);
    part(number, 0, n, first);
    for (int i = 0; i < n[0]; i++)
        for (int j = 0; j < n[1]; j++)
            packed[i * n[1] + j] =
                d == 0 ? (residual_at(l, 2 * i + 1, j + 1) + residual_at(l, 2 * i + 2, j + 1)) / 2
                       : (residual_at(l, i + 1, 2 * j + 1) + residual_at(l, i + 1, 2 * j + 2)) / 2;
    if (l->owner != MPI_PROC_NULL) {
        MPI_Isend(packed, n[0] * n[1], MPI_DOUBLE, l->owner, TAG, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return;
    }
    memset(coarse->u, 0, AT(coarse, coarse->rows + 2, 0) * sizeof(double));
    for (int of_child = 0; of_child < 2; of_child++) {
        if (of_child && l->child == MPI_PROC_NULL)
            break;
        part(number, of_child, n, first);
        if (of_child) {
            MPI_Irecv(packed, n[0] * n[1], MPI_DOUBLE, l->child, TAG, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        for (int i = 0; i < n[0]; i++)
            memcpy(&coarse->f[AT(coarse, first[0] + i, first[1])], &packed[i * n[1]],
                   (size_t)n[1] * sizeof(double));
    }
}

static void add_correction(int number)
{
    struct level *l = &levels[number], *coarse = l + 1;
    int d = number % 2, n[2], first[2];
    MPI_Request request;

    if (l->child != MPI_PROC_NULL) {
        part(number, 1, n, first);
        MPI_Wait(&l->sent, MPI_STATUS_IGNORE);
        for (int i = 0; i < n[0]; i++)
            memcpy(&l->correction[i * n[1]], &coarse->u[AT(coarse, first[0] + i, first[1])],
                   (size_t)n[1] * sizeof(double));
        MPI_Isend(l->correction, n[0] * n[1], MPI_DOUBLE, l->child, TAG, MPI_COMM_WORLD, &l->sent);
        if (!overlap)
            MPI_Wait(&l->sent, MPI_STATUS_IGNORE);
    }
    if (l->owner != MPI_PROC_NULL) {
        part(number, 0, n, first);
        MPI_Irecv(packed, n[0] * n[1], MPI_DOUBLE, l->owner, TAG, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < l->rows; i++) {
        for (int j = 0; j < l->cols; j++) {
            int ci = d == 0 ? i / 2 : i, cj = d == 1 ? j / 2 : j;
            l->u[AT(l, i + 1, j + 1)] += l->owner != MPI_PROC_NULL
                                             ? packed[ci * n[1] + cj]
                                             : coarse->u[AT(coarse, ci + 1, cj + 1)];
        }
    }
}

static void cycle(int number)
{
    struct level *l = &levels[number];

    if (!l->active)
        return;
    smooth(l, number == LEVELS - 1 ? 8 : 2);
    if (number == LEVELS - 1)
        return;
    restrict_residual(number);
    cycle(number + 1);
    add_correction(number);
    smooth(l, 2);
}

static double norm(void)
{
    struct level *l = &levels[0];
    double mine = 0, all;

    for (int i = 1; i <= l->rows; i++)
        for (int j = 1; j <= l->cols; j++)
            mine += l->u[AT(l, i, j)] * l->u[AT(l, i, j)];
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sqrt(all);
}

int main(int argc, char **argv)
{
    int rank, size, cycles = argc > 2 ? atoi(argv[2]) : 40;
    struct level *l = &levels[0];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1)
        cells = atoi(argv[1]);
    overlap = argc > 3;
    MPI_Dims_create(size, 2, dims);
    coords[0] = rank / dims[1];
    coords[1] = rank % dims[1];
    packed = calloc((size_t)(16 * cells * cells + 64 * cells + 64), sizeof(double));
    for (int k = 0; k < LEVELS; k++)
        setup_level(k);
    for (int i = 1; i <= l->rows; i++)
        for (int j = 1; j <= l->cols; j++)
            l->f[AT(l, i, j)] =
                sin(0.1 * (coords[0] * cells + i)) * cos(0.07 * (coords[1] * cells + j));
    for (int k = 1; k <= cycles; k++) {
        cycle(0);
        double u = norm();
        if (rank == 0)
            printf("cycle %d norm %.17g\n", k, u);
    }
    for (int k = 0; k < LEVELS; k++) {
        if (levels[k].active)
            MPI_Wait(&levels[k].sent, MPI_STATUS_IGNORE);
        free(levels[k].correction);
        free(levels[k].u);
        free(levels[k].next);
        free(levels[k].f);
    }
    free(packed);
    MPI_Finalize();
    return 0;
}
