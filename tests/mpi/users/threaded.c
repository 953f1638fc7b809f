/*
 * A program as users write it, in several threads: halos around a ring and sums, step after step.
 *
 *   threaded [FORM [STEPS]]
 *
 * alone (the default): one thread, which asked for MPI_THREAD_MULTIPLE by habit. relay: each step
 * is another thread's, one after the other. answers: a thread beside it waits in MPI_Recv for
 * questions of any rank and answers them. probes: it waits in MPI_Probe. tags: four threads do the
 * steps with tags of their own on one communicator, the first one the sums. comms: each of them has
 * a communicator of its own.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_NEAR   3 /* neighbours on each side */
#define N_VALUES 5
#define MOST     4 /* threads */

enum { QUESTION = 900, ANSWER, STOP };

struct worker {
    MPI_Comm comm;
    int number, first, last; /* its tags come from its number; steps from the first to the last */
    bool sums;
};

static int rank, size;
static int n_wrong; /* under the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void expect(long found, long expected, const char *what, int step)
{
    if (found == expected)
        return;
    pthread_mutex_lock(&lock);
    if (n_wrong++ < 3)
        printf("rank %d, step %d: %s is %ld, not %ld\n", rank, step, what, found, expected);
    pthread_mutex_unlock(&lock);
}

static long value(const struct worker *w, int step, int from, int to, int k)
{
    return ((((long)step * MOST + w->number) * 64 + from) * 64 + to) * N_VALUES + k;
}

static void halo(const struct worker *w, int step)
{
    long in[2 * N_NEAR][N_VALUES], out[2 * N_NEAR][N_VALUES];
    MPI_Request requests[4 * N_NEAR];
    int near[2 * N_NEAR], tag = 100 * w->number;
    for (int n = 0; n < 2 * N_NEAR; n++) {
        near[n] = (rank + (n < N_NEAR ? n + 1 : N_NEAR * size - (n - N_NEAR) - 1)) % size;
        MPI_Irecv(in[n], N_VALUES, MPI_LONG, near[n], tag + n, w->comm, &requests[n]);
    }
    for (int n = 0; n < 2 * N_NEAR; n++) {
        for (int k = 0; k < N_VALUES; k++)
            out[n][k] = value(w, step, rank, near[n], k);
        MPI_Isend(out[n], N_VALUES, MPI_LONG, near[n], tag + (n + N_NEAR) % (2 * N_NEAR), w->comm,
                  &requests[2 * N_NEAR + n]);
    }
    MPI_Waitall(4 * N_NEAR, requests, MPI_STATUSES_IGNORE);
    for (int n = 0; n < 2 * N_NEAR; n++)
        for (int k = 0; k < N_VALUES; k++)
            expect(in[n][k], value(w, step, near[n], rank, k), "a halo", step);
}

static void sum(const struct worker *w, int step)
{
    long mine = rank + step, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, w->comm);
    expect(all, (long)size * (size - 1) / 2 + (long)size * step, "a sum", step);
}

static void *work(void *worker)
{
    const struct worker *w = worker;
    for (int step = w->first; step < w->last; step++) {
        halo(w, step);
        if (w->sums)
            sum(w, step);
    }
    return NULL;
}

/* ---- a thread that waits for questions */

static MPI_Comm service;
static bool probes;

static void *answer(void *unused)
{
    for (;;) {
        long question;
        MPI_Status status;
        if (probes)
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, service, &status);
        int from = probes ? status.MPI_SOURCE : MPI_ANY_SOURCE;
        int tag = probes ? status.MPI_TAG : MPI_ANY_TAG;
        MPI_Recv(&question, 1, MPI_LONG, from, tag, service, &status);
        if (status.MPI_TAG == STOP)
            return unused;
        question = 3 * question + 1;
        MPI_Send(&question, 1, MPI_LONG, status.MPI_SOURCE, ANSWER, MPI_COMM_WORLD);
    }
}

static void ask(int step)
{
    long question = step * size + rank, answered = 0;
    MPI_Send(&question, 1, MPI_LONG, (rank + step) % size, QUESTION, service);
    MPI_Recv(&answered, 1, MPI_LONG, (rank + step) % size, ANSWER, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    expect(answered, 3 * question + 1, "an answer", step);
}

static void work_beside_answers(struct worker *w)
{
    pthread_t thread;
    int last = w->last;
    MPI_Comm_dup(MPI_COMM_WORLD, &service);
    pthread_create(&thread, NULL, answer, NULL);
    for (int step = 0; step < last; step++) {
        w->first = step;
        w->last = step + 1;
        work(w);
        if (step % 8 == 0)
            ask(step);
    }
    MPI_Barrier(w->comm);
    MPI_Send(NULL, 0, MPI_LONG, rank, STOP, service);
    pthread_join(thread, NULL);
    MPI_Comm_free(&service);
}

/* ---- forms */

static void work_in_turn(struct worker *w)
{
    int last = w->last;
    for (int step = 0; step < last; step++) {
        pthread_t thread;
        w->first = step;
        w->last = step + 1;
        pthread_create(&thread, NULL, work, w);
        pthread_join(thread, NULL);
    }
}

static void work_together(const struct worker *like, bool own_comms)
{
    struct worker w[MOST];
    pthread_t thread[MOST];
    for (int t = 0; t < MOST; t++) {
        w[t] = *like;
        w[t].number = t;
        w[t].sums = t == 0 || own_comms;
        if (own_comms)
            MPI_Comm_dup(MPI_COMM_WORLD, &w[t].comm);
    }
    for (int t = 1; t < MOST; t++)
        pthread_create(&thread[t], NULL, work, &w[t]);
    work(&w[0]);
    for (int t = 1; t < MOST; t++)
        pthread_join(thread[t], NULL);
    for (int t = 0; t < MOST && own_comms; t++)
        MPI_Comm_free(&w[t].comm);
}

static void run(const char *form, struct worker *w)
{
    probes = strcmp(form, "probes") == 0;
    if (strcmp(form, "alone") == 0)
        work(w);
    else if (strcmp(form, "relay") == 0)
        work_in_turn(w);
    else if (probes || strcmp(form, "answers") == 0)
        work_beside_answers(w);
    else
        work_together(w, strcmp(form, "comms") == 0);
}

int main(int argc, char **argv)
{
    int provided, level, wrong = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Query_thread(&level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *form = argc > 1 ? argv[1] : "alone";
    struct worker w = {
        .comm = MPI_COMM_WORLD, .last = argc > 2 ? atoi(argv[2]) : 120, .sums = true};
    run(form, &w);
    MPI_Reduce(&n_wrong, &wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s, level %d of %d: %s\n", form, level, provided, wrong ? "WRONG" : "right");
    MPI_Finalize();
    return wrong > 0;
}
