/*
 * A program as users write it: a master hands out tasks, and workers of any rank bring results.
 *
 *   workers [TASKS [STEPS]]
 *
 * A task is a starting value of so many steps (as a rule: less for some, more for others).
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { TASK, STOP };

struct task {
    int64_t number, start;
};

static int64_t work(int64_t value, int steps)
{
    for (int k = 0; k < steps; k++)
        value = value % 2 ? (3 * value + 1) % 1000003 : value / 2 + 7;
    return value;
}

static void lead(int n_workers, int64_t n_tasks)
{
    int64_t sum = 0;
    for (int64_t k = 0, handed = 0; k < n_tasks + n_workers; k++) {
        int64_t result;
        MPI_Status status;
        MPI_Recv(&result, 1, MPI_INT64_T, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        sum += result;
        struct task task = {handed, handed * 7919};
        MPI_Send(&task, 2, MPI_INT64_T, status.MPI_SOURCE, handed < n_tasks ? TASK : STOP,
                 MPI_COMM_WORLD);
        handed += handed < n_tasks;
    }
    printf("%lld tasks, sum %lld\n", (long long)n_tasks, (long long)sum);
}

static void follow(int steps)
{
    int64_t result = 0; /* the first word asks for a task */
    for (;;) {
        struct task task;
        MPI_Status status;
        MPI_Send(&result, 1, MPI_INT64_T, 0, TASK, MPI_COMM_WORLD);
        MPI_Recv(&task, 2, MPI_INT64_T, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG == STOP)
            return;
        result = work(task.start, steps / 2 + (int)(task.number % steps));
    }
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        lead(size - 1, size > 1 ? argc > 1 ? atoll(argv[1]) : 500 : 0);
    else
        follow(argc > 2 ? atoi(argv[2]) : 1000);
    MPI_Finalize();
    return 0;
}
