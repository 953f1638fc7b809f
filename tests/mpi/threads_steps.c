/*
 * The steps of a course (threads.h).
 */
#include "threads.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static atomic_int n_failures;

int course_failures(void)
{
    return atomic_load(&n_failures);
}

void course_fail(const struct course *c, int k, int from, const char *what)
{
    if (atomic_fetch_add(&n_failures, 1) < 5)
        printf("FAIL: rank %d, course %d, step %d: wrong data of %d by %s\n", c->rank, c->number, k,
               from, what);
}

/* Some threads are late, and not the same ones on all ranks. */
static void pause_sometimes(struct course *c)
{
    c->pause = c->pause * UINT64_C(6364136223846793005) + 1442695040888963407U;
    if (c->pause >> 61 == 0)
        usleep((useconds_t)(c->pause >> 40 & 511));
}

static int value(const struct course *c, int k, int from, int to, int i)
{
    return (((k * 131 + c->number) * 64 + from) * 64 + to) * 64 + i;
}

static int n_words(int k, int from, int to)
{
    return 1 + (k * 7 + from * 3 + to) % N_WORDS;
}

static void fill(const struct course *c, int k, int to, int *words)
{
    for (int i = 0; i < N_WORDS; i++)
        words[i] = value(c, k, c->rank, to, i);
}

static void check(const struct course *c, int k, int from, const int *words, const char *what)
{
    bool right = true;
    for (int i = 0; i < n_words(k, from, c->rank); i++)
        right &= words[i] == value(c, k, from, c->rank, i);
    if (!right)
        course_fail(c, k, from, what);
}

/* ---- messages */

/* To and from all neighbours, by nonblocking calls; completed in one of three ways. */
static void halo(struct course *c, int k, MPI_Comm comm, int tag, int form)
{
    int out[2 * N_NEAR][N_WORDS], in[2 * N_NEAR][N_WORDS], index, flag = 0;
    MPI_Request requests[4 * N_NEAR];
    for (int n = 0; n < 2 * N_NEAR; n++) {
        memset(in[n], 0, sizeof in[n]);
        MPI_Irecv(in[n], n_words(k, c->near[n], c->rank), MPI_INT, c->near[n], tag + n, comm,
                  &requests[n]);
    }
    for (int n = 0; n < 2 * N_NEAR; n++) {
        int to = c->near[n];
        fill(c, k, to, out[n]);
        MPI_Isend(out[n], n_words(k, c->rank, to), MPI_INT, to, tag + (n + N_NEAR) % (2 * N_NEAR),
                  comm, &requests[2 * N_NEAR + n]);
    }
    if (form == 0)
        MPI_Waitall(4 * N_NEAR, requests, MPI_STATUSES_IGNORE);
    for (int n = 0; form == 1 && n < 4 * N_NEAR; n++)
        MPI_Waitany(4 * N_NEAR, requests, &index, MPI_STATUS_IGNORE);
    while (form == 2 && !flag)
        MPI_Testall(4 * N_NEAR, requests, &flag, MPI_STATUSES_IGNORE);
    for (int n = 0; n < 2 * N_NEAR; n++)
        check(c, k, c->near[n], in[n], "a halo");
}

