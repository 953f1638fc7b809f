/* shim/carry/embed_probe.c: vectors that tell orders of reducing apart. For every operation and
 * datatype some vector must give other bits when neighbours are combined in another order than by
 * the exchange of embed.c. */
#include "shim/carry/embed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_RANKS = 32 };

/* What the code under test asks of MPI. */
int PMPI_Type_get_extent(MPI_Datatype type, MPI_Aint *lower, MPI_Aint *extent)
{
    *lower = 0;
    *extent =
        type == MPI_FLOAT || type == MPI_REAL ? (MPI_Aint)sizeof(float) : (MPI_Aint)sizeof(double);
    return MPI_SUCCESS;
}

/* As MPICH has them: of equal ones the first. */
static double combine(MPI_Op op, MPI_Datatype type, double a, double b)
{
    if (op == MPI_MAX)
        return b > a ? b : a;
    if (op == MPI_MIN)
        return b < a ? b : a;
    double result = op == MPI_SUM ? a + b : a * b;
    return type == MPI_FLOAT ? (double)(float)result : result;
}

static double value(MPI_Datatype type, MPI_Op op, int k, int rank, int n)
{
    float single;
    double twice;
    if (type == MPI_FLOAT) {
        cpl_embed_probe_fill(&single, 1, type, op, k, rank, n);
        return (double)single;
    }
    cpl_embed_probe_fill(&twice, 1, type, op, k, rank, n);
    return twice;
}

/* In the order of ranks, pairs of 1, 2, 4 ... ranks: the exchange. */
static double by_exchange(MPI_Datatype type, MPI_Op op, int k, int n)
{
    double v[MOST_RANKS];
    for (int r = 0; r < n; r++)
        v[r] = value(type, op, k, r, n);
    for (int step = 1; step < n; step *= 2)
        for (int r = 0; r + step < n; r += 2 * step)
            v[r] = combine(op, type, v[r], v[r + step]);
    return v[0];
}

/* One rank after the other; and first the halves' ranks in pairs, as on two nodes by turns. */
static double in_a_row(MPI_Datatype type, MPI_Op op, int k, int n)
{
    double v = value(type, op, k, 0, n);
    for (int r = 1; r < n; r++)
        v = combine(op, type, v, value(type, op, k, r, n));
    return v;
}

static double by_turns(MPI_Datatype type, MPI_Op op, int k, int n)
{
    double v[2];
    for (int half = 0; half < 2; half++) {
        v[half] = value(type, op, k, half, n);
        for (int r = half + 2; r < n; r += 2)
            v[half] = combine(op, type, v[half], value(type, op, k, r, n));
    }
    return combine(op, type, v[0], v[1]);
}

/* From the last to the first: for minima and maxima another one of equal ones. */
static double backwards(MPI_Datatype type, MPI_Op op, int k, int n)
{
    double v = value(type, op, k, n - 1, n);
    for (int r = n - 2; r >= 0; r--)
        v = combine(op, type, v, value(type, op, k, r, n));
    return v;
}

typedef double order(MPI_Datatype type, MPI_Op op, int k, int n);

static int count_other_bits(MPI_Datatype type, MPI_Op op, int n, order *other)
{
    int n_other = 0;
    for (int k = 0; k < CPL_EMBED_PROBES; k++) {
        double a = by_exchange(type, op, k, n), b = other(type, op, k, n);
        n_other += memcmp(&a, &b, sizeof a) != 0;
    }
    return n_other;
}

static void test_orders_are_told_apart(void **state)
{
    (void)state;
    const MPI_Datatype types[] = {MPI_FLOAT, MPI_DOUBLE};
    const MPI_Op sums[] = {MPI_SUM, MPI_PROD}, extremes[] = {MPI_MAX, MPI_MIN};
    for (int n = 4; n <= MOST_RANKS; n *= 2)
        for (int t = 0; t < 2; t++)
            for (int o = 0; o < 2; o++) {
                assert_true(count_other_bits(types[t], sums[o], n, in_a_row) >= 4);
                assert_true(count_other_bits(types[t], sums[o], n, by_turns) >= 4);
                assert_true(count_other_bits(types[t], extremes[o], n, backwards) >= 4);
            }
}

static void test_types(void **state)
{
    (void)state;
    assert_true(cpl_embed_can_probe(MPI_DOUBLE));
    assert_true(cpl_embed_can_probe(MPI_FLOAT));
    assert_false(cpl_embed_can_probe(MPI_DATATYPE_NULL));
    assert_false(cpl_embed_can_probe(MPI_INT));
    assert_false(cpl_embed_can_probe(MPI_LONG_DOUBLE)); /* here its extent is another one */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_are_told_apart),
        cmocka_unit_test(test_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
