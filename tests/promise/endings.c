/*
 * How programs end, and what else is no business of a library under them, while messages are
 * managed.
 *
 *   endings flood     one rank sends 3,000 messages of 2 KiB to one that receives slowly
 *   endings system    system() and fork()
 *   endings exit      exit without MPI_Finalize (with 0 by MPI alone)
 *   endings atexit    MPI_Finalize is called by exit
 *   endings waitall   an exchange whose Waitall is the last call before MPI_Finalize
 *   endings freed     sends whose requests were freed right before MPI_Finalize
 *   endings send      MPI_Send as the last call, nonblocking receives completed before MPI_Finalize
 *   endings self      messages to oneself, also as the last ones
 *   endings finalized what may be called after MPI_Finalize
 */
#include "promise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAG  6
#define COMM MPI_COMM_WORLD

static int last_in[MAX_RANKS]; /* what must have arrived when MPI_Finalize returns */

static void flood(void)
{
    static unsigned char bytes[2048];
    int n = (int)option(0, 3000), partner = partner_of_me();
    warm_up(COMM);
    for (int i = 0; i < n && partner >= 0; i++) {
        if (me % 2 == 0) {
            fill(bytes, sizeof bytes, i);
            MPI_Send(bytes, sizeof bytes, MPI_BYTE, partner, TAG, COMM);
        } else {
            MPI_Recv(bytes, sizeof bytes, MPI_BYTE, partner, TAG, COMM, MPI_STATUS_IGNORE);
            expect(bytes, sizeof bytes, i, "of the flood");
            if (i % 8 == 0)
                nap(0.00002);
        }
    }
    warm_rounds(COMM, 2);
    say("%d messages\n", n);
}

static void system_and_fork(void)
{
    warm_up(COMM);
    for (int round = 0; round < 3; round++) {
        struct batch batch;
        int status = 0;
        batch_begin(&batch, COMM, round);
        int code = system("exit 3");
        say("system: %d\n", WIFEXITED(code) ? WEXITSTATUS(code) : -1);
        if (me == 0 && system("echo from the shell") != 0)
            wrong("no shell");
        pid_t child = fork();
        if (child == 0)
            _exit(5);
        waitpid(child, &status, 0);
        expect_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 5, "code of the child");
        batch_end(&batch);
        warm_rounds(COMM, 1);
    }
}

static void leave(void)
{
    warm_up(COMM);
    say("leaving\n");
    MPI_Barrier(COMM);
    exit(0);
}

static void finalize(void)
{
    MPI_Finalize();
    if (me == 0)
        printf("finalized by exit\n");
    fflush(stdout);
}

static void leave_finalizing(void)
{
    warm_up(COMM);
    atexit(finalize);
    exit(0);
}

static int finalize_now(void)
{
    int flag = 0;
    MPI_Finalize();
    for (int i = 0; i < n_ranks; i++)
        if (last_in[i] != i * 3)
            wrong("from %d: %d", i, last_in[i]);
    MPI_Finalized(&flag);
    if (me == 0)
        printf("finalized %d\n", flag != 0);
    for (int i = 0; i < n_ranks; i++)
        if (last_in[i] != i * 3)
            return 1;
    return 0;
}

/* An int from each rank to each other; the last exchange has no collective behind it. */
static void last_exchange(bool free_sends, bool blocking)
{
    static int out;
    MPI_Request in[MAX_RANKS], sent[MAX_RANKS];
    for (int round = 0; round < 6; round++) {
        if (round < 5)
            warm_rounds(COMM, 1);
        out = me * 3;
        for (int i = 0; i < n_ranks; i++) {
            last_in[i] = -1;
            MPI_Irecv(&last_in[i], 1, MPI_INT, i, TAG, COMM, &in[i]);
        }
        for (int i = 0; i < n_ranks; i++) {
            sent[i] = MPI_REQUEST_NULL;
            if (blocking)
                MPI_Send(&out, 1, MPI_INT, i, TAG, COMM);
            else
                MPI_Isend(&out, 1, MPI_INT, i, TAG, COMM, &sent[i]);
            if (free_sends && !blocking)
                MPI_Request_free(&sent[i]);
        }
        MPI_Waitall(n_ranks, in, MPI_STATUSES_IGNORE);
        MPI_Waitall(n_ranks, sent, MPI_STATUSES_IGNORE);
    }
    exit(finalize_now());
}

static void last_waitall(void)
{
    warm_up(COMM);
    last_exchange(false, false);
}

static void last_freed(void)
{
    warm_up(COMM);
    last_exchange(true, false);
}

static void last_send(void)
{
    warm_up(COMM);
    last_exchange(false, true);
}

static void to_self(void)
{
    static unsigned char out[20000], in[20000];
    MPI_Request requests[2];
    MPI_Status status;
    warm_up(COMM);
    for (int round = 0; round < 8; round++) {
        size_t n = round % 2 ? sizeof out : 40;
        fill(out, n, me + round);
        memset(in, 0, sizeof in);
        MPI_Irecv(in, sizeof in, MPI_BYTE, round % 3 ? me : MPI_ANY_SOURCE, TAG, COMM,
                  &requests[0]);
        MPI_Isend(out, (int)n, MPI_BYTE, me, TAG, COMM, &requests[1]);
        MPI_Wait(&requests[0], &status);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        expect(in, n, me + round, "to oneself");
        expect_int(status.MPI_SOURCE, me, "source");
        MPI_Isend(out, 40, MPI_BYTE, me, TAG, COMM, &requests[1]);
        MPI_Recv(in, 40, MPI_BYTE, me, TAG, COMM, &status);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        expect(in, 40, me + round, "to oneself, unexpected");
        MPI_Sendrecv(&round, 1, MPI_INT, me, TAG, in, 4, MPI_BYTE, me, TAG, COMM, &status);
        if (round < 7)
            warm_rounds(COMM, 1);
    }
    say("to oneself\n");
}

static void finalized(void)
{
    int flag = 0, version = 0, subversion = 0, length = 0;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    warm_up(COMM);
    MPI_Finalize();
    MPI_Initialized(&flag);
    MPI_Get_version(&version, &subversion);
    MPI_Get_library_version(text, &length);
    if (me == 0)
        printf("initialized %d, version %d.%d, text %d\n", flag != 0, version, subversion,
               length > 0);
    MPI_Finalized(&flag);
    if (me == 0)
        printf("finalized %d\n", flag != 0);
    exit(0);
}

int main(int argc, char **argv)
{
    static const struct promise_case cases[] = {
        {"flood", flood},      {"system", system_and_fork},  {"exit", leave},
        {"self", to_self},     {"atexit", leave_finalizing}, {"waitall", last_waitall},
        {"freed", last_freed}, {"send", last_send},          {"finalized", finalized},
    };
    return promise_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