/* Around the ring: a blocking receive, found by a probe. */
static void ring(struct course *c, int k, MPI_Comm comm, int tag, bool matched)
{
    int out[N_WORDS], in[N_WORDS] = {0}, from = c->near[N_NEAR], to = c->near[0];
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    fill(c, k, to, out);
    MPI_Isend(out, n_words(k, c->rank, to), MPI_INT, to, tag, comm, &request);
    pause_sometimes(c);
    if (matched) {
        MPI_Mprobe(from, tag, comm, &message, &status);
        MPI_Mrecv(in, N_WORDS, MPI_INT, &message, &status);
    } else {
        MPI_Probe(from, tag, comm, &status);
        MPI_Recv(in, N_WORDS, MPI_INT, from, tag, comm, &status);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(c, k, from, in, "a ring");
}

static void shift(struct course *c, int k, MPI_Comm comm, int tag)
{
    int out[N_WORDS], in[N_WORDS] = {0}, from = c->near[N_NEAR], to = c->near[0];
    fill(c, k, to, out);
    MPI_Sendrecv(out, n_words(k, c->rank, to), MPI_INT, to, tag, in, N_WORDS, MPI_INT, from, tag,
                 comm, MPI_STATUS_IGNORE);
    check(c, k, from, in, "a shift");
}

/* ---- collectives */

static void neighbors(struct course *c, int k, bool nonblocking)
{
    int out[2 * N_NEAR * N_WORDS], in[2 * N_NEAR * N_WORDS] = {0};
    int sent[2 * N_NEAR], received[2 * N_NEAR], displs[2 * N_NEAR];
    MPI_Request request;
    for (int n = 0; n < 2 * N_NEAR; n++) {
        displs[n] = n * N_WORDS;
        sent[n] = n_words(k, c->rank, c->near[n]);
        received[n] = n_words(k, c->near[n], c->rank);
        fill(c, k, c->near[n], out + displs[n]);
    }
    if (nonblocking) {
        MPI_Ineighbor_alltoallv(out, sent, displs, MPI_INT, in, received, displs, MPI_INT, c->graph,
                                &request);
        pause_sometimes(c);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Neighbor_alltoallv(out, sent, displs, MPI_INT, in, received, displs, MPI_INT, c->graph);
    }
    for (int n = 0; n < 2 * N_NEAR; n++)
        check(c, k, c->near[n], in + displs[n], "a neighborhood");
}

static void sparse(struct course *c, int k)
{
    int out[64 * N_WORDS], in[64 * N_WORDS] = {0}, sent[64] = {0}, received[64] = {0}, displs[64];
    int to = c->near[1], from = c->near[N_NEAR + 1];
    for (int r = 0; r < c->n_ranks; r++)
        displs[r] = r * N_WORDS;
    sent[to] = n_words(k, c->rank, to);
    received[from] = n_words(k, from, c->rank);
    fill(c, k, to, out + displs[to]);
    MPI_Alltoallv(out, sent, displs, MPI_INT, in, received, displs, MPI_INT, c->comm);
    check(c, k, from, in + displs[from], "a sparse MPI_Alltoallv");
}

static void gathered(struct course *c, int k)
{
    int mine = value(c, k, c->rank, 0, 0), all[64];
    MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, c->comm);
    for (int r = 0; r < c->n_ranks; r++)
        if (all[r] != value(c, k, r, 0, 0))
            course_fail(c, k, r, "MPI_Allgather");
}

static void sum(struct course *c, int k)
{
    int mine = c->rank + k, all = -1;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, c->comm);
    if (all != c->n_ranks * (c->n_ranks - 1) / 2 + k * c->n_ranks)
        course_fail(c, k, 0, "MPI_Allreduce");
}

/* Communicators come and go. */
static void copied(struct course *c, int k)
{
    MPI_Comm given = c->graph;
    MPI_Comm_dup(given, &c->graph);
    neighbors(c, k, false);
    halo(c, k, c->graph, 1, 0);
    MPI_Comm_free(&c->graph);
    c->graph = given;
}

void course_step(struct course *c, int k)
{
    int tag = MOST_TAG * (1 + c->number), own = 1;
    pause_sometimes(c);
    switch (k % N_STEPS) {
    case 0:
        neighbors(c, k, false);
        break;
    case 1:
        halo(c, k, c->comm, own, k / N_STEPS % 3);
        break;
    case 2:
        sum(c, k);
        break;
    case 3:
        halo(c, k, MPI_COMM_WORLD, tag, 0);
        break;
    case 4:
        neighbors(c, k, true);
        break;
    case 5:
        MPI_Barrier(c->comm);
        break;
    case 6:
        ring(c, k, c->comm, own, false);
        break;
    case 7:
        shift(c, k, MPI_COMM_WORLD, tag + 20);
        break;
    case 8:
        sparse(c, k);
        break;
    case 9:
        gathered(c, k);
        break;
    case 10:
        ring(c, k, MPI_COMM_WORLD, tag + 30, false);
        break;
    default: /* all threads' messages, one thread's collectives */
        if (c->number == 0)
            MPI_Barrier(MPI_COMM_WORLD);
        copied(c, k);
    }
}
