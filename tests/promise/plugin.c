/*
 * The plug-in of `loader`: initialises MPI, exchanges until the exchange is managed, and on, and
 * finalizes. With `before` it first calls functions that MPI allows before MPI_Init (MPI 4.0,
 * 11.4.1): MPI_Initialized, MPI_Finalized, MPI_Get_version, MPI_Get_library_version,
 * MPI_Info_create and its like, MPI_Error_class. Asserted: the data, and that all of them succeed.
 * Of one file, for a shared object that is linked with MPI alone.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_RANKS 64

int promise_go(int argc, char **argv);

static int n_wrong;

static int before_init(void)
{
    int flag = -1, version, subversion, length, class = -1;
    char value[20] = "";
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Info info;
    n_wrong += MPI_Initialized(&flag) != MPI_SUCCESS || flag;
    n_wrong += MPI_Finalized(&flag) != MPI_SUCCESS || flag;
    n_wrong += MPI_Get_version(&version, &subversion) != MPI_SUCCESS || version != MPI_VERSION;
    n_wrong += MPI_Get_library_version(library, &length) != MPI_SUCCESS || length <= 0;
    n_wrong += MPI_Info_create(&info) != MPI_SUCCESS;
    n_wrong += MPI_Info_set(info, "key", "value") != MPI_SUCCESS;
    n_wrong += MPI_Info_get(info, "key", sizeof value - 1, value, &flag) != MPI_SUCCESS || !flag;
    n_wrong += strcmp(value, "value") != 0;
    n_wrong += MPI_Info_free(&info) != MPI_SUCCESS;
    n_wrong += MPI_Error_class(MPI_ERR_TAG, &class) != MPI_SUCCESS || class != MPI_ERR_TAG;
    return n_wrong;
}

static void exchange(int rank, int size, int round)
{
    int out[MAX_RANKS], in[MAX_RANKS], n = 0, one = 1, sum = 0;
    MPI_Request requests[2 * MAX_RANKS];
    for (int i = 0; i < size; i++) {
        if (i != rank)
            MPI_Irecv(&in[i], 1, MPI_INT, i, 7, MPI_COMM_WORLD, &requests[n++]);
    }
    for (int i = 0; i < size; i++) {
        out[i] = rank * 10000 + i * 100 + round;
        if (i != rank)
            MPI_Isend(&out[i], 1, MPI_INT, i, 7, MPI_COMM_WORLD, &requests[n++]);
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < size; i++)
        n_wrong += i != rank && in[i] != i * 10000 + rank * 100 + round;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    n_wrong += sum != size;
}

int promise_go(int argc, char **argv)
{
    const char *seconds = getenv("PROMISE_ALARM");
    int error, rank, size, flag = 0, all = 0;
    alarm(seconds ? (unsigned)atoi(seconds) : 50);
    if (argc > 3 && strcmp(argv[3], "before") == 0)
        before_init();
    error = MPI_Init(NULL, NULL);
    if (error != MPI_SUCCESS) {
        printf("MPI_Init returned %d\n", error);
        return 1;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < 40; round++)
        exchange(rank, size, round);
    MPI_Allreduce(&n_wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("plug-in: %s, %d ranks\n", all ? "WRONG" : "right", size);
    fflush(stdout);
    MPI_Finalize();
    MPI_Finalized(&flag);
    return all != 0 || !flag;
}
