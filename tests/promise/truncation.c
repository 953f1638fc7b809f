/*
 * Receives too small for their message, with MPI_ERRORS_RETURN, while messages are managed: the
 * error class, source, tag and count that MPI gives, from every kind of receive; receives beside
 * them, and later messages of the same pair, must come right.
 *
 *   truncation recv | wait | waitall | waitany | waitsome | test | mrecv | sendrecv [BYTES]
 *
 * BYTES of the message that is too long: 40 unless given (it rides), 20000 goes straight.
 */
#include "promise.h"

#include <string.h>

#define ROUNDS 6
#define TAG    20
#define MOST   20000
#define N      3 /* receives at a time; the one in the middle is too small */
#define COMM   MPI_COMM_WORLD

static unsigned char out[MOST], in[N][MOST];
static int sizes[N], rooms[N];
static MPI_Status statuses[N];
static int peer;

static void tell(const char *what, int error, const MPI_Status *status)
{
    int n = -1;
    MPI_Get_count(status, MPI_BYTE, &n);
    if (error) /* MPICH 4.0.2 leaves the count of what the request's memory was used for before */
        n = -1;
    say("%s: class %d, source %d, tag %d, count %d\n", what, class_of(error), status->MPI_SOURCE,
        status->MPI_TAG, n);
}

static void prepare(int round)
{
    int large = (int)option(0, 40);
    peer = partner_of_me();
    for (int i = 0; i < N; i++) {
        sizes[i] = i == 1 ? large : 8 + i;
        rooms[i] = i == 1 ? 12 : 40;
    }
    memset(in, 0, sizeof in);
    memset(statuses, 0x5a, sizeof statuses);
    fill(out, sizeof out, round);
}

static void send_three(int round)
{
    MPI_Request requests[N];
    fill(out, sizeof out, round);
    for (int i = 0; i < N; i++)
        MPI_Isend(out, sizes[i], MPI_BYTE, peer, TAG + i, COMM, &requests[i]);
    MPI_Waitall(N, requests, MPI_STATUSES_IGNORE);
}

static void post_three(MPI_Request *requests)
{
    for (int i = 0; i < N; i++)
        MPI_Irecv(in[i], rooms[i], MPI_BYTE, i == 2 ? MPI_ANY_SOURCE : peer, TAG + i, COMM,
                  &requests[i]);
}

static void check_good(int round)
{
    for (int i = 0; i < N; i += 2)
        expect(in[i], (size_t)sizes[i], round, "beside a truncated one");
    for (int i = rooms[1]; i < MOST; i++)
        if (in[1][i] != 0) {
            wrong("written behind the receive's memory, at %d", i);
            return;
        }
}

static void recv_three(int round)
{
    (void)round;
    for (int i = 0; i < N; i++) {
        int error = MPI_Recv(in[i], rooms[i], MPI_BYTE, peer, TAG + i, COMM, &statuses[i]);
        tell("Recv", error, &statuses[i]);
    }
}

static void wait_three(int round)
{
    MPI_Request requests[N];
    post_three(requests);
    for (int i = 0; i < N; i++) {
        int k = (i + round) % N, error = MPI_Wait(&requests[k], &statuses[k]);
        tell("Wait", error, &statuses[k]);
        if (requests[k] != MPI_REQUEST_NULL)
            say("request %d is not null\n", k);
    }
}

static void waitall_three(int round)
{
    MPI_Request requests[N];
    (void)round;
    post_three(requests);
    int error = MPI_Waitall(N, requests, statuses);
    say("Waitall: class %d\n", class_of(error));
    for (int i = 0; i < N; i++) {
        int of_one = statuses[i].MPI_ERROR;
        if (class_of(of_one) == MPI_ERR_PENDING) /* as MPI likes, behind one with an error */
            of_one = MPI_Wait(&requests[i], &statuses[i]);
        tell("of Waitall", of_one, &statuses[i]);
        if (requests[i] != MPI_REQUEST_NULL)
            say("request %d is not null\n", i);
    }
}

static void waitany_three(int round)
{
    MPI_Request requests[N];
    int errors[N];
    (void)round;
    post_three(requests);
    for (int i = 0; i < N; i++) {
        int index = -1;
        MPI_Status status;
        int error = MPI_Waitany(N, requests, &index, &status);
        if (index < 0 || index >= N) {
            wrong("Waitany: index %d", index);
            return;
        }
        errors[index] = error;
        statuses[index] = status;
    }
    for (int i = 0; i < N; i++)
        tell("Waitany", errors[i], &statuses[i]);
}

