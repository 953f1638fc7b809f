/* Vectors that tell orders of reducing apart (embed.h). */
#include "shim/carry/embed.h"

#include "planner/base/hash.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum scalar { FLOAT, DOUBLE };

static const size_t sizes[] = {sizeof(float), sizeof(double)};

/* Layout of a datatype's element: consecutive scalars, or a scalar and an int behind it. */
struct layout {
    MPI_Datatype type;
    enum scalar scalar;
    int n; /* of scalars */
    bool indexed;
    size_t extent;
};

static bool find_layout(MPI_Datatype type, struct layout *layout)
{
    const struct layout known[] = {
        {MPI_FLOAT, FLOAT, 1, false, 0},
        {MPI_DOUBLE, DOUBLE, 1, false, 0},
        {MPI_C_FLOAT_COMPLEX, FLOAT, 2, false, 0},
        {MPI_C_DOUBLE_COMPLEX, DOUBLE, 2, false, 0},
        {MPI_REAL, FLOAT, 1, false, 0},
        {MPI_DOUBLE_PRECISION, DOUBLE, 1, false, 0},
        {MPI_COMPLEX, FLOAT, 2, false, 0},
        {MPI_DOUBLE_COMPLEX, DOUBLE, 2, false, 0},
        {MPI_FLOAT_INT, FLOAT, 1, true, 0},
        {MPI_DOUBLE_INT, DOUBLE, 1, true, 0},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        MPI_Aint lower = 0, extent = 0;
        if (known[k].type != type)
            continue;
        *layout = known[k];
        layout->extent = sizes[layout->scalar] * (size_t)(layout->n + layout->indexed);
        PMPI_Type_get_extent(type, &lower, &extent); /* Fortran's types may have another size */
        return extent == (MPI_Aint)layout->extent;
    }
    return false;
}

bool cpl_embed_can_probe(MPI_Datatype type)
{
    struct layout layout;
    return type != MPI_DATATYPE_NULL && find_layout(type, &layout);
}

/* The first random number from a seed. */
static uint64_t mix(uint64_t seed)
{
    return cpl_random_next(&seed);
}

/* A number with a random sign, a random mantissa and a random exponent from -spread to spread. */
static double number(uint64_t random, int spread)
{
    double mantissa = 1.0 + (double)(random >> 12) * 0x1p-52;
    int exponent = (int)(mix(random) % (uint64_t)(2 * spread + 1)) - spread;
    return ldexp(random & 1 ? -mantissa : mantissa, exponent);
}

/* A NaN with a sign and a payload, in the upper bits of the mantissa, that tell ranks apart. */
static double nan_of(uint64_t random)
{
    const uint64_t bits =
        UINT64_C(0x7ff8) << 48 | (random & 1) << 63 | (random >> 47 & 0xffff) << 32;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A value for sums and products: in turns of similar magnitudes, of widely different ones, with two
 * that cancel each other; and NaNs, the first of which a sum keeps. */
static double summand(uint64_t random, uint64_t common, int k, int rank, int n_ranks,
                      enum scalar scalar)
{
    int first = (int)(common % (uint64_t)n_ranks), large = scalar == FLOAT ? 40 : 70;
    int other =
        (first + 1 + (int)(mix(common) % (uint64_t)(n_ranks > 1 ? n_ranks - 1 : 1))) % n_ranks;
    if (k % 3 == 0)
        return number(random, 2);
    if (k % 3 == 1)
        return number(random, scalar == FLOAT ? 14 : 30);
    if (rank == first)
        return ldexp(1, large);
    return rank == other ? -ldexp(1, large) : number(random, 2);
}

/* A value for minima and maxima: in turns zeros of both signs, numbers and NaNs. */
static double extreme(uint64_t random, int k)
{
    if (k % 3 != 1)
        return random & 1 ? -0.0 : 0.0;
    return random % 5 == 0 ? nan_of(random) : number(random, 2);
}

static double scalar_value(MPI_Op op, int k, int64_t at, int rank, int n_ranks, enum scalar scalar)
{
    uint64_t common = mix((uint64_t)k << 40 ^ (uint64_t)at);
    uint64_t random = mix(common ^ (uint64_t)rank << 20);
    if ((op == MPI_SUM || op == MPI_PROD) && k % 4 == 3 && mix(random) % 3 == 0)
        return nan_of(random);
    if (op == MPI_SUM)
        return summand(random, common, k, rank, n_ranks, scalar);
    if (op == MPI_PROD)
        return number(random, 1);
    return extreme(random, k);
}

static void put_scalar(unsigned char *to, enum scalar scalar, double value)
{
    float single = (float)value;
    if (scalar == FLOAT)
        memcpy(to, &single, sizeof single);
    else
        memcpy(to, &value, sizeof value);
}

void cpl_embed_probe_fill(void *vector, int64_t count, MPI_Datatype type, MPI_Op op, int k,
                          int rank, int n_ranks)
{
    struct layout layout;
    if (!find_layout(type, &layout))
        return;
    unsigned char *to = vector;
    memset(to, 0, (size_t)count * layout.extent);
    for (int64_t i = 0; i < count; i++, to += layout.extent) {
        for (int j = 0; j < layout.n; j++)
            put_scalar(to + (size_t)j * sizes[layout.scalar], layout.scalar,
                       scalar_value(op, k, i * layout.n + j, rank, n_ranks, layout.scalar));
        int index = (int)(mix((uint64_t)rank * 64 + (uint64_t)k) % 1000);
        if (layout.indexed)
            memcpy(to + sizes[layout.scalar], &index, sizeof index);
    }
}
