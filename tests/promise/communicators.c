/*
 * Communicators that come and go while their messages, or others', are managed.
 *
 *   communicators order        copies and parts, freed in another order than made
 *   communicators persistent   persistent requests started after their communicator was freed
 *   communicators pending      MPI_Comm_free with receives open, which are completed then
 *   communicators disconnect   MPI_Comm_disconnect after exchanges
 *   communicators reduced [N]  N copies (40), each with a few sums from its first call on
 *   communicators session      one of a session's, which is not made of MPI_COMM_WORLD
 *   communicators many [N]     N times (60) a copy, an exchange on it, and the end of it
 *   communicators all          as many as MPI has, exchanges on the first of them before and after,
 *                              and what has been sent or started on some meanwhile
 *   communicators three        exchanges of three communicators interleaved
 *   communicators inter        traffic of an intercommunicator beside a managed exchange
 */
#include "promise.h"

#include <string.h>

#define TAG 6

static void order(void)
{
    MPI_Comm comms[4];
    struct batch batches[4];
    static const int leaving[4] = {1, 3, 0, 2};
    for (int turn = 0; turn < 3; turn++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
        MPI_Comm_split(comms[0], me % 2, -me, &comms[1]);
        MPI_Comm_dup(comms[0], &comms[2]);
        MPI_Comm_split(comms[2], 0, -me, &comms[3]);
        for (int i = 0; i < 4; i++)
            warm_up(comms[i]);
        for (int k = 0; k < 4; k++) {
            for (int i = k; i < 4; i++) /* on those that are left, all at once */
                batch_begin(&batches[i], comms[leaving[i]], turn * 10 + k);
            for (int i = 3; i >= k; i--)
                batch_end(&batches[i]);
            MPI_Comm_free(&comms[leaving[k]]);
            if (comms[leaving[k]] != MPI_COMM_NULL)
                wrong("not null after MPI_Comm_free");
            warm_rounds(MPI_COMM_WORLD, 3);
        }
    }
    say("freed in another order\n");
}

static void persistent(void)
{
    for (int turn = 0; turn < 4; turn++) {
        MPI_Comm comm;
        MPI_Request requests[2];
        int out = -1, in = -1;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (turn % 2 == 0)
            warm_up(comm);
        if (turn < 2)
            MPI_Send_init(&out, 1, MPI_INT, beside(1), TAG, comm, &requests[0]);
        else
            MPI_Ssend_init(&out, 1, MPI_INT, beside(1), TAG, comm, &requests[0]);
        MPI_Recv_init(&in, 1, MPI_INT, turn == 3 ? MPI_ANY_SOURCE : beside(-1), TAG, comm,
                      &requests[1]);
        if (turn % 2 == 0)
            warm_rounds(comm, 3);
        MPI_Comm_free(&comm);
        for (int k = 0; k < 10; k++) {
            out = me * 100 + k;
            MPI_Startall(2, requests);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            expect_int(in, beside(-1) * 100 + k, "after the communicator was freed");
            warm_rounds(MPI_COMM_WORLD, 1);
        }
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
    }
    say("persistent requests outlive their communicator\n");
}

static void pending(void)
{
    static unsigned char out[20000], in[20000];
    for (int turn = 0; turn < 6; turn++) {
        MPI_Comm comm;
        MPI_Request requests[2];
        struct batch batch;
        int n = turn % 3 == 2 ? 20000 : 40;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        warm_up(comm);
        memset(in, 0, sizeof in);
        fill(out, (size_t)n, me + turn);
        batch_begin(&batch, comm, turn);
        MPI_Irecv(in, n, MPI_BYTE, beside(-1), TAG, comm, &requests[0]);
        if (turn % 2)
            MPI_Isend(out, n, MPI_BYTE, beside(1), TAG, comm, &requests[1]);
        else
            MPI_Issend(out, n, MPI_BYTE, beside(1), TAG, comm, &requests[1]);
        MPI_Comm_free(&comm);
        if (turn >= 3)
            warm_rounds(MPI_COMM_WORLD, 2);
        if (me % 2)
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        /* its size and rank were taken before */
        batch_end(&batch);
        if (me % 2 == 0)
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        expect(in, (size_t)n, beside(-1) + turn, "completed after MPI_Comm_free");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    say("completed after the communicator was freed\n");
}

static void disconnect(void)
{
    for (int turn = 0; turn < 6; turn++) {
        MPI_Comm comm;
        struct batch batch;
        MPI_Comm_split(MPI_COMM_WORLD, 0, turn % 2 ? -me : me, &comm);
        warm_up(comm);
        batch_begin(&batch, comm, turn);
        batch_end(&batch);
        MPI_Comm_disconnect(&comm);
        if (comm != MPI_COMM_NULL)
            wrong("not null after MPI_Comm_disconnect");
        warm_rounds(MPI_COMM_WORLD, 2);
    }
    say("disconnected\n");
}

static void many(void)
{
    int n = (int)option(0, 60);
    warm_up(MPI_COMM_WORLD);
    for (int k = 0; k < n; k++) {
        MPI_Comm comm;
        struct batch batch;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        warm_rounds(comm, k % 4 == 0 ? 8 : 1);
        batch_begin(&batch, comm, k);
        batch_end(&batch);
        MPI_Comm_free(&comm);
        if (k % 5 == 0)
            warm_rounds(MPI_COMM_WORLD, 1);
    }
    say("%d communicators\n", n);
}

static void three(void)
{
    MPI_Comm comms[3] = {MPI_COMM_WORLD};
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &comms[2]);
    for (int round = 0; round < WARM_ROUNDS + 20; round++) {
        struct batch batches[3];
        int one = 1, sum = 0;
        for (int i = 0; i < 3; i++)
            batch_begin(&batches[i], comms[(i + round) % 3], round);
        if (round % 4 == 3) /* collectives of all between the halves */
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[round / 4 % 3]);
        for (int i = 0; i < 3; i++)
            batch_end(&batches[(i + me) % 3]);
        MPI_Barrier(comms[round % 3]);
    }
    MPI_Comm_free(&comms[1]);
    MPI_Comm_free(&comms[2]);
    say("three at once\n");
}

