/*
 * Reductions. Integer sums are checked; sums of floating-point numbers are noted bit by bit, since
 * they show whether another algorithm has summed.
 */
#include "collectives.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_COUNT = 5000, MAX_RANKS = 64 };

/* One call: `count` numbers in, `n` out. */
struct call {
    struct place *place;
    MPI_Datatype type;
    MPI_Op op;
    size_t size; /* of a number, in bytes */
    int count;
    bool in_place, large;
    unsigned char *out, *in;
};

static double number(uint64_t key, int k)
{
    uint64_t bits = test_key(key, k);
    double scale = bits % 7 == 0 ? 1e12 : 1.0;
    return ((double)(bits >> 20) / 1e12 - 8.0) * scale;
}

/* The numbers that a rank of this rank's group puts in. */
static void fill(const struct call *c, unsigned char *to, int rank)
{
    uint64_t key = test_key(77, c->place->my_side * 1000 + rank);
    for (int k = 0; k < c->count; k++) {
        double d = number(key, k);
        float f = (float)d;
        int i = (int)(key % 1000) + k;
        const void *bytes = c->type == MPI_DOUBLE  ? (void *)&d
                            : c->type == MPI_FLOAT ? (void *)&f
                                                   : (void *)&i;
        memcpy(to + (size_t)k * c->size, bytes, c->size);
    }
}

static struct call begin(struct place *place, MPI_Datatype type, int count, int variant)
{
    int size;
    MPI_Type_size(type, &size);
    struct call c = {.place = place,
                     .type = type,
                     .op = type == MPI_FLOAT ? MPI_PROD : MPI_SUM,
                     .size = (size_t)size,
                     .count = count,
                     .in_place = variant % 2 && !place->inter,
                     .large = HAS_MPI4 && variant / 2 % 2};
    c.out = test_alloc(c.size * (size_t)count);
    c.in = test_alloc(c.size * (size_t)count);
    memset(c.in, 0, c.size * (size_t)count);
    fill(&c, c.out, place->rank);
    if (c.in_place)
        memcpy(c.in, c.out, c.size * (size_t)count);
    return c;
}

static void end(struct call *c, const char *name, int n)
{
    place_note(c->place, name, c->in, c->size * (size_t)n);
    free(c->out);
    free(c->in);
}

static const void *out_of(const struct call *c)
{
    return c->in_place ? MPI_IN_PLACE : c->out;
}

/* The sums of ranks first to last - 1 of this rank's group, from number `from` on. */
static void check_sums(const struct call *c, const char *name, int first, int last, int from, int n)
{
    if (c->type != MPI_INT || c->place->inter)
        return;
    int *sum = test_alloc(c->size * (size_t)c->count);
    int *theirs = test_alloc(c->size * (size_t)c->count);
    memset(sum, 0, c->size * (size_t)c->count);
    for (int r = first; r < last; r++) {
        fill(c, (unsigned char *)theirs, r);
        for (int k = 0; k < c->count; k++)
            sum[k] += theirs[k];
    }
    if (memcmp(sum + from, c->in, c->size * (size_t)n) != 0)
        test_fail("%s on %s: wrong sums of %d", name, c->place->name, c->count);
    free(sum);
    free(theirs);
}

/* MPICH 4.0.2 crashes when a root other than the first rank reduces many numbers in place. */
static void reduce(struct call c)
{
    bool root = c.place->at_root;
    const void *out = root && c.place->rank == 0 ? out_of(&c) : c.out;
    if (c.large)
        MPI_Reduce_c(out, c.in, c.count, c.type, c.op, c.place->root, c.place->comm);
    else
        MPI_Reduce(out, c.in, c.count, c.type, c.op, c.place->root, c.place->comm);
    if (root)
        check_sums(&c, "Reduce", 0, c.place->n, 0, c.count);
    end(&c, "Reduce", root ? c.count : 0);
}

static void allreduce(struct call c)
{
    if (c.large)
        MPI_Allreduce_c(out_of(&c), c.in, c.count, c.type, c.op, c.place->comm);
    else
        MPI_Allreduce(out_of(&c), c.in, c.count, c.type, c.op, c.place->comm);
    check_sums(&c, "Allreduce", 0, c.place->n, 0, c.count);
    end(&c, "Allreduce", c.count);
}

static void reduce_scatter(struct call c)
{
    int counts[MAX_RANKS], from = 0, n = c.place->n;
    MPI_Count counts_c[MAX_RANKS];
    for (int j = 0; j < n; j++) {
        counts[j] = c.count / n + (j < c.count % n);
        counts_c[j] = counts[j];
        from += j < c.place->rank ? counts[j] : 0;
    }
    if (c.large)
        MPI_Reduce_scatter_c(out_of(&c), c.in, counts_c, c.type, c.op, c.place->comm);
    else
        MPI_Reduce_scatter(out_of(&c), c.in, counts, c.type, c.op, c.place->comm);
    check_sums(&c, "Reduce_scatter", 0, n, from, counts[c.place->rank]);
    end(&c, "Reduce_scatter", counts[c.place->rank]);
}

static void reduce_scatter_block(struct call c)
{
    int n = c.place->n, each = c.count / n;
    if (c.large)
        MPI_Reduce_scatter_block_c(out_of(&c), c.in, each, c.type, c.op, c.place->comm);
    else
        MPI_Reduce_scatter_block(out_of(&c), c.in, each, c.type, c.op, c.place->comm);
    check_sums(&c, "Reduce_scatter_block", 0, n, each * c.place->rank, each);
    end(&c, "Reduce_scatter_block", each);
}

static void scan(struct call c)
{
    if (c.large)
        MPI_Scan_c(out_of(&c), c.in, c.count, c.type, c.op, c.place->comm);
    else
        MPI_Scan(out_of(&c), c.in, c.count, c.type, c.op, c.place->comm);
    check_sums(&c, "Scan", 0, c.place->rank + 1, 0, c.count);
    end(&c, "Scan", c.count);
}

static void exscan(struct call c)
{
    int rank = c.place->rank; /* nothing is defined on the first rank */
    if (c.large)
        MPI_Exscan_c(out_of(&c), c.in, c.count, c.type, c.op, c.place->comm);
    else
        MPI_Exscan(out_of(&c), c.in, c.count, c.type, c.op, c.place->comm);
    if (rank > 0)
        check_sums(&c, "Exscan", 0, rank, 0, c.count);
    end(&c, "Exscan", rank > 0 ? c.count : 0);
}

/* The largest number and who has it: a pair type. */
static void find_largest(struct place *place)
{
    struct {
        double value;
        int rank;
    } mine = {number(5, place->rank), place->rank}, largest = {0, -1};
    MPI_Allreduce(&mine, &largest, 1, MPI_DOUBLE_INT, MPI_MAXLOC, place->comm);
    place_note(place, "Allreduce of pairs", &largest.value, sizeof largest.value);
    place_note(place, "Allreduce of pairs", &largest.rank, sizeof largest.rank);
}

void collectives_reduce(struct place *place)
{
    const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT};
    const int counts[] = {1, 7, 1000, MAX_COUNT};
    for (int k = 0; k < 3 * 4; k++) {
        MPI_Datatype type = types[k % 3];
        int count = counts[k / 3];
        reduce(begin(place, type, count, k));
        allreduce(begin(place, type, count, k + 1));
        if (place->inter)
            continue;
        reduce_scatter(begin(place, type, count, k + 2));
        reduce_scatter_block(begin(place, type, count, k + 3));
        scan(begin(place, type, count, k));
        exscan(begin(place, type, count, k + 1));
    }
    find_largest(place);
}
