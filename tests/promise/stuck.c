/*
 * What MPI has completed at the sender arrives without further calls there: the sender waits out of
 * band, in shared memory, until the receiver has the message, and does not call MPI. That MPI alone
 * brings such messages on this machine was tried; a library under the program must as well.
 *
 *   stuck send | send3000 | large | bsend | isend | test | ssend | issend | persistent | sendrecv
 *                         one rank sends to another by that call, completes it, and waits for it
 *   stuck third KIND      all other ranks wait out of band, too, having completed an exchange
 *   stuck last            all ranks complete an exchange and wait until all others have
 *   stuck posted KIND     the receiver has posted its receive and waits until the sender has sent
 *                         (not synchronously and not large: MPI alone hangs there)
 *   stuck computing KIND  the other ranks compute for 20 ms without calling MPI
 */
#include "promise.h"

#include <string.h>

#define ROUNDS 16
#define MOST   200000
#define TAG    6
#define COMM   MPI_COMM_WORLD

static unsigned char out[MOST], in[MOST];
static const char *kind;
static int n_bytes = 40, from, to; /* of this round */

static bool is(const char *name)
{
    return strcmp(kind, name) == 0;
}

static void send_by_request(void)
{
    MPI_Request request;
    int flag = 0;
    if (is("persistent")) {
        MPI_Send_init(out, n_bytes, MPI_BYTE, to, TAG, COMM, &request);
        MPI_Start(&request);
    } else if (is("issend")) {
        MPI_Issend(out, n_bytes, MPI_BYTE, to, TAG, COMM, &request);
    } else {
        MPI_Isend(out, n_bytes, MPI_BYTE, to, TAG, COMM, &request);
    }
    while (is("test") && !flag)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    if (!is("test"))
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (is("persistent"))
        MPI_Request_free(&request);
}

/* Sends, and completes what it sends. */
static void send(void)
{
    static char room[100 + MPI_BSEND_OVERHEAD];
    int nothing = 0, size;
    void *address;
    if (is("bsend")) {
        MPI_Buffer_attach(room, sizeof room);
        MPI_Bsend(out, n_bytes, MPI_BYTE, to, TAG, COMM);
        MPI_Buffer_detach(&address, &size);
    } else if (is("send") || is("send3000") || is("large")) {
        MPI_Send(out, n_bytes, MPI_BYTE, to, TAG, COMM);
    } else if (is("ssend")) {
        MPI_Ssend(out, n_bytes, MPI_BYTE, to, TAG, COMM);
    } else if (is("sendrecv")) {
        MPI_Sendrecv(out, n_bytes, MPI_BYTE, to, TAG, &nothing, 1, MPI_INT, MPI_PROC_NULL, TAG,
                     COMM, MPI_STATUS_IGNORE);
    } else {
        send_by_request();
    }
}

static void begin(const char *by)
{
    kind = by;
    n_bytes = is("send3000") ? 3000 : is("large") ? MOST : 40;
    warm_up(COMM);
    flags_open();
}

static void choose(int round)
{
    from = round % n_ranks;
    to = (from + 1 + round / n_ranks % (n_ranks - 1)) % n_ranks;
    fill(out, sizeof out, round);
    memset(in, 0, sizeof in);
}

static void play(bool others_wait, double others_compute)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct batch batch;
        choose(round);
        batch_begin(&batch, COMM, round);
        batch_end(&batch);
        if (me == from) {
            send();
            flag_await(round, 1);
        } else if (me == to) {
            MPI_Recv(in, n_bytes, MPI_BYTE, from, TAG, COMM, MPI_STATUS_IGNORE);
            expect(in, (size_t)n_bytes, round, "message");
            flag_set(round, 1);
        } else if (others_wait) {
            flag_await(round, 1);
        } else if (others_compute > 0) {
            nap(others_compute);
        }
        MPI_Barrier(COMM);
    }
    say("arrived: %s\n", kind);
}

static void plain(void)
{
    begin(kind);
    play(false, 0);
}

static void third(void)
{
    begin(word(0, "send"));
    play(true, 0);
}

static void computing(void)
{
    begin(word(0, "send"));
    play(false, 0.02);
}

static void last(void)
{
    begin("send");
    for (int round = 0; round < ROUNDS; round++) {
        struct batch batch;
        batch_begin(&batch, COMM, round);
        batch_end(&batch);
        flag_set(100 + n_ranks * round + me, 1);
        for (int i = 0; i < n_ranks; i++)
            flag_await(100 + n_ranks * round + i, 1);
        MPI_Barrier(COMM);
    }
    say("all have completed\n");
}

static void posted(void)
{
    begin(word(0, "send"));
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request = MPI_REQUEST_NULL;
        choose(round);
        if (me == to)
            MPI_Irecv(in, n_bytes, MPI_BYTE, from, TAG, COMM, &request);
        MPI_Barrier(COMM); /* it is posted */
        if (me == from) {
            send();
            flag_set(round, 1);
        } else if (me == to) {
            flag_await(round, 1);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            expect(in, (size_t)n_bytes, round, "message");
        }
        warm_rounds(COMM, 1);
    }
    say("sent to one that waits: %s\n", kind);
}

int main(int argc, char **argv)
{
    static const struct promise_case cases[] = {
        {"send", plain},          {"send3000", plain}, {"bsend", plain},  {"isend", plain},
        {"test", plain},          {"ssend", plain},    {"issend", plain}, {"persistent", plain},
        {"sendrecv", plain},      {"third", third},    {"last", last},    {"posted", posted},
        {"computing", computing}, {"large", plain},
    };
    kind = argc > 1 ? argv[1] : "send";
    return promise_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