/* The even ranks and the odd ones. */
static void inter(void)
{
    MPI_Comm half, inter;
    int remote = 0, rank, sum = 0, wanted = 0;
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - me % 2, 77, &inter);
    MPI_Comm_remote_size(inter, &remote);
    MPI_Comm_rank(inter, &rank);
    warm_up(MPI_COMM_WORLD);
    for (int round = 0; round < 20; round++) {
        int in[MAX_RANKS], out = me * 1000 + round;
        MPI_Request requests[2 * MAX_RANKS];
        struct batch batch;
        batch_begin(&batch, MPI_COMM_WORLD, round);
        for (int i = 0; i < remote; i++)
            MPI_Irecv(&in[i], 1, MPI_INT, i, BATCH_TAG, inter, &requests[i]);
        for (int i = 0; i < remote; i++)
            MPI_Isend(&out, 1, MPI_INT, i, BATCH_TAG, inter, &requests[remote + i]);
        if (round % 2)
            batch_end(&batch);
        MPI_Waitall(2 * remote, requests, MPI_STATUSES_IGNORE);
        if (round % 2 == 0)
            batch_end(&batch);
        for (int i = 0; i < remote; i++)
            expect_int(in[i], (2 * i + 1 - me % 2) * 1000 + round, "by the intercommunicator");
        MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, inter); /* of the other group */
        wanted = 0;
        for (int i = 0; i < remote; i++)
            wanted += 2 * i + 1 - me % 2;
        expect_int(sum, wanted, "sum of the other group");
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    say("beside an intercommunicator\n");
}

#define N_ALL 2030 /* MPICH has 2,048, some of them its own */
/* Sums of the communicator's ranks, of which small ones may be carried out in memory. */
static void check_sums(MPI_Comm comm, int n)
{
    for (int k = 0; k < n; k++) {
        double mine = me + k, all = -1;
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, comm);
        if (all != n_ranks * (n_ranks - 1) / 2 + k * n_ranks)
            wrong("a sum of copy %d", k);
    }
}

static void reduced(void)
{
    long n = option(0, 40);
    warm_up(MPI_COMM_WORLD);
    for (long k = 0; k < n; k++) {
        MPI_Comm copy;
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        check_sums(copy, 5);
        warm_rounds(MPI_COMM_WORLD, 2);
        MPI_Comm_free(&copy);
    }
    say("%ld copies with sums\n", n);
}

static void of_session(void)
{
#if MPI_VERSION >= 4
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    warm_up(MPI_COMM_WORLD);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "carpool", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    check_sums(comm, 5);
    warm_up(comm);
    warm_rounds(MPI_COMM_WORLD, 5);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    warm_rounds(MPI_COMM_WORLD, 5);
#endif
    say("a session beside\n");
}

#define N_USED 40

/* Every third is a ring, with neighborhood collectives. */
static void make_copy(int k, MPI_Comm *made)
{
    int to = beside(1), from = beside(-1);
    if (k % 3 == 0)
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &to,
                                       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, made);
    else
        MPI_Comm_dup(MPI_COMM_WORLD, made);
}

static void use_copy(int k, MPI_Comm comm)
{
    int got = -1, mine = me + k;
    warm_up(comm);
    for (int round = 0; k % 3 == 0 && round < 8; round++) {
        MPI_Neighbor_alltoall(&mine, 1, MPI_INT, &got, 1, MPI_INT, comm);
        expect_int(got, beside(-1) + k, "from the left");
    }
}

static void all_there_are(void)
{
    static MPI_Comm comms[N_ALL];
    int sent = me, came = -1, started = -1, mine = me;
    MPI_Request request[2];
    for (int k = 0; k < N_USED; k++) {
        make_copy(k, &comms[k]);
        use_copy(k, comms[k]);
    }
    MPI_Isend(&sent, 1, MPI_INT, beside(1), 3, comms[1], &request[0]);
    if (me % 2 == 0)
        MPI_Ineighbor_alltoall(&mine, 1, MPI_INT, &started, 1, MPI_INT, comms[3], &request[1]);
    for (int k = N_USED; k < N_ALL; k++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[k]);
    if (me % 2 == 1)
        MPI_Ineighbor_alltoall(&mine, 1, MPI_INT, &started, 1, MPI_INT, comms[3], &request[1]);
    MPI_Recv(&came, 1, MPI_INT, beside(-1), 3, comms[1], MPI_STATUS_IGNORE);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    expect_int(came, beside(-1), "what was sent before");
    expect_int(started, beside(-1), "what was started before");
    for (int k = 0; k < N_USED; k++)
        use_copy(k, comms[k]);
    for (int k = 0; k < N_ALL; k++)
        MPI_Comm_free(&comms[k]);
    warm_rounds(MPI_COMM_WORLD, 5);
    say("%d communicators\n", N_ALL);
}

int main(int argc, char **argv)
{
    static const struct promise_case cases[] = {
        {"order", order},        {"persistent", persistent}, {"pending", pending},
        {"many", many},          {"all", all_there_are},     {"three", three},
        {"inter", inter},        {"disconnect", disconnect}, {"reduced", reduced},
        {"session", of_session},
    };
    return promise_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
