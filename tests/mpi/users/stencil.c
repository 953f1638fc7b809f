/*
 * A program as users write it: a wave on a periodic cube in slabs of columns, with persistent
 * requests for the halos; the interior is computed between MPI_Startall and MPI_Waitall.
 *
 *   stencil [CELLS [STEPS]]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define N_DIRECTIONS 8 /* of neighbors in two dimensions */

static const int directions[N_DIRECTIONS][2] = {{-1, -1}, {-1, 0}, {-1, 1}, {0, -1},
                                                {0, 1},   {1, -1}, {1, 0},  {1, 1}};

static MPI_Comm cart;
static int side; /* cells of a rank in each of two dimensions; the halo is one cell */
static double *field[3];
static MPI_Request requests[2][2 * N_DIRECTIONS]; /* for the even and the odd steps' field */

static size_t at(int i, int j)
{
    return (size_t)i * (size_t)(side + 2) + (size_t)j;
}

static MPI_Datatype region(int di, int dj, int halo)
{
    int whole[2] = {side + 2, side + 2};
    int sub[2] = {di ? 1 : side, dj ? 1 : side};
    int start[2] = {di > 0   ? side + halo
                    : di < 0 ? 1 - halo
                             : 1,
                    dj > 0   ? side + halo
                    : dj < 0 ? 1 - halo
                             : 1};
    MPI_Datatype type;

    MPI_Type_create_subarray(2, whole, sub, start, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

static void make_requests(void)
{
    int rank, coords[2], peer;

    MPI_Comm_rank(cart, &rank);
    MPI_Cart_coords(cart, rank, 2, coords);
    for (int d = 0; d < N_DIRECTIONS; d++) {
        int di = directions[d][0], dj = directions[d][1];
        int other[2] = {coords[0] + di, coords[1] + dj};
        MPI_Datatype send = region(di, dj, 0), recv = region(di, dj, 1);
        MPI_Cart_rank(cart, other, &peer);
        for (int f = 0; f < 2; f++) {
            MPI_Recv_init(field[f], 1, recv, peer, N_DIRECTIONS - 1 - d, cart, &requests[f][d]);
            MPI_Send_init(field[f], 1, send, peer, d, cart, &requests[f][N_DIRECTIONS + d]);
        }
        MPI_Type_free(&send);
        MPI_Type_free(&recv);
    }
}

static void setup(int cells)
{
    int rank, size, dims[2] = {0, 0}, periods[2] = {1, 1};

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
    MPI_Comm_rank(cart, &rank);
    side = cells;
    for (int f = 0; f < 3; f++)
        field[f] = calloc(at(side + 2, 0), sizeof(double));
    for (int i = 1; i <= side; i++) {
        for (int j = 1; j <= side; j++)
            field[0][at(i, j)] = field[2][at(i, j)] =
                (double)((rank * 37 + i * 11 + j * 5) % 23) / 8;
    }
    make_requests();
}

static void update(int i, int j, const double *now, double *last)
{
    double around = 0;
    for (int d = 0; d < N_DIRECTIONS; d++)
        around += now[at(i + directions[d][0], j + directions[d][1])];
    last[at(i, j)] = 2 * now[at(i, j)] - last[at(i, j)] + 0.05 * (around - 8 * now[at(i, j)]);
}

/* The new field takes the place of the one before; two arrays swap, so do their requests. */
static double step(int it)
{
    double *now = field[it % 2], *next = field[(it + 1) % 2], energy = 0;

    MPI_Startall(2 * N_DIRECTIONS, requests[it % 2]);
    for (int i = 2; i < side; i++) {
        for (int j = 2; j < side; j++)
            update(i, j, now, field[2]);
    }
    MPI_Waitall(2 * N_DIRECTIONS, requests[it % 2], MPI_STATUSES_IGNORE);
    for (int i = 1; i <= side; i++) {
        for (int j = 1; j <= side; j++) {
            if (i == 1 || i == side || j == 1 || j == side)
                update(i, j, now, field[2]);
        }
    }
    for (int i = 1; i <= side; i++) {
        for (int j = 1; j <= side; j++) {
            double before = now[at(i, j)];
            next[at(i, j)] = field[2][at(i, j)];
            field[2][at(i, j)] = before;
            energy += before * before;
        }
    }
    return energy;
}

int main(int argc, char **argv)
{
    int rank, steps;

    MPI_Init(&argc, &argv);
    setup(argc > 1 ? atoi(argv[1]) : 16);
    steps = argc > 2 ? atoi(argv[2]) : 60;
    MPI_Comm_rank(cart, &rank);
    for (int it = 0; it < steps; it++) {
        double mine = step(it), all = 0;
        MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, cart);
        if (rank == 0)
            printf("step %d energy %.17g\n", it, all);
    }
    for (int f = 0; f < 2; f++) {
        for (int k = 0; k < 2 * N_DIRECTIONS; k++)
            MPI_Request_free(&requests[f][k]);
    }
    for (int f = 0; f < 3; f++)
        free(field[f]);
    MPI_Comm_free(&cart);
    MPI_Finalize();
    return 0;
}
