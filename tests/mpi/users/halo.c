/*
 * A program as users write it: Jacobi iteration for the Poisson equation on a square, distributed
 * in two dimensions, halos by MPI_Isend and MPI_Irecv.
 *
 *   halo [CELLS [ITERATIONS]]
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

struct field {
    int rows, cols; /* without the halo */
    double *u, *next, *f;
};

static MPI_Comm cart;
static int up, down, left, right, corners[4];
static MPI_Datatype column;

#define AT(field, i, j) ((size_t)(i) * (size_t)((field)->cols + 2) + (size_t)(j))

static int corner_rank(const int dims[2], const int coords[2], int di, int dj)
{
    int at[2] = {coords[0] + di, coords[1] + dj}, rank = MPI_PROC_NULL;
    if (at[0] >= 0 && at[0] < dims[0] && at[1] >= 0 && at[1] < dims[1])
        MPI_Cart_rank(cart, at, &rank);
    return rank;
}

static void setup(struct field *field, int cells)
{
    int size, rank, dims[2] = {0, 0}, periods[2] = {0, 0}, coords[2];

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &cart);
    MPI_Comm_rank(cart, &rank);
    MPI_Cart_coords(cart, rank, 2, coords);
    MPI_Cart_shift(cart, 0, 1, &up, &down);
    MPI_Cart_shift(cart, 1, 1, &left, &right);
    corners[0] = corner_rank(dims, coords, -1, -1);
    corners[1] = corner_rank(dims, coords, -1, 1);
    corners[2] = corner_rank(dims, coords, 1, -1);
    corners[3] = corner_rank(dims, coords, 1, 1);
    field->rows = cells * (coords[0] + 1) / dims[0] - cells * coords[0] / dims[0];
    field->cols = cells * (coords[1] + 1) / dims[1] - cells * coords[1] / dims[1];
    MPI_Type_vector(field->rows, 1, field->cols + 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);

    size_t n = AT(field, field->rows + 2, 0);
    field->u = calloc(n, sizeof(double));
    field->next = calloc(n, sizeof(double));
    field->f = calloc(n, sizeof(double));
    for (int i = 1; i <= field->rows; i++) {
        for (int j = 1; j <= field->cols; j++) {
            int row = cells * coords[0] / dims[0] + i, col = cells * coords[1] / dims[1] + j;
            field->f[AT(field, i, j)] = sin(0.1 * row) * cos(0.07 * col);
        }
    }
}

static void exchange(struct field *field)
{
    int m = field->rows, n = field->cols;
    double *u = field->u;
    MPI_Request req[16];
    int r = 0;

    MPI_Irecv(&u[AT(field, 0, 1)], n, MPI_DOUBLE, up, 1, cart, &req[r++]);
    MPI_Irecv(&u[AT(field, m + 1, 1)], n, MPI_DOUBLE, down, 2, cart, &req[r++]);
    MPI_Irecv(&u[AT(field, 1, 0)], 1, column, left, 3, cart, &req[r++]);
    MPI_Irecv(&u[AT(field, 1, n + 1)], 1, column, right, 4, cart, &req[r++]);
    MPI_Irecv(&u[AT(field, 0, 0)], 1, MPI_DOUBLE, corners[0], 5, cart, &req[r++]);
    MPI_Irecv(&u[AT(field, 0, n + 1)], 1, MPI_DOUBLE, corners[1], 5, cart, &req[r++]);
    MPI_Irecv(&u[AT(field, m + 1, 0)], 1, MPI_DOUBLE, corners[2], 5, cart, &req[r++]);
    MPI_Irecv(&u[AT(field, m + 1, n + 1)], 1, MPI_DOUBLE, corners[3], 5, cart, &req[r++]);
    MPI_Isend(&u[AT(field, m, 1)], n, MPI_DOUBLE, down, 1, cart, &req[r++]);
    MPI_Isend(&u[AT(field, 1, 1)], n, MPI_DOUBLE, up, 2, cart, &req[r++]);
    MPI_Isend(&u[AT(field, 1, n)], 1, column, right, 3, cart, &req[r++]);
    MPI_Isend(&u[AT(field, 1, 1)], 1, column, left, 4, cart, &req[r++]);
    MPI_Isend(&u[AT(field, 1, 1)], 1, MPI_DOUBLE, corners[0], 5, cart, &req[r++]);
    MPI_Isend(&u[AT(field, 1, n)], 1, MPI_DOUBLE, corners[1], 5, cart, &req[r++]);
    MPI_Isend(&u[AT(field, m, 1)], 1, MPI_DOUBLE, corners[2], 5, cart, &req[r++]);
    MPI_Isend(&u[AT(field, m, n)], 1, MPI_DOUBLE, corners[3], 5, cart, &req[r++]);
    MPI_Waitall(r, req, MPI_STATUSES_IGNORE);
}

/* One step with the nine-point stencil; returns the squared change of this rank. */
static double step(struct field *field)
{
    const double *u = field->u;
    double change = 0;

    for (int i = 1; i <= field->rows; i++) {
        for (int j = 1; j <= field->cols; j++) {
            double sides = u[AT(field, i - 1, j)] + u[AT(field, i + 1, j)] +
                           u[AT(field, i, j - 1)] + u[AT(field, i, j + 1)];
            double diagonals = u[AT(field, i - 1, j - 1)] + u[AT(field, i - 1, j + 1)] +
                               u[AT(field, i + 1, j - 1)] + u[AT(field, i + 1, j + 1)];
            double value = (4 * sides + diagonals + 6 * field->f[AT(field, i, j)]) / 20;
            double d = value - u[AT(field, i, j)];
            field->next[AT(field, i, j)] = value;
            change += d * d;
        }
    }
    double *swap = field->u;
    field->u = field->next;
    field->next = swap;
    return change;
}

int main(int argc, char **argv)
{
    struct field field;
    int rank, cells = argc > 1 ? atoi(argv[1]) : 64, iterations = argc > 2 ? atoi(argv[2]) : 60;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    setup(&field, cells);
    for (int it = 1; it <= iterations; it++) {
        double mine, all;
        exchange(&field);
        mine = step(&field);
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, cart);
        if (rank == 0)
            printf("iteration %d residual %.17g\n", it, sqrt(all));
    }
    MPI_Type_free(&column);
    MPI_Comm_free(&cart);
    free(field.u);
    free(field.next);
    free(field.f);
    MPI_Finalize();
    return 0;
}
