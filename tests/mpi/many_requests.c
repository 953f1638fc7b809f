/*
 * Exchanges of so many messages that MPICH's completion calls leave their short path, completed by
 * each call in turn, in arrays that also hold requests of another communicator, a large message,
 * a synchronous send, sends that were freed and MPI_REQUEST_NULL, MPI_Waitall's also a persistent
 * collective. Every value and status is checked; prints the sum of what was received.
 *
 *   many_requests [--iterations N]
 */
#include "common.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { PER_PEER = 45, N_PEERS = 2, LARGE = 3000, TAG_LARGE = 500, N_CALLS = 7 };
enum { N_RECEIVES = N_PEERS * (PER_PEER + 1) + 1, N_REQUESTS = 2 * N_RECEIVES + 1 };

struct program {
    int rank, size, n_wrong;
    double in[N_PEERS][PER_PEER], out[N_PEERS][PER_PEER];
    double large_in[N_PEERS][LARGE], large_out[LARGE], own_in, own_out;
    double one, n_ranks; /* of the persistent collective, the last of all requests */
    MPI_Request requests[N_REQUESTS + 1];
    MPI_Status statuses[N_REQUESTS + 1];
    int done[N_REQUESTS];
};

static int peer(const struct program *p, int k, int sign)
{
    return (p->rank + sign * (k + 1) + 2 * p->size) % p->size;
}

static double value(int source, int k, int iteration)
{
    return source * 1e6 + k * 1e3 + iteration;
}

static void start_receives(struct program *p)
{
    int n = 0;
    for (int k = 0; k < PER_PEER; k++)
        for (int d = 0; d < N_PEERS; d++)
            MPI_Irecv(&p->in[d][k], 1, MPI_DOUBLE, peer(p, d, -1), k, MPI_COMM_WORLD,
                      &p->requests[n++]);
    for (int d = 0; d < N_PEERS; d++)
        MPI_Irecv(p->large_in[d], LARGE, MPI_DOUBLE, peer(p, d, -1), TAG_LARGE, MPI_COMM_WORLD,
                  &p->requests[n++]);
    MPI_Irecv(&p->own_in, 1, MPI_DOUBLE, 0, 3, MPI_COMM_SELF, &p->requests[n++]);
}

static void start_sends(struct program *p, int iteration)
{
    int n = N_RECEIVES;
    for (int k = 0; k < PER_PEER; k++)
        for (int d = 0; d < N_PEERS; d++) {
            MPI_Request *request = &p->requests[n++];
            p->out[d][k] = value(p->rank, k, iteration);
            if (k == 7)
                MPI_Issend(&p->out[d][k], 1, MPI_DOUBLE, peer(p, d, 1), k, MPI_COMM_WORLD, request);
            else
                MPI_Isend(&p->out[d][k], 1, MPI_DOUBLE, peer(p, d, 1), k, MPI_COMM_WORLD, request);
            if (k % 11 == 3)
                MPI_Request_free(request);
        }
    for (int k = 0; k < LARGE; k++)
        p->large_out[k] = value(p->rank, k, iteration);
    for (int d = 0; d < N_PEERS; d++)
        MPI_Isend(p->large_out, LARGE, MPI_DOUBLE, peer(p, d, 1), TAG_LARGE, MPI_COMM_WORLD,
                  &p->requests[n++]);
    p->own_out = value(p->rank, 0, iteration);
    MPI_Isend(&p->own_out, 1, MPI_DOUBLE, 0, 3, MPI_COMM_SELF, &p->requests[n++]);
    p->requests[n] = MPI_REQUEST_NULL;
}

/* Where completion number k of a call that tells indices belongs. */
static void note(struct program *p, int index, const MPI_Status *status)
{
    p->n_wrong += index < 0 || index >= N_REQUESTS || p->done[index]++ > 0;
    p->statuses[index] = *status;
}

