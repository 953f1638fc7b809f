/*
 * A program as users write it: the heat equation on a square, distributed in two dimensions.
 *
 *   mixed [--steps N] [--cells N]
 *
 * Halos travel by MPI_Neighbor_alltoallw with subarray types, in place: sent and received regions
 * are parts of one array, the neighbors at the border are MPI_PROC_NULL. Every step also gathers
 * the neighbors' residuals; every tenth reduces them. The field's boundary is fixed.
 */
#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct grid {
    MPI_Comm comm;
    int rows, cols; /* of this rank, without the halo */
    int row_0, col_0;
    double *now, *next; /* (rows + 2) x (cols + 2) */
    MPI_Datatype sends[4], recvs[4];
};

static size_t at(const struct grid *grid, int row, int col)
{
    return (size_t)row * (size_t)(grid->cols + 2) + (size_t)col;
}

static MPI_Datatype region(const struct grid *grid, int row, int col, int rows, int cols)
{
    int whole[2] = {grid->rows + 2, grid->cols + 2};
    int sub[2] = {rows, cols}, start[2] = {row, col};
    MPI_Datatype type;

    MPI_Type_create_subarray(2, whole, sub, start, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

static void make_types(struct grid *grid)
{
    int rows = grid->rows, cols = grid->cols;

    grid->sends[0] = region(grid, 1, 1, 1, cols);
    grid->recvs[0] = region(grid, 0, 1, 1, cols);
    grid->sends[1] = region(grid, rows, 1, 1, cols);
    grid->recvs[1] = region(grid, rows + 1, 1, 1, cols);
    grid->sends[2] = region(grid, 1, 1, rows, 1);
    grid->recvs[2] = region(grid, 1, 0, rows, 1);
    grid->sends[3] = region(grid, 1, cols, rows, 1);
    grid->recvs[3] = region(grid, 1, cols + 1, rows, 1);
}

/* The share of coordinate `i` among `n`: its first cell and how many. */
static void share(int cells, int n, int i, int *first, int *count)
{
    *first = (int)((long)cells * i / n);
    *count = (int)((long)cells * (i + 1) / n) - *first;
}

static void start_field(struct grid *grid, uint64_t key)
{
    size_t n = at(grid, grid->rows + 2, 0);

    grid->now = test_alloc(n * sizeof(double));
    grid->next = test_alloc(n * sizeof(double));
    memset(grid->now, 0, n * sizeof(double));
    for (int row = 1; row <= grid->rows; row++) {
        for (int col = 1; col <= grid->cols; col++) {
            uint64_t cell = test_key(test_key(key, grid->row_0 + row), grid->col_0 + col);
            grid->now[at(grid, row, col)] = (double)(cell % 1000) / 8;
        }
    }
    memcpy(grid->next, grid->now, n * sizeof(double));
}

static void grid_make(struct grid *grid, int cells)
{
    int dims[2] = {0, 0}, periods[2] = {0, 0}, coords[2], rank;

    MPI_Dims_create(test_size(), 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid->comm);
    MPI_Comm_rank(grid->comm, &rank);
    MPI_Cart_coords(grid->comm, rank, 2, coords);
    share(cells, dims[0], coords[0], &grid->row_0, &grid->rows);
    share(cells, dims[1], coords[1], &grid->col_0, &grid->cols);
    make_types(grid);
    start_field(grid, 7);
}

static void grid_free(struct grid *grid)
{
    for (int i = 0; i < 4; i++) {
        MPI_Type_free(&grid->sends[i]);
        MPI_Type_free(&grid->recvs[i]);
    }
    free(grid->now);
    free(grid->next);
    MPI_Comm_free(&grid->comm);
}

static void exchange_halos(struct grid *grid)
{
    const int counts[4] = {1, 1, 1, 1};
    const MPI_Aint displs[4] = {0, 0, 0, 0};

    MPI_Neighbor_alltoallw(grid->now, counts, displs, grid->sends, grid->now, counts, displs,
                           grid->recvs, grid->comm);
}

/* One explicit step; returns this rank's largest change. */
static double step(struct grid *grid)
{
    const double *now = grid->now;
    double *next = grid->next, change = 0;

    for (int row = 1; row <= grid->rows; row++) {
        for (int col = 1; col <= grid->cols; col++) {
            size_t i = at(grid, row, col);
            double around =
                now[at(grid, row - 1, col)] + now[at(grid, row + 1, col)] + now[i - 1] + now[i + 1];
            next[i] = 0.5 * now[i] + 0.125 * around;
            change = fmax(change, fabs(next[i] - now[i]));
        }
    }
    grid->next = grid->now;
    grid->now = next;
    return change;
}

/* The largest change among the neighbors, -1 at the border. */
static double neighbors_change(const struct grid *grid, double mine)
{
    double changes[4] = {-1, -1, -1, -1}, largest = mine;

    MPI_Neighbor_allgather(&mine, 1, MPI_DOUBLE, changes, 1, MPI_DOUBLE, grid->comm);
    for (int i = 0; i < 4; i++)
        largest = fmax(largest, changes[i]);
    return largest;
}

static uint64_t field_hash(const struct grid *grid)
{
    uint64_t hash = TEST_HASH_START;
    for (int row = 1; row <= grid->rows; row++)
        hash = test_hash(hash, &grid->now[at(grid, row, 1)], (size_t)grid->cols * sizeof(double));
    return hash;
}

static double field_sum(const struct grid *grid)
{
    double sum = 0, total;
    for (int row = 1; row <= grid->rows; row++) {
        for (int col = 1; col <= grid->cols; col++)
            sum += grid->now[at(grid, row, col)];
    }
    MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, grid->comm);
    return total;
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--steps", "--cells", NULL};
    struct grid grid;
    uint64_t hash, *all;
    int n_steps;

    test_start(&argc, &argv, known);
    n_steps = (int)test_option(argc, argv, "--steps", 100);
    grid_make(&grid, (int)test_option(argc, argv, "--cells", 60));
    for (int i = 1; i <= n_steps; i++) {
        double mine, around, largest;
        exchange_halos(&grid);
        mine = step(&grid);
        around = neighbors_change(&grid, mine);
        if (i % 10 != 0)
            continue;
        MPI_Allreduce(&around, &largest, 1, MPI_DOUBLE, MPI_MAX, grid.comm);
        test_print("step %d change %.17g\n", i, largest);
    }
    hash = field_hash(&grid);
    all = test_hash_ranks(1, &hash);
    test_print("field %016llx sum %.17g\n", (unsigned long long)all[0], field_sum(&grid));
    free(all);
    grid_free(&grid);
    return test_finish();
}
