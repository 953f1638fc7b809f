/*
 * Sums of floating-point numbers between the exchanges of the program `exchange`. Their bits depend
 * on the order in which MPI adds, so they tell whether it is MPI's own algorithm that has added.
 */
#include "exchange.h"

#include <stdlib.h>
#include <string.h>

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

static void fill_integers(struct reduction *r, int rank, MPI_Op op)
{
    r->op = op;
    r->type = MPI_INT;
    r->n = 5;
    r->bytes = 5 * sizeof(int);
    for (int k = 0; k < 5; k++)
        r->mine.integers[k] = (int)(test_key(test_key(r->key, rank), k) % 100003);
}

static void fill_doubles(struct reduction *r, int rank, int n)
{
    r->op = MPI_SUM;
    r->type = MPI_DOUBLE;
    r->n = n;
    r->bytes = (size_t)n * sizeof(double);
    fill(test_key(r->key, rank), n, r->mine.doubles);
}

static void fill_places(struct reduction *r, int rank)
{
    r->op = MPI_MAXLOC;
    r->type = MPI_DOUBLE_INT;
    r->n = 1;
    r->bytes = sizeof r->mine.place; /* the gap behind the rank is filled, too */
    r->mine.place.value = (double)(test_key(r->key, rank) % 5);
    r->mine.place.rank = rank;
}

static void fill_integer_places(struct reduction *r, int rank)
{
    r->op = MPI_MAXLOC;
    r->type = MPI_2INT;
    r->n = 1;
    r->bytes = 2 * sizeof(int);
    r->mine.integers[0] = (int)(test_key(r->key, rank) % 5);
    r->mine.integers[1] = rank;
}

/* The first four are exact. */
static void choose(struct reduction *r, int rank, int kind)
{
    switch (kind) {
    case 0:
        r->in_place = true;
        fill_integers(r, rank, MPI_MAX);
        break;
    case 1:
        fill_integers(r, rank, MPI_SUM);
        break;
    case 2:
        fill_integers(r, rank, MPI_BXOR);
        break;
    case 3:
        fill_integer_places(r, rank);
        break;
    case 4:
        MPI_Op_create(add_squares, 1, &r->own);
        fill_integers(r, rank, r->own);
        break;
    case 6: /* not exact: zeros of two signs are equal */
        fill_places(r, rank);
        break;
    default:
        fill_doubles(r, rank, kind == 5 ? 40 : 2);
    }
}

/* In place the vector is taken from the result's. */
void exchange_reduction_start(struct reduction *r, MPI_Comm comm, uint64_t key, bool exact,
                              bool waits)
{
    bool large = HAS_MPI4 && key & 64;
    int rank;
    const void *sent;

    MPI_Comm_rank(comm, &rank);
    memset(r, 0, sizeof *r);
    r->key = key;
    r->request = MPI_REQUEST_NULL;
    r->own = MPI_OP_NULL;
    choose(r, rank, (int)(key % (exact ? 4 : 8)));
    if (r->in_place)
        r->result = r->mine;
    sent = r->in_place ? MPI_IN_PLACE : (void *)&r->mine;
    if (waits && large)
        MPI_Allreduce_c(sent, &r->result, r->n, r->type, r->op, comm);
    else if (waits)
        MPI_Allreduce(sent, &r->result, r->n, r->type, r->op, comm);
    else if (large)
        MPI_Iallreduce_c(sent, &r->result, r->n, r->type, r->op, comm, &r->request);
    else
        MPI_Iallreduce(sent, &r->result, r->n, r->type, r->op, comm, &r->request);
}

uint64_t exchange_reduction_end(struct reduction *r, bool tests)
{
    for (int done = 0; tests && !done;)
        MPI_Test(&r->request, &done, MPI_STATUS_IGNORE);
    MPI_Wait(&r->request, MPI_STATUS_IGNORE);
    if (r->own != MPI_OP_NULL)
        MPI_Op_free(&r->own);
    return r->type == MPI_DOUBLE_INT
               ? test_hash(r->key, &r->result.place.rank, sizeof r->result.place.rank)
               : test_hash(r->key, &r->result, r->bytes);
}
