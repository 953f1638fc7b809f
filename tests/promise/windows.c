/*
 * One-sided communication of two ranks while messages of a managed exchange are under way: a rank
 * enters a call that waits for its partner before it completes its receives, and the partner
 * completes its own first. MPI's progress rule (MPI 4.0, 3.5 and 12.7.3) lets that end.
 *
 *   windows CALL [EXTRA] [ROUNDS]
 *
 * CALL: create, allocate (made by the two, used between fences, freed), fence (of a window made
 * before), lock (one rank waits for the lock that the other holds while that waits for a message),
 * lock_all (one rank polls by MPI_Fetch_and_op until the other has counted), post (post and wait
 * against start and complete), start (the other way round), test (post and a loop over
 * MPI_Win_test). EXTRA as for `waiting`: none, ssend, or bytes that the partner sends to the rank
 * that waits.
 */
#include "promise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG 8

static int waiter, partner; /* of this round, ranks of MPI_COMM_WORLD */
static MPI_Comm two;        /* the two of them */
static MPI_Win window;
static int *memory;

static int other(void)
{
    return me == waiter ? partner : waiter;
}

static int other_of_two(void)
{
    int rank;
    MPI_Comm_rank(two, &rank);
    return 1 - rank;
}

static void put_between_fences(void)
{
    int mine = me + 5;
    MPI_Win_fence(0, window);
    MPI_Put(&mine, 1, MPI_INT, other_of_two(), 1, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    expect_int(memory[1], other() + 5, "put");
}

static void call_create(void)
{
    static int place[4];
    memory = place;
    MPI_Win_create(place, sizeof place, sizeof(int), MPI_INFO_NULL, two, &window);
    put_between_fences();
    MPI_Win_free(&window);
}

static void call_allocate(void)
{
    MPI_Win_allocate(16, sizeof(int), MPI_INFO_NULL, two, &memory, &window);
    put_between_fences();
    MPI_Win_free(&window);
}

/* The lock of the first of the two's memory; the partner took it before (see `prepare`). */
static void call_lock(void)
{
    int one = 1;
    if (me == partner)
        MPI_Win_unlock(0, window);
    if (me == waiter) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window);
        MPI_Win_unlock(0, window);
    }
}

static void call_lock_all(void)
{
    int value = 0, one = 1, nothing = 0;
    MPI_Win_lock_all(0, window);
    if (me == partner) {
        MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window);
        MPI_Win_flush(0, window);
    }
    while (me == waiter && value == 0) {
        MPI_Fetch_and_op(&nothing, &value, MPI_INT, 0, 0, MPI_NO_OP, window);
        MPI_Win_flush(0, window);
    }
    MPI_Win_unlock_all(window);
}

static MPI_Group group_of_other(void)
{
    MPI_Group both, one;
    int rank = other_of_two();
    MPI_Comm_group(two, &both);
    MPI_Group_incl(both, 1, &rank, &one);
    MPI_Group_free(&both);
    return one;
}

static void expose(bool test)
{
    MPI_Group group = group_of_other();
    int flag = 0;
    MPI_Win_post(group, 0, window);
    while (test && !flag)
        MPI_Win_test(window, &flag);
    if (!test)
        MPI_Win_wait(window);
    expect_int(memory[2], other() + 9, "put into an exposed window");
    MPI_Group_free(&group);
}

static void access_other(void)
{
    MPI_Group group = group_of_other();
    int mine = me + 9;
    MPI_Win_start(group, 0, window);
    MPI_Put(&mine, 1, MPI_INT, other_of_two(), 2, 1, MPI_INT, window);
    MPI_Win_complete(window);
    MPI_Group_free(&group);
}

static void call_post(void)
{
    if (me == waiter)
        expose(false);
    else
        access_other();
}

static void call_start(void)
{
    if (me == waiter)
        access_other();
    else
        expose(false);
}

static void call_test(void)
{
    if (me == waiter)
        expose(true);
    else
        access_other();
}

struct call {
    const char *name;
    void (*make)(void);
    bool before; /* needs a window made before */
};

static const struct call calls[] = {
    {"create", call_create, false},      {"allocate", call_allocate, false},
    {"fence", put_between_fences, true}, {"lock", call_lock, true},
    {"lock_all", call_lock_all, true},   {"post", call_post, true},
    {"start", call_start, true},         {"test", call_test, true},
};

/* The window, if one is to be made before, and the lock, if one is to be held. */
static void prepare(const struct call *call)
{
    int token = 0, one = 1;
    if (two == MPI_COMM_NULL || !call->before)
        return;
    MPI_Win_allocate(16, sizeof(int), MPI_INFO_NULL, two, &memory, &window);
    memset(memory, 0, 16);
    MPI_Barrier(two);
    if (call->make != call_lock)
        return;
    if (me == partner) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window);
        MPI_Win_flush(0, window); /* it is held now */
    }
    MPI_Sendrecv(&token, 1, MPI_INT, other_of_two(), TAG, &token, 1, MPI_INT, other_of_two(), TAG,
                 two, MPI_STATUS_IGNORE);
}

static void clear_away(const struct call *call)
{
    if (two == MPI_COMM_NULL)
        return;
    MPI_Barrier(two);
    if (call->before) {
        int rank;
        MPI_Comm_rank(two, &rank);
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
        if (rank == 0 && call->make == call_lock)
            expect_int(memory[0], 2, "counted under locks");
        MPI_Win_unlock(rank, window);
        MPI_Win_free(&window);
    }
    MPI_Comm_free(&two);
}

static void send_extra(const char *extra, const unsigned char *bytes, int n)
{
    if (strcmp(extra, "ssend") == 0)
        MPI_Ssend(bytes, n, MPI_BYTE, waiter, TAG + 1, MPI_COMM_WORLD);
    else if (n > 0)
        MPI_Send(bytes, n, MPI_BYTE, waiter, TAG + 1, MPI_COMM_WORLD);
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
    MPI_Comm_split(MPI_COMM_WORLD, in ? 0 : MPI_UNDEFINED, me, &two);
    prepare(call);
    MPI_Barrier(MPI_COMM_WORLD);
    batch_begin(&batch, MPI_COMM_WORLD, k);
    if (me == waiter && n > 0)
        MPI_Irecv(bytes, n, MPI_BYTE, partner, TAG + 1, MPI_COMM_WORLD, &receive);
    if (me == partner) {
        fill(bytes, (size_t)n, k);
        send_extra(extra, bytes, n);
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
    clear_away(call);
}

int main(int argc, char **argv)
{
    const char *extra = argc > 2 ? argv[2] : "none";
    int rounds = argc > 3 ? atoi(argv[3]) : 24;
    promise_start(&argc, &argv);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0] && argc > 1; i++) {
        if (strcmp(calls[i].name, argv[1]) != 0)
            continue;
        warm_up(MPI_COMM_WORLD);
        for (int k = 0; k < rounds; k++)
            play(&calls[i], k, extra);
        say("%s %s, %d rounds\n", argv[1], extra, rounds);
        return promise_finish();
    }
    say("no such call\n");
    MPI_Finalize();
    return 2;
}
