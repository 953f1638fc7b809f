/*
 * A program as users write it: an unstructured mesh in parts, with a list of neighbours of its own
 * for each; halos are sent by a loop of MPI_Send after all receives are posted.
 *
 *   mesh [STEPS [DEGREE [POINTS]]]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Whether two parts touch: about `degree` of all do, the same both ways. */
static int touch(int a, int b, int size, int degree)
{
    int low = a < b ? a : b, high = a < b ? b : a;
    return a != b && (high - low == 1 || (low * 73 + high * 151 + low * high * 17) % size < degree);
}

int main(int argc, char **argv)
{
    int rank, size, n = 0;
    MPI_Init(&argc, &argv);
    int n_steps = argc > 1 ? atoi(argv[1]) : 80, degree = argc > 2 ? atoi(argv[2]) : 4,
        n_points = argc > 3 ? atoi(argv[3]) : 20;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *peer = calloc((size_t)size, sizeof *peer);
    for (int r = 0; r < size; r++)
        if (touch(rank, r, size, degree))
            peer[n++] = r;
    size_t room = (size_t)(n + 1) * (size_t)n_points;
    double *in = calloc(room, sizeof *in), *own = calloc((size_t)n_points, sizeof *own), change = 0;
    MPI_Request *requests = calloc((size_t)n + 1, sizeof(MPI_Request));
    for (int k = 0; k < n_points; k++)
        own[k] = (rank * 13 + k * 5) % 17;
    for (int step = 0; step < n_steps; step++) {
        double mine = 0;
        for (int k = 0; k < n; k++)
            MPI_Irecv(in + k * n_points, n_points, MPI_DOUBLE, peer[k], 5, MPI_COMM_WORLD,
                      &requests[k]);
        for (int k = 0; k < n; k++)
            MPI_Send(own, n_points, MPI_DOUBLE, peer[k], 5, MPI_COMM_WORLD);
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        for (int p = 0; p < n_points; p++) {
            double around = 0, before = own[p];
            for (int k = 0; k < n; k++)
                around += in[k * n_points + p];
            own[p] = 0.5 * own[p] + (n > 0 ? 0.5 * around / n : 0);
            mine += (own[p] - before) * (own[p] - before);
        }
        MPI_Allreduce(&mine, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%d steps, change %.17g, value %.17g\n", n_steps, change, own[0]);
    free(peer);
    free(in);
    free(own);
    free(requests);
    MPI_Finalize();
    return 0;
}
