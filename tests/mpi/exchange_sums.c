/*
 * Sums of floating-point numbers between the exchanges of the program `exchange`. Their bits depend
 * on the order in which MPI adds, so they tell whether it is MPI's own algorithm that has added.
 */
#include "exchange.h"

#include <stdlib.h>

enum { ALLREDUCE, REDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN, N_KINDS };

/* Numbers of very different size; they hang on what the rank has received. */
static void fill(uint64_t key, int n, double numbers[])
{
    for (int k = 0; k < n; k++) {
        uint64_t bits = test_key(key, k);
        double number = (double)(bits >> 20) / 1e12 - 8.0;
        numbers[k] = bits % 7 == 0 ? number * 1e12 : number;
    }
}

/* As many numbers for every rank but for the first ones. */
static int *shares(int n, int n_ranks)
{
    int *counts = test_alloc((size_t)n_ranks * sizeof *counts);
    for (int i = 0; i < n_ranks; i++)
        counts[i] = n / n_ranks + (i < n % n_ranks);
    return counts;
}

/* Returns how many numbers of `sums` are defined on this rank. */
static int add_up(int kind, int root, int n, const double *mine, double *sums, MPI_Comm comm)
{
    int rank, n_ranks, n_sums = n, *counts;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &n_ranks);
    switch (kind) {
    case ALLREDUCE:
        MPI_Allreduce(mine, sums, n, MPI_DOUBLE, MPI_SUM, comm);
        break;
    case REDUCE:
        MPI_Reduce(mine, sums, n, MPI_DOUBLE, MPI_SUM, root % n_ranks, comm);
        n_sums = rank == root % n_ranks ? n : 0;
        break;
    case REDUCE_SCATTER:
        counts = shares(n, n_ranks);
        MPI_Reduce_scatter(mine, sums, counts, MPI_DOUBLE, MPI_SUM, comm);
        n_sums = counts[rank];
        free(counts);
        break;
    case REDUCE_SCATTER_BLOCK:
        n_sums = n / n_ranks;
        MPI_Reduce_scatter_block(mine, sums, n_sums, MPI_DOUBLE, MPI_SUM, comm);
        break;
    case SCAN:
        MPI_Scan(mine, sums, n, MPI_DOUBLE, MPI_SUM, comm);
        break;
    case EXSCAN:
        MPI_Exscan(mine, sums, n, MPI_DOUBLE, MPI_SUM, comm);
        n_sums = rank > 0 ? n : 0;
        break;
    }
    return n_sums;
}

uint64_t exchange_sums(MPI_Comm comm, int iteration, uint64_t hash)
{
    const int counts[] = {1, 40, 2500}; /* MPICH's algorithms depend on it */
    uint64_t key = hash;

    for (int i = 0; i < 3; i++) {
        int n = counts[i];
        double *mine = test_alloc((size_t)n * sizeof *mine);
        double *sums = test_alloc((size_t)n * sizeof *sums);
        fill(test_key(key, i), n, mine);
        int n_sums = add_up((iteration + i) % N_KINDS, iteration, n, mine, sums, comm);
        hash = test_hash(hash, sums, (size_t)n_sums * sizeof *sums);
        free(mine);
        free(sums);
    }
    MPI_Barrier(comm);
    return hash;
}

/* Commutative, on int. */
static void add_squares(void *in, void *inout, int *n, MPI_Datatype *type)
{
    const int *a = in;
    int *b = inout;
    (void)type;
    for (int k = 0; k < *n; k++)
        b[k] = (int)((unsigned)a[k] + (unsigned)b[k]);
}

struct place {
    double value;
    int rank;
};

static uint64_t reduce_integers(MPI_Comm comm, uint64_t key, int rank, MPI_Op op, bool in_place)
{
    int mine[5], result[5];
    for (int k = 0; k < 5; k++)
        mine[k] = result[k] = (int)(test_key(test_key(key, rank), k) % 100003);
    if (in_place)
        MPI_Allreduce(MPI_IN_PLACE, result, 5, MPI_INT, op, comm);
    else
        MPI_Allreduce_c(mine, result, 5, MPI_INT, op, comm);
    return test_hash(key, result, sizeof result);
}

static uint64_t reduce_doubles(MPI_Comm comm, uint64_t key, int rank, int n)
{
    double mine[40], result[40];
    fill(test_key(key, rank), n, mine);
    MPI_Allreduce(mine, result, n, MPI_DOUBLE, MPI_SUM, comm);
    return test_hash(key, result, (size_t)n * sizeof *result);
}

static uint64_t reduce_places(MPI_Comm comm, uint64_t key, int rank)
{
    struct place mine = {(double)(test_key(key, rank) % 5), rank}, result = mine;
    MPI_Allreduce(&mine, &result, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
    return test_hash(key, &result.rank, sizeof result.rank);
}

static uint64_t reduce_by_function(MPI_Comm comm, uint64_t key, int rank)
{
    MPI_Op op;
    MPI_Op_create(add_squares, 1, &op);
    uint64_t hash = reduce_integers(comm, key, rank, op, false);
    MPI_Op_free(&op);
    return hash;
}

uint64_t exchange_reduction(MPI_Comm comm, uint64_t key)
{
    int rank;

    MPI_Comm_rank(comm, &rank);
    switch (key % 8) {
    case 0:
        return reduce_integers(comm, key, rank, MPI_MAX, true);
    case 1:
        return reduce_integers(comm, key, rank, MPI_SUM, false);
    case 2:
        return reduce_integers(comm, key, rank, MPI_BXOR, false);
    case 3:
        return reduce_places(comm, key, rank);
    case 4:
        return reduce_by_function(comm, key, rank);
    case 5:
        return reduce_doubles(comm, key, rank, 40);
    default:
        return reduce_doubles(comm, key, rank, 2);
    }
}
