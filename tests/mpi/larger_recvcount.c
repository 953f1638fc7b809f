/*
 * Sloppy, but common and accepted by MPI implementations: receive counts larger than what is sent.
 * What arrives must be the prefix of its block, and the rest of the block stay as it was.
 *
 *   larger_recvcount [--calls N]
 *
 * The same graph is used with sizes that change: all equal to the receive counts, a few bytes where
 * more than 100 KB are expected, nothing at all, single large messages.
 */
#include "bench/alone.h"
#include "common.h"

#include <stdlib.h>

#define MAX_DEGREE 4
#define ROOM       130000 /* bytes of a receive block at most */

enum op { OP_ALLTOALLV, OP_ALLTOALLW, OP_ALLTOALL, OP_ALLGATHERV, OP_ALLGATHER, N_OPS };

struct blocks {
    int n;
    int peers[MAX_DEGREE];
    int counts[MAX_DEGREE], displs[MAX_DEGREE];
    MPI_Aint byte_displs[MAX_DEGREE];
    MPI_Datatype types[MAX_DEGREE];
    int positions[MAX_DEGREE];          /* of the block in the sender's list, as MPI pairs them */
    int alltoall_positions[MAX_DEGREE]; /* the same for MPI_Neighbor_alltoall */
};

/* Of parallel edges MPI decides which with which, not alike in all calls and versions: by itself,
 * without the library, it tells here. */
static void learn_positions(struct blocks *recv, MPI_Comm comm)
{
    static const int ones[MAX_DEGREE] = {1, 1, 1, 1}, mine[MAX_DEGREE] = {0, 1, 2, 3};

    ALONE(Neighbor_alltoallv)
    (mine, ones, mine, MPI_INT, recv->positions, ones, mine, MPI_INT, comm);
    ALONE(Neighbor_alltoall)(mine, 1, MPI_INT, recv->alltoall_positions, 1, MPI_INT, comm);
}