static void complete_some(struct program *p, int waits)
{
    int n = 0, indices[N_REQUESTS];
    MPI_Status statuses[N_REQUESTS];
    while (n != MPI_UNDEFINED) {
        if (waits)
            MPI_Waitsome(N_REQUESTS, p->requests, &n, indices, statuses);
        else
            MPI_Testsome(N_REQUESTS, p->requests, &n, indices, statuses);
        for (int k = 0; k < n; k++)
            note(p, indices[k], &statuses[k]);
    }
}

static void complete_any(struct program *p, int waits)
{
    for (int index = 0, flag = 1; !flag || index != MPI_UNDEFINED;) {
        MPI_Status status;
        if (waits)
            MPI_Waitany(N_REQUESTS, p->requests, &index, &status);
        else
            MPI_Testany(N_REQUESTS, p->requests, &index, &flag, &status);
        if (flag && index != MPI_UNDEFINED)
            note(p, index, &status);
    }
}

static void wait_all(struct program *p, MPI_Status *statuses)
{
    p->n_ranks = 0;
    MPI_Start(&p->requests[N_REQUESTS]);
    MPI_Waitall(N_REQUESTS + 1, p->requests, statuses);
    p->n_wrong += p->n_ranks != p->size;
}

static void complete(struct program *p, int call)
{
    for (int k = 0; k < N_REQUESTS; k++)
        p->done[k] = 0;
    if (call == 0)
        wait_all(p, p->statuses);
    for (int flag = 0; call == 1 && !flag;)
        MPI_Testall(N_REQUESTS, p->requests, &flag, p->statuses);
    if (call == 2 || call == 3)
        complete_some(p, call == 2);
    if (call == 4 || call == 5)
        complete_any(p, call == 4);
    if (call == 6)
        wait_all(p, MPI_STATUSES_IGNORE);
    for (int k = 0; k < N_REQUESTS; k++)
        p->n_wrong += p->requests[k] != MPI_REQUEST_NULL;
}

static void check_status(struct program *p, int k, int source, int tag, int n)
{
    int count, cancelled;
    MPI_Get_count(&p->statuses[k], MPI_DOUBLE, &count);
    MPI_Test_cancelled(&p->statuses[k], &cancelled);
    p->n_wrong += p->statuses[k].MPI_SOURCE != source || p->statuses[k].MPI_TAG != tag ||
                  count != n || cancelled;
}

static double check(struct program *p, int iteration, int has_statuses)
{
    double sum = 0;
    int n = 0;
    for (int k = 0; k < PER_PEER; k++)
        for (int d = 0; d < N_PEERS; d++) {
            p->n_wrong += p->in[d][k] != value(peer(p, d, -1), k, iteration);
            if (has_statuses)
                check_status(p, n++, peer(p, d, -1), k, 1);
            sum += p->in[d][k];
        }
    for (int d = 0; d < N_PEERS; d++) {
        for (int k = 0; k < LARGE; k++)
            p->n_wrong += p->large_in[d][k] != value(peer(p, d, -1), k, iteration);
        if (has_statuses)
            check_status(p, n++, peer(p, d, -1), TAG_LARGE, LARGE);
    }
    p->n_wrong += p->own_in != p->own_out;
    if (has_statuses)
        check_status(p, n, 0, 3, 1);
    return sum;
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--iterations", NULL};
    static struct program program;
    struct program *p = &program;
    double sum = 0, all = 0;

    test_start(&argc, &argv, known);
    MPI_Comm_rank(MPI_COMM_WORLD, &p->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p->size);
    int n_iterations = (int)test_option(argc, argv, "--iterations", 36);
    p->one = 1;
    MPI_Allreduce_init(&p->one, &p->n_ranks, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &p->requests[N_REQUESTS]);
    for (int i = 0; i < n_iterations; i++) {
        double one = 1, n;
        start_receives(p);
        start_sends(p, i);
        int call = (i / 4 + 6) % N_CALLS;
        complete(p, call);
        sum += check(p, i, call != 6);
        MPI_Allreduce(&one, &n, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Request_free(&p->requests[N_REQUESTS]);
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (p->n_wrong > 0)
        test_fail("%d wrong values, statuses or requests", p->n_wrong);
    test_print("%.0f\n", all);
    return test_finish();
}
