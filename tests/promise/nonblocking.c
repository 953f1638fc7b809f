/*
 * Nonblocking collective calls under way while a rank waits in another call of MPI, or out of band.
 * They were made so often before that a library carries them. MPI's progress rule lets that end:
 * the partner of the rank that waits starts its part of the collective only afterwards.
 *
 *   nonblocking KIND CALL [ROUNDS]
 *
 * KIND: sum (MPI_Iallreduce of ints), sumf (of doubles), vector (MPI_Ineighbor_alltoallv), equal
 * (MPI_Ineighbor_alltoall), both (vector and sumf). CALL, what the rank waits in:
 *   group    MPI_Comm_create_group of two        fence, lock   windows
 *   recv     MPI_Recv of a message               ssend         MPI_Ssend to the partner
 *   flag     out of band: memory                 file          out of band: a file
 *   done     out of band, until another rank has completed the collective (vector and equal: no
 *            more than the start of the waiting one's part is needed by MPI alone)
 *   apart    as done, with a rank that needs nothing from the waiting one
 * The graph is a ring with some chords: rank r sends to r + 1, r + 2 and r + n / 2.
 */
#include "promise.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WARM      40
#define TAG       6
#define MOST      4 /* ints to a neighbour */
#define N_SUM     5
#define MAX_NEAR  3
#define FILE_NAME "promise.mark"
#define COMM      MPI_COMM_WORLD

static MPI_Comm graph;
static int near_out[MAX_NEAR], near_in[MAX_NEAR], n_near;
static int counts_out[MAX_NEAR], counts_in[MAX_NEAR], starts[MAX_NEAR];
static int sent[MAX_NEAR * MOST], received[MAX_NEAR * MOST];
static int ints[N_SUM], int_sums[N_SUM];
static double doubles[N_SUM], double_sums[N_SUM];
static const char *kind, *how;
static int waiter, partner, number; /* of this round */

static bool is(const char *name)
{
    return strcmp(kind, name) == 0;
}

static bool called(const char *name)
{
    return strcmp(how, name) == 0;
}

static int count_of(int source, int target)
{
    return is("equal") ? 2 : 1 + (source + 2 * target) % MOST;
}

static int value_of(int source, int target, int i)
{
    return source * 10000 + target * 100 + number * 7 + i;
}

static void make_graph(void)
{
    int steps[MAX_NEAR] = {1, 2, n_ranks / 2};
    for (int i = 0; i < MAX_NEAR; i++) {
        bool known = steps[i] % n_ranks == 0;
        for (int k = 0; k < i; k++)
            known = known || steps[k] % n_ranks == steps[i] % n_ranks;
        if (known)
            continue;
        near_out[n_near] = beside(steps[i]);
        near_in[n_near] = beside(-steps[i]);
        starts[n_near] = n_near * MOST;
        counts_out[n_near] = count_of(me, near_out[n_near]);
        counts_in[n_near] = count_of(near_in[n_near], me);
        n_near++;
    }
    MPI_Dist_graph_create_adjacent(COMM, n_near, near_in, MPI_UNWEIGHTED, n_near, near_out,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
}

static int start(MPI_Request *requests)
{
    int n = 0;
    memset(received, 0, sizeof received);
    for (int i = 0; i < n_near; i++)
        for (int k = 0; k < counts_out[i]; k++)
            sent[is("equal") ? 2 * i + k : starts[i] + k] = value_of(me, near_out[i], k);
    for (int i = 0; i < N_SUM; i++) {
        ints[i] = me + i + number;
        doubles[i] = me * 0.5 + i + number;
        int_sums[i] = -1;
        double_sums[i] = -1;
    }
    if (is("equal"))
        MPI_Ineighbor_alltoall(sent, 2, MPI_INT, received, 2, MPI_INT, graph, &requests[n++]);
    if (is("vector") || is("both"))
        MPI_Ineighbor_alltoallv(sent, counts_out, starts, MPI_INT, received, counts_in, starts,
                                MPI_INT, graph, &requests[n++]);
    if (is("sum"))
        MPI_Iallreduce(ints, int_sums, N_SUM, MPI_INT, MPI_SUM, graph, &requests[n++]);
    if (is("sumf") || is("both"))
        MPI_Iallreduce(doubles, double_sums, N_SUM, MPI_DOUBLE, MPI_SUM, graph, &requests[n++]);
    return n;
}

static void complete(MPI_Request *requests, int n)
{
    int ranks = n_ranks * (n_ranks - 1) / 2;
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n_near && !is("sum") && !is("sumf"); i++)
        for (int k = 0; k < counts_in[i]; k++)
            expect_int(received[is("equal") ? 2 * i + k : starts[i] + k],
                       value_of(near_in[i], me, k), "from a neighbour");
    for (int i = 0; i < N_SUM && is("sum"); i++)
        expect_int(int_sums[i], ranks + n_ranks * (i + number), "sum");
    for (int i = 0; i < N_SUM && (is("sumf") || is("both")); i++)
        expect_int((int)(2 * double_sums[i]), ranks + 2 * n_ranks * (i + number), "double sum");
}