/* Ranks at distances 1, 2, 3 and the rank itself. */
static MPI_Comm create(struct blocks *send, struct blocks *recv)
{
    int size = test_size(), rank = test_rank();
    MPI_Comm comm;

    send->n = recv->n = MAX_DEGREE;
    for (int i = 0; i < MAX_DEGREE; i++) {
        int distance = i % size;
        send->peers[i] = (rank + distance) % size;
        recv->peers[i] = (rank + size - distance) % size;
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, recv->n, recv->peers, MPI_UNWEIGHTED, send->n,
                                   send->peers, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    learn_positions(recv, comm);
    return comm;
}

/* `position` is that in the list of the sender. */
static int sent_bytes(int call, enum op op, int from, int position)
{
    bool common = op == OP_ALLGATHER || op == OP_ALLTOALL;
    bool gather = op == OP_ALLGATHER || op == OP_ALLGATHERV;
    uint64_t key = test_key(call, common ? -1 : from);
    struct test_rng rng = {common || gather ? key : test_key(key, position)};
    const int sizes[] = {0, 8, 8, 24, 100, 1000, 9000, 70000, 120000};

    return sizes[test_below(&rng, (int)(sizeof sizes / sizeof sizes[0]))];
}

/* Twice what is sent, all the room, or exactly what is sent; one value per call or per block. */
static int expected_bytes(int call, enum op op, int position, int sent)
{
    bool common = op == OP_ALLGATHER || op == OP_ALLTOALL;
    struct test_rng rng = {test_key(test_key(call, 7), common ? -1 : 10 * test_rank() + position)};
    int choice = test_below(&rng, 3);

    if (choice == 0)
        return sent;
    return choice == 1 && 2 * sent < ROOM ? 2 * sent : ROOM;
}

static void set_block(struct blocks *blocks, int i, int count, bool packed)
{
    int place = i > 0 && packed ? blocks->displs[i - 1] + blocks->counts[i - 1] : i * ROOM;

    blocks->counts[i] = count;
    blocks->displs[i] = place;
    blocks->byte_displs[i] = place;
    blocks->types[i] = MPI_BYTE;
}

static uint64_t content_key(int call, enum op op, int from, int position)
{
    bool gather = op == OP_ALLGATHER || op == OP_ALLGATHERV;
    return test_key(test_key(call, from), gather ? -1 : position);
}

static void make_send(struct blocks *send, int call, enum op op, struct test_area *area)
{
    for (int i = 0; i < send->n; i++) {
        set_block(send, i, sent_bytes(call, op, test_rank(), i), op == OP_ALLTOALL);
        test_stream(content_key(call, op, test_rank(), i), 0, (size_t)send->counts[i],
                    area->data + send->displs[i]);
    }
}

static void make_recv(struct blocks *recv, int call, enum op op, struct test_area *expected)
{
    for (int i = 0; i < recv->n; i++) {
        int from = op == OP_ALLTOALL ? recv->alltoall_positions[i] : recv->positions[i];
        int n_sent = sent_bytes(call, op, recv->peers[i], from);
        set_block(recv, i, expected_bytes(call, op, i, n_sent),
                  op == OP_ALLTOALL || op == OP_ALLGATHER);
        test_stream(content_key(call, op, recv->peers[i], from), 0, (size_t)n_sent,
                    expected->data + recv->displs[i]);
    }
}

static void call_mpi(enum op op, const struct blocks *send, const void *out,
                     const struct blocks *recv, void *in, MPI_Comm comm)
{
    if (op == OP_ALLTOALLV)
        MPI_Neighbor_alltoallv(out, send->counts, send->displs, MPI_BYTE, in, recv->counts,
                               recv->displs, MPI_BYTE, comm);
    else if (op == OP_ALLTOALLW)
        MPI_Neighbor_alltoallw(out, send->counts, send->byte_displs, send->types, in, recv->counts,
                               recv->byte_displs, recv->types, comm);
    else if (op == OP_ALLTOALL)
        MPI_Neighbor_alltoall(out, send->counts[0], MPI_BYTE, in, recv->counts[0], MPI_BYTE, comm);
    else if (op == OP_ALLGATHERV)
        MPI_Neighbor_allgatherv(out, send->counts[0], MPI_BYTE, in, recv->counts, recv->displs,
                                MPI_BYTE, comm);
    else
        MPI_Neighbor_allgather(out, send->counts[0], MPI_BYTE, in, recv->counts[0], MPI_BYTE, comm);
}

static uint64_t one_call(struct blocks *send, struct blocks *recv, int call, MPI_Comm comm)
{
    enum op op = (enum op)(call / 4 % N_OPS);
    struct test_area out = test_area_make((size_t)MAX_DEGREE * ROOM, 1);
    struct test_area in = test_area_make((size_t)MAX_DEGREE * ROOM, 2);
    struct test_area expected = test_area_make((size_t)MAX_DEGREE * ROOM, 2);
    ptrdiff_t at;
    uint64_t hash;

    make_send(send, call, op, &out);
    make_recv(recv, call, op, &expected);
    call_mpi(op, send, out.data, recv, in.data, comm);
    at = test_area_differ(&in, &expected);
    if (at != PTRDIFF_MAX)
        test_fail("call %d op %d: wrong at %td", call, (int)op, at);
    hash = test_hash(TEST_HASH_START, in.data, in.n);
    test_area_free(&out);
    test_area_free(&in);
    test_area_free(&expected);
    return hash;
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--calls", NULL};
    struct blocks send, recv;
    uint64_t *mine, *hashes;
    MPI_Comm comm;
    int n;

    test_start(&argc, &argv, known);
    n = (int)test_option(argc, argv, "--calls", 40);
    mine = test_alloc((size_t)n * sizeof *mine);
    comm = create(&send, &recv);
    for (int i = 0; i < n; i++)
        mine[i] = one_call(&send, &recv, i, comm);
    hashes = test_hash_ranks(n, mine);
    for (int i = 0; i < n; i++)
        test_print("call %d %016llx\n", i, (unsigned long long)hashes[i]);
    free(mine);
    free(hashes);
    MPI_Comm_free(&comm);
    return test_finish();
}
