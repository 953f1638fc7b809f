/*
 * Graph communicators that come and go: created, used for four calls, freed, hundreds of times.
 *
 *   recreate [--rounds N]
 *
 * Kinds alternate; every fifth is duplicated and the parent freed before the duplicate is used.
 * After a warm-up the heap must not grow. Three communicators stay alive until MPI_Finalize.
 */
#include "common.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_GROWTH          (256L * 1024)
#define MAX_RESIDENT_GROWTH (16L * 1024 * 1024)
#define MAX_DEGREE          6
#define N_KEPT              3

static MPI_Comm create_ring(void)
{
    int size = test_size(), rank = test_rank();
    int out[3] = {(rank + 1) % size, (rank + 1) % size, (rank + 2) % size};
    int in[3] = {(rank + size - 1) % size, (rank + 2 * size - 2) % size, (rank + size - 1) % size};
    MPI_Comm comm;

    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, in, MPI_UNWEIGHTED, 3, out, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
    return comm;
}

static MPI_Comm create_cart(void)
{
    int dims[2] = {0, 0}, periods[2] = {1, 0};
    MPI_Comm comm;

    MPI_Dims_create(test_size(), 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &comm);
    return comm;
}

static MPI_Comm create_graph(void)
{
    int size = test_size();
    int *index = test_alloc((size_t)size * sizeof(int));
    int *ends = test_alloc(2 * (size_t)size * sizeof(int));
    MPI_Comm comm;

    for (int rank = 0; rank < size; rank++) {
        index[rank] = 2 * (rank + 1);
        ends[2 * rank] = (rank + 1) % size;
        ends[2 * rank + 1] = (rank + size - 1) % size;
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, index, ends, 0, &comm);
    free(index);
    free(ends);
    return comm;
}

static MPI_Comm create_sparse(void)
{
    int size = test_size(), rank = test_rank();
    int from = (rank + 1) % size, degree = 2;
    int to[2] = {(rank + 2) % size, (rank + 3) % size};
    MPI_Comm comm;

    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &from, &degree, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                          &comm);
    return comm;
}

static MPI_Comm create(int round)
{
    MPI_Comm (*const creators[])(void) = {create_ring, create_cart, create_graph, create_sparse};
    MPI_Comm comm = creators[round % 4](), twin;

    if (round % 5 != 0)
        return comm;
    MPI_Comm_dup(comm, &twin);
    MPI_Comm_free(&comm);
    return twin;
}

static int degree_of(int round)
{
    const int degrees[] = {3, 4, 2, 2};
    return degrees[round % 4];
}

/* One call; returns the sum of what came, which does not depend on the order of the neighbors. */
static long use_once(MPI_Comm comm, int degree, int round, int call)
{
    int out[MAX_DEGREE], in[MAX_DEGREE], counts[MAX_DEGREE], displs[MAX_DEGREE];
    long sum = 0;

    for (int i = 0; i < MAX_DEGREE; i++) {
        out[i] = 1000 * round + 10 * test_rank() + (call % 2 == 0 ? i : 0);
        in[i] = -1;
        counts[i] = 1;
        displs[i] = degree - 1 - i;
    }
    if (call % 2 == 0)
        MPI_Neighbor_alltoallv(out, counts, displs, MPI_INT, in, counts, displs, MPI_INT, comm);
    else
        MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, comm);
    for (int i = 0; i < MAX_DEGREE; i++) {
        if (in[i] != -1 && (i >= degree || in[i] / 1000 != round))
            test_fail("round %d call %d: value %d in place %d", round, call, in[i], i);
        sum += in[i];
    }
    return sum;
}

static uint64_t use(MPI_Comm comm, int round)
{
    uint64_t hash = TEST_HASH_START;
    for (int call = 0; call < 4; call++) {
        long sum = use_once(comm, degree_of(round), round, call);
        hash = test_hash(hash, &sum, sizeof sum);
    }
    return hash;
}

static long heap_bytes(void)
{
    return (long)mallinfo2().uordblks;
}

static long resident_bytes(void)
{
    long kib = 0;
    char line[200];
    FILE *file = fopen("/proc/self/status", "r");

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    }
    if (file != NULL)
        fclose(file);
    return 1024 * kib;
}

static uint64_t run(int n_rounds)
{
    int warm_up = n_rounds / 5;
    long heap = heap_bytes(), resident = resident_bytes();
    uint64_t hash = TEST_HASH_START;

    for (int round = 0; round < n_rounds; round++) {
        MPI_Comm comm = create(round);
        uint64_t one = use(comm, round);
        hash = test_hash(hash, &one, sizeof one);
        MPI_Comm_free(&comm);
        if (round == warm_up) {
            heap = heap_bytes();
            resident = resident_bytes();
        }
    }
    if (heap_bytes() - heap > MAX_GROWTH)
        test_fail("the heap grew by %ld bytes", heap_bytes() - heap);
    if (resident_bytes() - resident > MAX_RESIDENT_GROWTH)
        test_fail("the resident memory grew by %ld bytes", resident_bytes() - resident);
    return hash;
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--rounds", NULL};
    MPI_Comm kept[N_KEPT];
    uint64_t mine[1 + N_KEPT], *hashes;

    test_start(&argc, &argv, known);
    for (int i = 0; i < N_KEPT; i++)
        kept[i] = create(i);
    mine[0] = run((int)test_option(argc, argv, "--rounds", 1000));
    for (int i = 0; i < N_KEPT; i++)
        mine[1 + i] = use(kept[i], i);
    hashes = test_hash_ranks(1 + N_KEPT, mine);
    for (int i = 0; i <= N_KEPT; i++)
        test_print("%016llx\n", (unsigned long long)hashes[i]);
    free(hashes);
    return test_finish();
}
