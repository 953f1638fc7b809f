/*
 * In the manner of graph matching codes: the neighbors first tell each other by
 * MPI_Neighbor_alltoall how much they will send, then send it by MPI_Neighbor_alltoallv. The counts
 * change in every iteration; receive buffers are made to measure.
 *
 *   twosizes [--iterations N] [--max-count C]
 */
#include "common.h"

#include <stdlib.h>

#define STRIDES 3 /* neighbors at distances 1, 2, 4 on both sides, as far as they differ */

struct lists {
    int n;
    int peers[2 * STRIDES];
    int send_counts[2 * STRIDES], send_displs[2 * STRIDES];
    int recv_counts[2 * STRIDES], recv_displs[2 * STRIDES];
};

static bool contains(const struct lists *lists, int peer)
{
    for (int i = 0; i < lists->n; i++) {
        if (lists->peers[i] == peer)
            return true;
    }
    return false;
}

static MPI_Comm create(struct lists *lists)
{
    int size = test_size(), rank = test_rank();
    MPI_Comm comm;

    lists->n = 0;
    for (int i = 0; i < 2 * STRIDES; i++) {
        int distance = 1 << (i / 2);
        int peer = (rank + (i % 2 == 0 ? distance : 8 * size - distance)) % size;
        if (!contains(lists, peer))
            lists->peers[lists->n++] = peer;
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, lists->n, lists->peers, MPI_UNWEIGHTED, lists->n,
                                   lists->peers, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    return comm;
}

/* How much `from` sends to `to`: often nothing, seldom much. */
static int count_of(int iteration, int from, int to, int max_count)
{
    struct test_rng rng = {test_key(test_key(iteration, from), to)};

    if (test_chance(&rng, 3))
        return 0;
    return test_below(&rng, test_chance(&rng, 20) ? 50 * max_count : max_count);
}

static int add_up(int n, const int counts[], int displs[])
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        displs[i] = sum;
        sum += counts[i];
    }
    return sum;
}

/* Messages of 64-bit words made from (iteration, from, to, place). */
static int64_t word(int iteration, int from, int to, int place)
{
    uint64_t key = test_key(test_key(test_key(iteration, from), to), place);
    return (int64_t)(key >> 1);
}

static void check(const struct lists *lists, int iteration, int max_count, const int64_t *words)
{
    for (int i = 0; i < lists->n; i++) {
        int from = lists->peers[i];
        if (lists->recv_counts[i] != count_of(iteration, from, test_rank(), max_count))
            test_fail("iteration %d: wrong count from %d", iteration, from);
        for (int j = 0; j < lists->recv_counts[i]; j++) {
            if (words[lists->recv_displs[i] + j] != word(iteration, from, test_rank(), j)) {
                test_fail("iteration %d: wrong word %d from %d", iteration, j, from);
                break;
            }
        }
    }
}

static uint64_t iterate(struct lists *lists, MPI_Comm comm, int iteration, int max_count)
{
    int64_t *send, *recv;
    int n_send, n_recv;
    uint64_t hash;

    for (int i = 0; i < lists->n; i++)
        lists->send_counts[i] = count_of(iteration, test_rank(), lists->peers[i], max_count);
    MPI_Neighbor_alltoall(lists->send_counts, 1, MPI_INT, lists->recv_counts, 1, MPI_INT, comm);
    n_send = add_up(lists->n, lists->send_counts, lists->send_displs);
    n_recv = add_up(lists->n, lists->recv_counts, lists->recv_displs);
    send = test_alloc((size_t)n_send * sizeof *send);
    recv = test_alloc((size_t)n_recv * sizeof *recv);
    for (int i = 0; i < lists->n; i++) {
        for (int j = 0; j < lists->send_counts[i]; j++)
            send[lists->send_displs[i] + j] = word(iteration, test_rank(), lists->peers[i], j);
    }
    MPI_Neighbor_alltoallv(send, lists->send_counts, lists->send_displs, MPI_INT64_T, recv,
                           lists->recv_counts, lists->recv_displs, MPI_INT64_T, comm);
    check(lists, iteration, max_count, recv);
    hash = test_hash(TEST_HASH_START, recv, (size_t)n_recv * sizeof *recv);
    free(send);
    free(recv);
    return hash;
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--iterations", "--max-count", NULL};
    struct lists lists;
    uint64_t *mine, *hashes;
    MPI_Comm comm;
    int n, max_count;

    test_start(&argc, &argv, known);
    n = (int)test_option(argc, argv, "--iterations", 60);
    max_count = (int)test_option(argc, argv, "--max-count", 100);
    mine = test_alloc((size_t)n * sizeof *mine);
    comm = create(&lists);
    for (int i = 0; i < n; i++)
        mine[i] = iterate(&lists, comm, i, max_count);
    hashes = test_hash_ranks(n, mine);
    for (int i = 0; i < n; i++)
        test_print("iteration %d %016llx\n", i, (unsigned long long)hashes[i]);
    free(mine);
    free(hashes);
    MPI_Comm_free(&comm);
    return test_finish();
}
