/*
 * Ranks that are far apart: every other rank sends to the next one, in a graph with edges in this
 * direction only, and is ahead of it as far as MPI lets it. Payloads change from call to call, and
 * some are much longer than any before.
 *
 *   ahead [--calls N] [--nonblocking | --behind] [--pause US] [--killed R]
 *
 * Blocking, the readers compute (--pause, in microseconds) before some calls, and so do the writers
 * before others; in between all ranks meet. Nonblocking, the readers start AHEAD calls at a time,
 * then wait for a message that their writer sends when it has completed them, one after the other;
 * then all meet. Behind, the writers first start more messages than MPI takes at once, which the
 * readers receive before they call: MPI must go on at a writer that waits in a lane for its reader,
 * while a nonblocking call of all is pending. Rank R is killed in the middle.
 */
#include "common.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { AHEAD = 7, MOST = 60000, N_BEHIND = 300, BEHIND_BYTES = 4000 };

struct call {
    int n; /* bytes */
    int displ;
    unsigned char bytes[MOST];
};

static MPI_Comm create(void)
{
    int rank = test_rank(), is_writer = rank % 2 == 0 && rank + 1 < test_size();
    int next = rank + 1, previous = rank - 1;
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank % 2, &previous, MPI_UNWEIGHTED, is_writer,
                                   &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    return comm;
}

/* Bytes of a call from a rank: mostly few, now and then many. */
static int bytes_of(int call, int from)
{
    struct test_rng rng = {test_key(call, from)};
    return test_below(&rng, call > 10 && test_chance(&rng, 9) ? MOST : 100);
}

static void fill(struct call *c, int call)
{
    c->n = test_rank() % 2 == 0 ? bytes_of(call, test_rank()) : bytes_of(call, test_rank() - 1);
    c->displ = 0;
    memset(c->bytes, 0xee, sizeof c->bytes);
    if (test_rank() % 2 == 0)
        test_stream(test_key(call, test_rank()), 0, (size_t)c->n, c->bytes);
}

static void check(const struct call *c, int call)
{
    static unsigned char expected[MOST];
    if (test_rank() % 2 == 0)
        return;
    memset(expected, 0xee, sizeof expected);
    test_stream(test_key(call, test_rank() - 1), 0, (size_t)c->n, expected);
    if (memcmp(c->bytes, expected, MOST) != 0)
        test_fail("call %d: wrong bytes", call);
}

static void start(struct call *c, MPI_Comm comm, bool blocking, MPI_Request *request)
{
    if (blocking)
        MPI_Neighbor_alltoallv(c->bytes, &c->n, &c->displ, MPI_BYTE, c->bytes, &c->n, &c->displ,
                               MPI_BYTE, comm);
    else
        MPI_Ineighbor_alltoallv(c->bytes, &c->n, &c->displ, MPI_BYTE, c->bytes, &c->n, &c->displ,
                                MPI_BYTE, comm, request);
}

/* Outside MPI. */
static void compute(int us)
{
    for (double end = MPI_Wtime() + 1e-6 * us; MPI_Wtime() < end;)
        ;
}

static void run_blocking(MPI_Comm comm, struct call *c, int n_calls, int pause_us, int killed)
{
    for (int call = 0; call < n_calls; call++) {
        bool is_reader = test_rank() % 2;
        if (call % 40 == (is_reader ? 15 : 30))
            compute(pause_us);
        if (call % 50 == 49)
            MPI_Barrier(MPI_COMM_WORLD);
        if (call == n_calls / 2 && test_rank() == killed)
            raise(SIGKILL);
        fill(c, call);
        start(c, comm, true, NULL);
        check(c, call);
    }
}

