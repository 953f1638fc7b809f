/*
 * Memory that a communicator costs on which nothing is learned: duplicates of MPI_COMM_SELF, halves
 * of the ranks, and duplicates of MPI_COMM_WORLD get some calls each. The heap may grow by a KB for
 * each communicator. Before, MPI has got its own memory, for these calls and for attributes.
 *
 *   states
 */
#include "bench/alone.h"
#include "common.h"

#include <malloc.h>

#define N_COMMS 100
#define MOST    1024 /* bytes of a communicator */

static size_t in_use(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Calls in which nothing recurs. */
static void call_once(MPI_Comm comm)
{
    int one = 1, sum, flag, size;

    MPI_Comm_size(comm, &size);
    MPI_Barrier(comm);
    if (size == test_size())
        return;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Allgather(&one, 1, MPI_INT, (int[64]){0}, 1, MPI_INT, comm);
    if (sum != size || flag)
        test_fail("%d instead of %d", sum, size);
}

static void call_before(MPI_Comm comm)
{
    int one = 1, sum;

    ALONE(Barrier)(comm);
    ALONE(Allreduce)(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    ALONE(Allgather)(&one, 1, MPI_INT, (int[64]){0}, 1, MPI_INT, comm);
}

/* MPI makes memory for many attributes at once, and keeps it. */
static void keep_attributes(const MPI_Comm *comms)
{
    int key;

    ALONE(Comm_create_keyval)(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    for (int k = 0; k < N_COMMS; k++)
        ALONE(Comm_set_attr)(comms[k], key, NULL);
    for (int k = 0; k < N_COMMS; k++)
        ALONE(Comm_delete_attr)(comms[k], key);
    ALONE(Comm_free_keyval)(&key);
}

static void measure(const char *what, MPI_Comm parent, int color)
{
    MPI_Comm comms[N_COMMS];

    for (int k = 0; k < N_COMMS; k++) {
        ALONE(Comm_split)(parent, color, 0, &comms[k]);
        call_before(comms[k]);
    }
    keep_attributes(comms);
    size_t before = in_use();
    for (int k = 0; k < N_COMMS; k++)
        call_once(comms[k]);
    size_t after = in_use();
    if (after > before + (size_t)N_COMMS * MOST)
        test_fail("%s: %zu bytes each", what, (after - before) / N_COMMS);
    for (int k = 0; k < N_COMMS; k++)
        MPI_Comm_free(&comms[k]);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {NULL};

    test_start(&argc, &argv, known);
    call_once(MPI_COMM_SELF); /* what the library makes once */
    call_once(MPI_COMM_WORLD);
    measure("this rank alone", MPI_COMM_SELF, 0);
    measure("half of the ranks", MPI_COMM_WORLD, test_rank() % 2);
    measure("all ranks", MPI_COMM_WORLD, 0);
    return test_finish();
}
