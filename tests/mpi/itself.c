/*
 * Exchanges of a rank with itself, in which nobody waits: they take as long after a while as at
 * first. With bench's libyield ranks that wait for long sleep, and these must not.
 *
 *   itself [--multiple]     (with MPI_THREAD_MULTIPLE)
 */
#include "common.h"

#include <stdlib.h>

#define WARM    0.1  /* seconds of exchanges of all ranks: libyield asks for real time in them */
#define N       4000 /* exchanges of each with itself: a long wait, if they were one */
#define N_TIMED 500  /* the first and the last of them */
#define MOST    50   /* times that the last may take longer; sleeping takes 200 and more */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *seconds)
{
    qsort(seconds, N_TIMED, sizeof *seconds, compare);
    return seconds[N_TIMED / 2];
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--multiple", NULL};
    static double seconds[N];
    const int one = 1, zero = 0, out = 7;
    int level, in = 0;
    MPI_Comm comm;
    if (test_flag(argc, argv, "--multiple"))
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    test_start(&argc, &argv, known);
    for (double start = MPI_Wtime(), most = 0; most < WARM;) {
        double mine = MPI_Wtime() - start;
        MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }

    MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 1, &zero, MPI_UNWEIGHTED, 1, &zero,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    for (int k = 0; k < N; k++) {
        double start = MPI_Wtime();
        MPI_Neighbor_alltoallv(&out, &one, &zero, MPI_INT, &in, &one, &zero, MPI_INT, comm);
        seconds[k] = MPI_Wtime() - start;
    }
    double first = median(seconds), last = median(seconds + N - N_TIMED);
    if (in != out || last > MOST * first)
        test_fail("an exchange took %.1f us at first and %.1f at last", 1e6 * first, 1e6 * last);
    MPI_Comm_free(&comm);
    return test_finish();
}
