/*
 * Statuses of operations with MPI_PROC_NULL and of null requests, while messages are managed:
 * source, tag, count and MPI_ERROR, of statuses whose bytes were all set before. What is not
 * written must stay as it was, what MPI writes must be written.
 *
 *   pnull blocking | nonblocking | tests | probes | persistent | nothing
 *
 * MPICH 4.0.2 itself crashes in MPI_Isendrecv with MPI_PROC_NULL, which therefore is not here.
 */
#include "promise.h"

#include <stdio.h>
#include <string.h>

#define SENTINEL 0x5a
#define COMM     MPI_COMM_WORLD
#define NOBODY   MPI_PROC_NULL
#define N        3

static int x;
static MPI_Status statuses[N];
static MPI_Request requests[N];

static void reset(void)
{
    memset(statuses, SENTINEL, sizeof statuses);
    x = -5;
}

static void tell(const char *what, const MPI_Status *status)
{
    int n = -1, cancelled = -1;
    MPI_Get_count(status, MPI_INT, &n);
    MPI_Test_cancelled(status, &cancelled);
    say("%s: source %d, tag %d, count %d, cancelled %d, error %d, memory %d\n", what,
        status->MPI_SOURCE, status->MPI_TAG, n, cancelled != 0, status->MPI_ERROR, x);
}

static void tell_all(const char *what, int n)
{
    for (int i = 0; i < n; i++) {
        tell(what, &statuses[i]);
        if (requests[i] != MPI_REQUEST_NULL)
            say("    request %d is not null\n", i);
    }
    reset();
}

/* After `start`: of a send's status MPI defines nothing but the error. */
static void tell_started(const char *what)
{
    for (int i = 0; i < N; i++)
        if (requests[i] != MPI_REQUEST_NULL)
            say("    request %d is not null\n", i);
    tell(what, &statuses[1]);
    say("%s: errors %d %d\n", what, statuses[0].MPI_ERROR, statuses[2].MPI_ERROR);
    reset();
}

static void tell_one(const char *what)
{
    tell(what, &statuses[0]);
    reset();
}

static void blocking(void)
{
    int replaced[4] = {1, 2, 3, 4};
    MPI_Datatype every_second;
    MPI_Type_vector(2, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&every_second);
    MPI_Recv(&x, 1, MPI_INT, NOBODY, 1, COMM, &statuses[0]);
    tell_one("Recv");
    MPI_Send(&x, 1, MPI_INT, NOBODY, 1, COMM);
    MPI_Ssend(&x, 1, MPI_INT, NOBODY, 1, COMM);
    MPI_Sendrecv(&x, 1, MPI_INT, NOBODY, 7, &x, 1, MPI_INT, NOBODY, 7, COMM, &statuses[0]);
    tell_one("Sendrecv");
    MPI_Sendrecv(&me, 1, MPI_INT, me + 1 < n_ranks ? me + 1 : NOBODY, 7, &x, 1, MPI_INT,
                 me > 0 ? me - 1 : NOBODY, 7, COMM, &statuses[0]);
    tell("Sendrecv along a line", &statuses[0]);
    expect_int(x, me > 0 ? me - 1 : -5, "along a line");
    reset();
    MPI_Sendrecv_replace(replaced, 1, every_second, beside(1), 8, beside(-1), 8, COMM,
                         &statuses[0]);
    int n = -1;
    MPI_Get_count(&statuses[0], every_second, &n);
    say("replaced: %d of the type\n", n);
    tell_one("Sendrecv_replace");
    MPI_Sendrecv_replace(replaced, 1, every_second, NOBODY, 8, NOBODY, 8, COMM, &statuses[0]);
    tell_one("Sendrecv_replace with nobody");
    say("now %d %d %d %d\n", replaced[0], replaced[1], replaced[2], replaced[3]);
    MPI_Type_free(&every_second);
}

static void start(void)
{
    MPI_Isend(&x, 1, MPI_INT, NOBODY, 1, COMM, &requests[0]);
    MPI_Irecv(&x, 1, MPI_INT, NOBODY, 1, COMM, &requests[1]);
    MPI_Issend(&x, 1, MPI_INT, NOBODY, 1, COMM, &requests[2]);
}

