/*
 * MPI_Comm_spawn: parents with a managed exchange start two children, and both exchange by the
 * intercommunicator and by a merged one, the parents also among themselves before, between and
 * after. Where MPI alone cannot spawn it ends with an error, which run-promise.sh sees.
 *
 *   spawn
 */
#include "promise.h"

#include <stdio.h>

#define N_CHILDREN 2
#define TAG        6

static void by_inter(MPI_Comm inter, int round)
{
    MPI_Request requests[2 * MAX_RANKS];
    int in[MAX_RANKS], n = 0, rank, out;
    MPI_Comm_remote_size(inter, &n);
    MPI_Comm_rank(inter, &rank);
    out = rank * 100 + round;
    for (int i = 0; i < n; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, i, TAG, inter, &requests[i]);
    for (int i = 0; i < n; i++)
        MPI_Isend(&out, 1, MPI_INT, i, TAG, inter, &requests[n + i]);
    MPI_Waitall(2 * n, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++)
        expect_int(in[i], i * 100 + round, "by the intercommunicator");
}

int main(int argc, char **argv)
{
    MPI_Comm parents, inter, merged;
    promise_start(&argc, &argv);
    MPI_Comm_get_parent(&parents);
    bool child = parents != MPI_COMM_NULL;
    if (child) {
        inter = parents;
    } else {
        warm_up(MPI_COMM_WORLD);
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, N_CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                       MPI_ERRCODES_IGNORE);
    }
    for (int round = 0; round < 10; round++) {
        by_inter(inter, round);
        if (!child)
            warm_rounds(MPI_COMM_WORLD, 2);
    }
    MPI_Intercomm_merge(inter, child, &merged);
    for (int round = 0; round < WARM_ROUNDS; round++) {
        warm_rounds(merged, 2);
        warm_rounds(MPI_COMM_WORLD, 2);
        by_inter(inter, round);
    }
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&inter);
    warm_rounds(MPI_COMM_WORLD, 10);
    if (child) { /* prints nothing: the order of the two programs' lines is not known */
        MPI_Finalize();
        return 0;
    }
    say("%d children\n", N_CHILDREN);
    return promise_finish();
}