static void waitsome_three(int round)
{
    MPI_Request requests[N];
    int errors[N] = {0}, done = 0;
    (void)round;
    post_three(requests);
    while (done < N) {
        MPI_Status some[N];
        int indices[N], n_done = 0;
        int error = MPI_Waitsome(N, requests, &n_done, indices, some);
        if (n_done <= 0 || n_done > N) {
            wrong("Waitsome: %d", n_done);
            return;
        }
        for (int i = 0; i < n_done; i++) {
            errors[indices[i]] = error ? some[i].MPI_ERROR : 0;
            statuses[indices[i]] = some[i];
        }
        done += n_done;
    }
    for (int i = 0; i < N; i++)
        tell("Waitsome", errors[i], &statuses[i]);
}

static void test_three(int round)
{
    MPI_Request requests[N];
    (void)round;
    post_three(requests);
    for (int i = 0; i < N; i++) {
        int flag = 0, error = 0;
        while (!flag && !error)
            error = MPI_Test(&requests[i], &flag, &statuses[i]);
        say("flag %d\n", flag != 0);
        tell("Test", error, &statuses[i]);
    }
}

static void mrecv_three(int round)
{
    for (int i = 0; i < N; i++) {
        MPI_Message message;
        MPI_Status probed;
        MPI_Request request;
        int error;
        MPI_Mprobe(round % 2 ? MPI_ANY_SOURCE : peer, TAG + i, COMM, &message, &probed);
        tell("Mprobe", 0, &probed);
        if (round % 3 == 0) {
            error = MPI_Mrecv(in[i], rooms[i], MPI_BYTE, &message, &statuses[i]);
        } else {
            MPI_Imrecv(in[i], rooms[i], MPI_BYTE, &message, &request);
            error = MPI_Wait(&request, &statuses[i]);
        }
        tell("Mrecv", error, &statuses[i]);
    }
}

static void sendrecv_three(int round)
{
    for (int i = 0; i < N; i++) {
        int error = MPI_Sendrecv(&round, 1, MPI_INT, peer, TAG + N, in[i], rooms[i], MPI_BYTE, peer,
                                 TAG + i, COMM, &statuses[i]);
        tell("Sendrecv", error, &statuses[i]);
    }
}

/* Even ranks receive from odd ones; then they exchange, with the same tags. */
static void play(void (*receive)(int round), bool answers)
{
    warm_up(COMM);
    MPI_Comm_set_errhandler(COMM, MPI_ERRORS_RETURN);
    for (int round = 0; round < ROUNDS; round++) {
        prepare(round);
        if (peer >= 0 && me % 2 == 0) {
            receive(round);
            check_good(round);
        } else if (peer >= 0) {
            send_three(round);
        }
        for (int i = 0; i < N && peer >= 0 && me % 2 != 0 && answers; i++) {
            int got = -1;
            MPI_Recv(&got, 1, MPI_INT, peer, TAG + N, COMM, MPI_STATUS_IGNORE);
            expect_int(got, round, "sent with a truncated receive");
        }
        for (int i = 0; i < N && peer >= 0; i++) {
            memset(in[0], 0, MOST);
            MPI_Sendrecv(out, sizes[i], MPI_BYTE, peer, TAG + i, in[0], MOST, MPI_BYTE, peer,
                         TAG + i, COMM, MPI_STATUS_IGNORE);
            expect(in[0], (size_t)sizes[i], round, "behind a truncated one");
        }
        warm_rounds(COMM, 1);
    }
}

static void by_recv(void)
{
    play(recv_three, false);
}

static void by_wait(void)
{
    play(wait_three, false);
}

static void by_waitall(void)
{
    play(waitall_three, false);
}

static void by_waitany(void)
{
    play(waitany_three, false);
}

static void by_waitsome(void)
{
    play(waitsome_three, false);
}

static void by_test(void)
{
    play(test_three, false);
}

static void by_mrecv(void)
{
    play(mrecv_three, false);
}

static void by_sendrecv(void)
{
    play(sendrecv_three, true);
}

int main(int argc, char **argv)
{
    static const struct promise_case cases[] = {
        {"recv", by_recv},       {"wait", by_wait},         {"waitall", by_waitall},
        {"waitany", by_waitany}, {"waitsome", by_waitsome}, {"test", by_test},
        {"mrecv", by_mrecv},     {"sendrecv", by_sendrecv},
    };
    return promise_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