static void run_nonblocking(MPI_Comm comm, struct call *calls, int n_calls)
{
    int rank = test_rank();
    bool is_writer = rank % 2 == 0 && rank + 1 < test_size();
    for (int first = 0; first < n_calls; first += AHEAD) {
        MPI_Request requests[AHEAD];
        for (int k = 0; k < AHEAD; k++) {
            fill(&calls[k], first + k);
            start(&calls[k], comm, false, &requests[k]);
            if (is_writer)
                MPI_Wait(&requests[k], MPI_STATUS_IGNORE);
        }
        if (is_writer)
            MPI_Send(&first, 1, MPI_INT, rank + 1, 3, MPI_COMM_WORLD);
        int told = first;
        if (rank % 2)
            MPI_Recv(&told, 1, MPI_INT, rank - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (told != first)
            test_fail("told %d at %d", told, first);
        MPI_Waitall(AHEAD, requests, MPI_STATUSES_IGNORE);
        for (int k = 0; k < AHEAD; k++)
            check(&calls[k], first + k);
        MPI_Barrier(comm);
    }
}

/* Both ends of an edge, so that writers wait for readers. */
static MPI_Comm create_pairs(void)
{
    int rank = test_rank(), other = rank ^ 1, n = other < test_size();
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, n, &other, MPI_UNWEIGHTED, n, &other,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    return comm;
}

/* The messages of a call, which the writer starts and the reader receives. */
static void move_messages(int call, int other, MPI_Request *requests)
{
    static unsigned char messages[N_BEHIND][BEHIND_BYTES], expected[BEHIND_BYTES];
    for (int k = 0; k < N_BEHIND; k++) {
        test_stream(test_key(call, k), 0, BEHIND_BYTES, expected);
        if (test_rank() % 2 == 0) {
            memcpy(messages[k], expected, BEHIND_BYTES);
            MPI_Isend(messages[k], BEHIND_BYTES, MPI_BYTE, other, k, MPI_COMM_WORLD, &requests[k]);
            continue;
        }
        memset(messages[k], 0, BEHIND_BYTES);
        MPI_Recv(messages[k], BEHIND_BYTES, MPI_BYTE, other, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (memcmp(messages[k], expected, BEHIND_BYTES) != 0)
            test_fail("call %d: wrong bytes of message %d", call, k);
    }
}

/* In turn the writer waits in a blocking call while another one is pending, and for a pending one.
 */
static void run_behind(int n_calls)
{
    int rank = test_rank(), other = rank ^ 1, has_other = other < test_size();
    MPI_Comm blocking = create_pairs(), pending = create_pairs();
    for (int call = 0; call < n_calls; call++) {
        MPI_Request requests[N_BEHIND], last;
        int is_first = call % 2 == 0 || rank % 2 == 0;
        int mine = rank + call, theirs = -1, now = 1000 * call + rank, got = -1;
        if (is_first)
            MPI_Ineighbor_allgather(&mine, 1, MPI_INT, &theirs, 1, MPI_INT, pending, &last);
        if (has_other)
            move_messages(call, other, requests);
        if (!is_first)
            MPI_Ineighbor_allgather(&mine, 1, MPI_INT, &theirs, 1, MPI_INT, pending, &last);
        if (call % 2)
            MPI_Wait(&last, MPI_STATUS_IGNORE);
        MPI_Neighbor_allgather(&now, 1, MPI_INT, &got, 1, MPI_INT, blocking);
        if (call % 2 == 0)
            MPI_Wait(&last, MPI_STATUS_IGNORE);
        if (rank % 2 == 0 && has_other)
            MPI_Waitall(N_BEHIND, requests, MPI_STATUSES_IGNORE);
        if (has_other && (got != 1000 * call + other || theirs != other + call))
            test_fail("call %d: got %d and %d", call, got, theirs);
    }
    MPI_Comm_free(&blocking);
    MPI_Comm_free(&pending);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--calls", "--nonblocking", "--behind",
                                        "--pause", "--killed",      NULL};
    test_start(&argc, &argv, known);
    int n_calls = (int)test_option(argc, argv, "--calls", 200);
    struct call *calls = test_alloc(AHEAD * sizeof *calls);
    MPI_Comm comm = create();
    if (test_flag(argc, argv, "--behind"))
        run_behind(n_calls);
    else if (test_flag(argc, argv, "--nonblocking"))
        run_nonblocking(comm, calls, n_calls);
    else
        run_blocking(comm, calls, n_calls, (int)test_option(argc, argv, "--pause", 20000),
                     (int)test_option(argc, argv, "--killed", -1));
    MPI_Comm_free(&comm);
    free(calls);
    return test_finish();
}