static void call_group(void)
{
    MPI_Group all, pair;
    MPI_Comm comm;
    int members[2] = {waiter, partner};
    MPI_Comm_group(COMM, &all);
    MPI_Group_incl(all, 2, members, &pair);
    MPI_Comm_create_group(COMM, pair, 3, &comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&pair);
    MPI_Group_free(&all);
}

static MPI_Win window;
static int shared_int;

static void call_lock(void)
{
    int token = 1, value = 100 + number;
    if (me == partner) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
        MPI_Send(&token, 1, MPI_INT, waiter, TAG, COMM);
        nap(0.002); /* the other rank asks for the lock */
        MPI_Win_unlock(0, window);
    } else {
        MPI_Recv(&token, 1, MPI_INT, partner, TAG, COMM, MPI_STATUS_IGNORE);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
        MPI_Win_unlock(0, window);
        expect_int(value, 100 + number, "got under the lock");
    }
}

static void call_file(void)
{
    struct stat found;
    char name[64] = FILE_NAME;
    name[sizeof FILE_NAME - 1] = (char)('A' + number % 26);
    if (me == partner) {
        close(open(name, O_CREAT | O_WRONLY, 0600));
    } else {
        while (stat(name, &found) != 0)
            nap(0.0002);
        unlink(name);
    }
}

static void call(void)
{
    int token = 3;
    if (called("group"))
        call_group();
    if (called("fence"))
        MPI_Win_fence(0, window);
    if (called("lock"))
        call_lock();
    if (called("file"))
        call_file();
    if (called("recv") && me == waiter)
        MPI_Recv(&token, 1, MPI_INT, partner, TAG, COMM, MPI_STATUS_IGNORE);
    if (called("recv") && me == partner)
        MPI_Send(&token, 1, MPI_INT, waiter, TAG, COMM);
    if (called("ssend") && me == waiter)
        MPI_Ssend(&token, 1, MPI_INT, partner, TAG, COMM);
    if (called("ssend") && me == partner)
        MPI_Recv(&token, 1, MPI_INT, waiter, TAG, COMM, MPI_STATUS_IGNORE);
    if (called("flag") && me == waiter)
        flag_await(number, 1);
    if (called("flag") && me == partner)
        flag_set(number, 1);
}

/* The rank whose completion the waiting one waits for: of all that there are, in turn. */
static int observed(void)
{
    int others[MAX_RANKS], n = 0;
    for (int i = 1; i < n_ranks && called("apart"); i++)
        if (i != 1 && i != 2 && i != n_ranks / 2)
            others[n++] = (waiter + i) % n_ranks;
    return n ? others[number / n_ranks % n] : partner;
}

static void play(int round)
{
    MPI_Request requests[2];
    MPI_Comm two = MPI_COMM_NULL;
    int n = 0;
    number = round;
    waiter = round % n_ranks;
    partner = (waiter + 1 + round / n_ranks % (n_ranks - 1)) % n_ranks;
    bool in = me == waiter || me == partner, windows = called("fence") || called("lock");
    if (windows)
        MPI_Comm_split(COMM, in ? 0 : MPI_UNDEFINED, me, &two);
    if (windows && in)
        MPI_Win_create(&shared_int, sizeof(int), 1, MPI_INFO_NULL, two, &window);
    if (called("fence") && in)
        MPI_Win_fence(0, window);
    MPI_Barrier(COMM);
    if (called("done") || called("apart")) {
        int rank = observed();
        n = start(requests);
        if (me == waiter && rank != me)
            flag_await(round, 1);
        complete(requests, n);
        if (me == rank)
            flag_set(round, 1);
    } else {
        if (me != partner)
            n = start(requests);
        if (in)
            call();
        if (me == partner)
            n = start(requests);
        complete(requests, n);
    }
    if (windows && in) {
        MPI_Win_free(&window);
        MPI_Comm_free(&two);
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 3 ? atoi(argv[3]) : 20;
    kind = argc > 1 ? argv[1] : "vector";
    how = argc > 2 ? argv[2] : "group";
    promise_start(&argc, &argv);
    make_graph();
    for (number = 0; number < WARM; number++) {
        int one = 1, sum = 0;
        MPI_Request requests[2];
        int n = start(requests);
        complete(requests, n);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, COMM);
        expect_int(sum, n_ranks, "sum of the warm-up");
    }
    flags_open();
    for (int round = 0; round < rounds; round++)
        play(round);
    MPI_Comm_free(&graph);
    say("%s under way in %s, %d rounds\n", kind, how, rounds);
    return promise_finish();
}
