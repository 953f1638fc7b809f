/*
 * Collective calls on few ranks while messages of a managed exchange are under way: a rank enters
 * the call before it completes its receives, and its partner completes its own first. MPI's
 * progress rule (MPI 4.0, 3.5, and 2.9 for collective calls) lets that end: a rank inside any call
 * of MPI that waits for others makes the messages of all go on.
 *
 *   waiting CALL [EXTRA] [ROUNDS]
 *
 * CALL: group (MPI_Comm_create_group), inter (MPI_Intercomm_create), merge (with a merge and an
 * exchange), dup, split, idup, barrier, file (open, write and read by all, close), shared (with the
 * shared file pointer). EXTRA: none; ssend, 20000 or 200000: before it enters, the partner sends
 * that to the rank that waits, which has posted the receive: synchronous or so many bytes.
 */
#include "promise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAG       8
#define FILE_NAME "promise.file"

static int waiter, partner; /* of this round, ranks of MPI_COMM_WORLD */
static MPI_Comm two;        /* the two of them, MPI_COMM_NULL elsewhere */

static int other(void)
{
    return me == waiter ? partner : waiter;
}

static void exchange_on(MPI_Comm comm)
{
    int rank, mine = me, theirs = -1;
    MPI_Comm_rank(comm, &rank);
    MPI_Sendrecv(&mine, 1, MPI_INT, 1 - rank, TAG, &theirs, 1, MPI_INT, 1 - rank, TAG, comm,
                 MPI_STATUS_IGNORE);
    expect_int(theirs, other(), "by the new communicator");
}

static void call_group(void)
{
    MPI_Group all, pair;
    MPI_Comm comm;
    int members[2] = {waiter, partner};
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 2, members, &pair);
    MPI_Comm_create_group(MPI_COMM_WORLD, pair, 3, &comm);
    exchange_on(comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&pair);
    MPI_Group_free(&all);
}

static void call_inter(void)
{
    MPI_Comm inter;
    int mine = me, theirs = -1;
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, other(), 99, &inter);
    MPI_Sendrecv(&mine, 1, MPI_INT, 0, TAG, &theirs, 1, MPI_INT, 0, TAG, inter, MPI_STATUS_IGNORE);
    expect_int(theirs, other(), "by the intercommunicator");
    MPI_Comm_free(&inter);
}

static void call_merge(void)
{
    MPI_Comm inter, merged;
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, other(), 98, &inter);
    MPI_Intercomm_merge(inter, me == waiter, &merged);
    exchange_on(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
}

static void call_dup(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(two, &comm);
    exchange_on(comm);
    MPI_Comm_free(&comm);
}

static void call_split(void)
{
    MPI_Comm comm;
    MPI_Comm_split(two, 0, -me, &comm);
    exchange_on(comm);
    MPI_Comm_free(&comm);
}

static void call_idup(void)
{
    MPI_Comm comm;
    MPI_Request request;
    MPI_Comm_idup(two, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    exchange_on(comm);
    MPI_Comm_free(&comm);
}

static void call_barrier(void)
{
    MPI_Barrier(two);
}

static void call_file(void)
{
    MPI_File file;
    int rank, wrote[2], got[2] = {-1, -1};
    MPI_Comm_rank(two, &rank);
    wrote[0] = me * 10;
    wrote[1] = me * 10 + 1;
    MPI_File_open(two, FILE_NAME, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, 8 * rank, wrote, 2, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(two);
    MPI_File_sync(file);
    MPI_File_read_at_all(file, 8 * (1 - rank), got, 2, MPI_INT, MPI_STATUS_IGNORE);
    expect_int(got[0], other() * 10, "read");
    expect_int(got[1], other() * 10 + 1, "read");
    MPI_File_close(&file);
}

static void call_shared(void)
{
    MPI_File file;
    int wrote = me + 1;
    MPI_Offset offset = 0;
    MPI_File_open(two, FILE_NAME, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_size(file, 0);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_write_ordered(file, &wrote, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_get_position_shared(file, &offset);
    expect_int((int)offset, 2 * (int)sizeof(int), "shared pointer");
    MPI_Barrier(two);
    MPI_File_close(&file);
}

struct call {
    const char *name;
    void (*make)(void);
    bool on_two; /* needs the communicator `two` */
};

static const struct call calls[] = {
    {"group", call_group, false},    {"inter", call_inter, false}, {"merge", call_merge, false},
    {"dup", call_dup, true},         {"split", call_split, true},  {"idup", call_idup, true},
    {"barrier", call_barrier, true}, {"file", call_file, true},    {"shared", call_shared, true},
};

static void send_extra(const char *extra, const unsigned char *bytes)
{
    if (strcmp(extra, "ssend") == 0)
        MPI_Ssend(bytes, 40, MPI_BYTE, waiter, TAG + 1, MPI_COMM_WORLD);
    else if (strcmp(extra, "none") != 0)
        MPI_Send(bytes, atoi(extra), MPI_BYTE, waiter, TAG + 1, MPI_COMM_WORLD);
}

/* `waiter` waits for `partner` in the call, which waits for its messages first. */
static void play(const struct call *call, int k, const char *extra)
{
    static unsigned char bytes[200000];
    int n = strcmp(extra, "ssend") == 0 ? 40 : strcmp(extra, "none") == 0 ? 0 : atoi(extra);
    struct batch batch;
    MPI_Request receive = MPI_REQUEST_NULL;
    waiter = k % n_ranks;
    partner = (waiter + 1 + k / n_ranks % (n_ranks - 1)) % n_ranks;
    bool in = me == waiter || me == partner;
    two = MPI_COMM_NULL;
    if (call->on_two) {
        MPI_Comm_split(MPI_COMM_WORLD, in ? 0 : MPI_UNDEFINED, me, &two);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    batch_begin(&batch, MPI_COMM_WORLD, k);
    if (me == waiter && n > 0)
        MPI_Irecv(bytes, n, MPI_BYTE, partner, TAG + 1, MPI_COMM_WORLD, &receive);
    if (me == partner && n > 0) {
        fill(bytes, (size_t)n, k);
        send_extra(extra, bytes);
    }
    if (me != waiter)
        batch_end(&batch);
    if (in)
        call->make();
    if (me == waiter) {
        batch_end(&batch);
        MPI_Wait(&receive, MPI_STATUS_IGNORE);
        expect(bytes, (size_t)n, k, "what the partner sent before");
    }
    if (two != MPI_COMM_NULL)
        MPI_Comm_free(&two);
}

int main(int argc, char **argv)
{
    const char *extra = argc > 2 ? argv[2] : "none";
    int rounds = argc > 3 ? atoi(argv[3]) : 30;
    promise_start(&argc, &argv);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0] && argc > 1; i++) {
        if (strcmp(calls[i].name, argv[1]) != 0)
            continue;
        warm_up(MPI_COMM_WORLD);
        for (int k = 0; k < rounds; k++)
            play(&calls[i], k, extra);
        MPI_Barrier(MPI_COMM_WORLD);
        if (me == 0)
            unlink(FILE_NAME);
        say("%s %s, %d rounds\n", argv[1], extra, rounds);
        return promise_finish();
    }
    say("no such call\n");
    MPI_Finalize();
    return 2;
}