static void nonblocking(void)
{
    int index = -1, n_done = 0, indices[N];
    MPI_Irecv(&x, 1, MPI_INT, NOBODY, 1, COMM, &requests[0]);
    MPI_Wait(&requests[0], &statuses[0]);
    tell_all("Irecv, Wait", 1);
    start();
    MPI_Waitall(N, requests, statuses);
    tell_started("Waitall");
    MPI_Irecv(&x, 1, MPI_INT, NOBODY, 1, COMM, &requests[1]);
    MPI_Waitany(N, requests, &index, &statuses[0]);
    say("Waitany: %d\n", index);
    tell_one("Waitany");
    start();
    for (int done = 0; done < N; done += n_done) {
        MPI_Waitsome(N, requests, &n_done, indices, statuses);
        for (int i = 0; i < n_done; i++)
            if (indices[i] == 1)
                tell("Waitsome", &statuses[i]);
    }
    reset();
}

/* With a batch under way, in the same arrays as real requests, too. */
static void beside_real(void)
{
    int y = -1;
    struct batch batch;
    batch_begin(&batch, COMM, 1);
    MPI_Irecv(&x, 1, MPI_INT, NOBODY, 1, COMM, &requests[0]);
    MPI_Irecv(&y, 1, MPI_INT, beside(-1), 4, COMM, &requests[1]);
    MPI_Isend(&me, 1, MPI_INT, beside(1), 4, COMM, &requests[2]);
    MPI_Waitall(N, requests, statuses);
    expect_int(y, beside(-1), "beside a null receive");
    tell("beside, nobody", &statuses[0]);
    tell("beside, real", &statuses[1]);
    reset();
    batch_end(&batch);
}

static void nonblocking_both(void)
{
    nonblocking();
    beside_real();
}

static void tests(void)
{
    int flag = 0, index = -1, n_done = 0, indices[N];
    MPI_Irecv(&x, 1, MPI_INT, NOBODY, 1, COMM, &requests[0]);
    while (!flag)
        MPI_Request_get_status(requests[0], &flag, &statuses[0]);
    tell_one("Request_get_status");
    for (flag = 0; !flag;)
        MPI_Test(&requests[0], &flag, &statuses[0]);
    tell_all("Test", 1);
    start();
    for (flag = 0; !flag;)
        MPI_Testall(N, requests, &flag, statuses);
    tell_started("Testall");
    MPI_Irecv(&x, 1, MPI_INT, NOBODY, 1, COMM, &requests[2]);
    for (flag = 0; !flag;)
        MPI_Testany(N, requests, &index, &flag, &statuses[0]);
    say("Testany: %d\n", index);
    tell_one("Testany");
    MPI_Irecv(&x, 1, MPI_INT, NOBODY, 1, COMM, &requests[1]);
    while (n_done == 0)
        MPI_Testsome(N, requests, &n_done, indices, statuses);
    say("Testsome: %d, first %d\n", n_done, indices[0]);
    tell_all("Testsome", N);
}

static void probes(void)
{
    int flag = -1;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Probe(NOBODY, 1, COMM, &statuses[0]);
    tell_one("Probe");
    MPI_Iprobe(NOBODY, 1, COMM, &flag, &statuses[0]);
    say("Iprobe: %d\n", flag != 0);
    tell_one("Iprobe");
    MPI_Mprobe(NOBODY, 1, COMM, &message, &statuses[0]);
    say("message of nobody: %d\n", message == MPI_MESSAGE_NO_PROC);
    tell_one("Mprobe");
    MPI_Mrecv(&x, 1, MPI_INT, &message, &statuses[0]);
    say("null: %d\n", message == MPI_MESSAGE_NULL);
    tell_one("Mrecv");
    MPI_Improbe(NOBODY, 1, COMM, &flag, &message, &statuses[0]);
    say("Improbe: %d, message of nobody: %d\n", flag != 0, message == MPI_MESSAGE_NO_PROC);
    tell_one("Improbe");
    MPI_Imrecv(&x, 1, MPI_INT, &message, &requests[0]);
    MPI_Wait(&requests[0], &statuses[0]);
    tell_all("Imrecv", 1);
    MPI_Iprobe(MPI_ANY_SOURCE, 77, COMM, &flag, &statuses[0]);
    say("Iprobe of none: %d\n", flag != 0);
    MPI_Improbe(beside(1), 77, COMM, &flag, &message, &statuses[0]);
    say("Improbe of none: %d\n", flag != 0);
}

