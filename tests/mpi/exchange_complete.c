/*
 * Ways to complete requests, as programs do it.
 */
#include "exchange.h"

#include <stdlib.h>
#include <string.h>

void complete_waits(int n_recvs, int n, MPI_Request requests[], MPI_Status statuses[])
{
    (void)n_recvs;
    for (int i = 0; i < n; i++)
        MPI_Wait(&requests[i], &statuses[i]);
}

void complete_waitall(int n_recvs, int n, MPI_Request requests[], MPI_Status statuses[])
{
    (void)n_recvs;
    MPI_Waitall(n, requests, statuses);
}

void complete_sends_first(int n_recvs, int n, MPI_Request requests[], MPI_Status statuses[])
{
    MPI_Waitall(n - n_recvs, requests + n_recvs, MPI_STATUSES_IGNORE);
    for (int i = n_recvs - 1; i >= 0; i--)
        MPI_Wait(&requests[i], &statuses[i]);
}

void complete_waitany(int n_recvs, int n, MPI_Request requests[], MPI_Status statuses[])
{
    (void)n_recvs;
    for (;;) {
        MPI_Status status;
        int i;
        MPI_Waitany(n, requests, &i, &status);
        if (i == MPI_UNDEFINED)
            return;
        statuses[i] = status;
    }
}

static void scatter(int n, const int indices[], const MPI_Status from[], MPI_Status statuses[])
{
    for (int i = 0; i < n; i++)
        statuses[indices[i]] = from[i];
}

void complete_waitsome(int n_recvs, int n, MPI_Request requests[], MPI_Status statuses[])
{
    int *indices = test_alloc((size_t)n * sizeof *indices);
    MPI_Status *some = test_alloc((size_t)n * sizeof *some);
    int n_some;

    (void)n_recvs;
    while (MPI_Waitsome(n, requests, &n_some, indices, some), n_some != MPI_UNDEFINED)
        scatter(n_some, indices, some, statuses);
    free(indices);
    free(some);
}

void complete_testsome(int n_recvs, int n, MPI_Request requests[], MPI_Status statuses[])
{
    int *indices = test_alloc((size_t)n * sizeof *indices);
    MPI_Status *some = test_alloc((size_t)n * sizeof *some);
    int n_some;

    (void)n_recvs;
    while (MPI_Testsome(n, requests, &n_some, indices, some), n_some != MPI_UNDEFINED)
        scatter(n_some, indices, some, statuses);
    free(indices);
    free(some);
}

void complete_test(int n_recvs, int n, MPI_Request requests[], MPI_Status statuses[])
{
    int n_open = n;

    (void)n_recvs;
    for (int i = 0; i < n; i++)
        n_open -= requests[i] == MPI_REQUEST_NULL;
    while (n_open > 0) {
        for (int i = 0; i < n; i++) {
            int done = 0;
            if (requests[i] != MPI_REQUEST_NULL)
                MPI_Test(&requests[i], &done, &statuses[i]);
            n_open -= done;
        }
    }
}

void complete_testall(int n_recvs, int n, MPI_Request requests[], MPI_Status statuses[])
{
    int done = 0;

    (void)n_recvs;
    while (!done)
        MPI_Testall(n, requests, &done, statuses);
}

void complete_testany(int n_recvs, int n, MPI_Request requests[], MPI_Status statuses[])
{
    (void)n_recvs;
    for (;;) {
        MPI_Status status;
        int i, done;
        MPI_Testany(n, requests, &i, &done, &status);
        if (done && i == MPI_UNDEFINED)
            return;
        if (done)
            statuses[i] = status;
    }
}

/* Half of the receives by Waitany, then Testall a few times, then the rest by Waitall: requests
 * that were completed stay in the array. */
void complete_mixed(int n_recvs, int n, MPI_Request requests[], MPI_Status statuses[])
{
    MPI_Status *rest = test_alloc((size_t)n * sizeof *rest);
    bool *open = test_alloc((size_t)n * sizeof *open);
    int done = 0;

    for (int i = 0; i < n_recvs / 2; i++) {
        MPI_Status status;
        int which;
        MPI_Waitany(n_recvs, requests, &which, &status);
        if (which != MPI_UNDEFINED)
            statuses[which] = status;
    }
    for (int i = 0; i < n; i++)
        open[i] = requests[i] != MPI_REQUEST_NULL;
    for (int i = 0; i < 3 && !done; i++)
        MPI_Testall(n, requests, &done, rest);
    if (!done)
        MPI_Waitall(n, requests, rest);
    for (int i = 0; i < n; i++) {
        if (open[i])
            statuses[i] = rest[i];
    }
    free(open);
    free(rest);
}