static void persistent(void)
{
    int flag = 0;
    MPI_Recv_init(&x, 1, MPI_INT, NOBODY, 1, COMM, &requests[0]);
    MPI_Send_init(&x, 1, MPI_INT, NOBODY, 1, COMM, &requests[1]);
    MPI_Ssend_init(&x, 1, MPI_INT, NOBODY, 1, COMM, &requests[2]);
    MPI_Wait(&requests[0], &statuses[0]);
    tell_one("inactive, Wait");
    MPI_Waitall(N, requests, statuses);
    for (int i = 0; i < N; i++)
        tell("inactive, Waitall", &statuses[i]);
    reset();
    for (int round = 0; round < 2; round++) {
        MPI_Start(&requests[0]);
        MPI_Wait(&requests[0], &statuses[0]);
        tell_one("started, Wait");
        MPI_Startall(N, requests);
        MPI_Waitall(N, requests, statuses);
        tell("started, Waitall", &statuses[0]);
        reset();
        MPI_Start(&requests[0]);
        for (flag = 0; !flag;)
            MPI_Test(&requests[0], &flag, &statuses[0]);
        tell_one("started, Test");
    }
    for (int i = 0; i < N; i++)
        MPI_Request_free(&requests[i]);
}

static void nothing_any(int n)
{
    int flag = -1, index = -7, n_done = -7, indices[N] = {-7, -7, -7};
    MPI_Waitany(n, requests, &index, &statuses[0]);
    say("Waitany of %d: undefined %d\n", n, index == MPI_UNDEFINED);
    tell_one("Waitany");
    MPI_Testany(n, requests, &index, &flag, &statuses[0]);
    say("Testany of %d: flag %d, undefined %d\n", n, flag != 0, index == MPI_UNDEFINED);
    tell_one("Testany");
    MPI_Waitsome(n, requests, &n_done, indices, statuses);
    say("Waitsome of %d: undefined %d\n", n, n_done == MPI_UNDEFINED);
    tell_all("Waitsome", N);
    MPI_Testsome(n, requests, &n_done, indices, statuses);
    say("Testsome of %d: undefined %d\n", n, n_done == MPI_UNDEFINED);
    tell_all("Testsome", N);
    MPI_Waitall(n, requests, statuses);
    tell_all("Waitall", N);
    MPI_Testall(n, requests, &flag, statuses);
    say("Testall of %d: flag %d\n", n, flag != 0);
    tell_all("Testall", N);
}

static void nothing(void)
{
    int flag = -1;
    struct batch batch;
    batch_begin(&batch, COMM, 3);
    MPI_Wait(&requests[0], &statuses[0]);
    tell_one("Wait");
    MPI_Test(&requests[0], &flag, &statuses[0]);
    say("Test: %d\n", flag != 0);
    tell_one("Test");
    MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &statuses[0]);
    say("Request_get_status: %d\n", flag != 0);
    tell_one("Request_get_status");
    nothing_any(N);
    nothing_any(0);
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
    MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE);
    say("Testall of no array: %d\n", flag != 0);
    MPI_Startall(0, requests);
    batch_end(&batch);
}

int main(int argc, char **argv)
{
    static const struct promise_case cases[] = {
        {"blocking", blocking}, {"nonblocking", nonblocking_both}, {"tests", tests},
        {"probes", probes},     {"persistent", persistent},        {"nothing", nothing},
    };
    promise_start(&argc, &argv);
    for (int i = 0; i < N; i++)
        requests[i] = MPI_REQUEST_NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0] && argc > 1; i++) {
        if (strcmp(argv[1], cases[i].name) != 0)
            continue;
        warm_up(COMM);
        reset();
        cases[i].run();
        warm_rounds(COMM, 2);
        return promise_finish();
    }
    say("no such case\n");
    MPI_Finalize();
    return 2;
}
