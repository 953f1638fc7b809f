/*
 * Datatypes for the program `neighbors`: all the constructors, each with the places of its elements
 * computed here independently of MPI. Only extents are asked from MPI.
 */
#include "layout.h"

#include <stdlib.h>
#include <string.h>

struct base base_pick(struct test_rng *rng)
{
    const struct base all[] = {
        {MPI_BYTE, 1, 1},
        {MPI_INT, (int)sizeof(int), (int)sizeof(int)},
        {MPI_DOUBLE, (int)sizeof(double), (int)sizeof(double)},
        {MPI_DOUBLE_INT, (int)(sizeof(double) + sizeof(int)), 16},
    };
    struct base base = all[test_below(rng, (int)(sizeof all / sizeof all[0]))];
    return base.type == MPI_DOUBLE_INT && getenv("TEST_NO_PAIRS") ? all[2] : base;
}

/* A random divisor of n. */
static int divisor(struct test_rng *rng, int n)
{
    int d = 1 + test_below(rng, n);
    while (n % d != 0)
        d--;
    return d;
}

/* The elements' places when blocks of `length` elements begin at `starts` (in elements). */
static void place_blocks(struct layout *layout, int length, const int starts[])
{
    for (int i = 0; i < layout->unit; i++) {
        int place = starts[i / length] + i % length;
        layout->offset[i] = (MPI_Aint)place * layout->base.extent;
    }
}

static void make_contiguous(struct test_rng *rng, struct layout *layout)
{
    int start = 0;
    (void)rng;
    place_blocks(layout, layout->unit, &start);
    MPI_Type_contiguous(layout->unit, layout->base.type, &layout->type);
}

static void make_vector(struct test_rng *rng, struct layout *layout)
{
    int length = divisor(rng, layout->unit);
    int n = layout->unit / length;
    int stride = length + test_below(rng, 3);
    int starts[MAX_UNIT];

    for (int i = 0; i < n; i++)
        starts[i] = i * stride;
    place_blocks(layout, length, starts);
    MPI_Type_vector(n, length, stride, layout->base.type, &layout->type);
}

/* Blocks of equal length, out of order, with gaps, the first not at 0. Returns their length. */
static int scatter_blocks(struct test_rng *rng, struct layout *layout, int starts[])
{
    int length = divisor(rng, layout->unit);
    int n = layout->unit / length;
    int at = test_below(rng, 3);

    for (int i = 0; i < n; i++) {
        starts[i] = at;
        at += length + test_below(rng, 3);
    }
    test_shuffle(rng, n, starts);
    place_blocks(layout, length, starts);
    return length;
}

static void make_indexed(struct test_rng *rng, struct layout *layout)
{
    int starts[MAX_UNIT], lengths[MAX_UNIT];
    int length = scatter_blocks(rng, layout, starts);
    int n = layout->unit / length;

    for (int i = 0; i < n; i++)
        lengths[i] = length;
    MPI_Type_indexed(n, lengths, starts, layout->base.type, &layout->type);
}

static void make_struct(struct test_rng *rng, struct layout *layout)
{
    int starts[MAX_UNIT], lengths[MAX_UNIT];
    MPI_Aint displs[MAX_UNIT];
    MPI_Datatype types[MAX_UNIT];
    int length = scatter_blocks(rng, layout, starts);
    int n = layout->unit / length;

    for (int i = 0; i < n; i++) {
        lengths[i] = length;
        displs[i] = (MPI_Aint)starts[i] * layout->base.extent;
        types[i] = layout->base.type;
    }
    MPI_Type_create_struct(n, lengths, displs, types, &layout->type);
}

/* A vector with a wider extent, sometimes a negative lower bound. */
static void make_resized(struct test_rng *rng, struct layout *layout)
{
    MPI_Datatype inner;
    MPI_Aint lb, extent;
    MPI_Aint before = (MPI_Aint)layout->base.extent * test_below(rng, 2);
    MPI_Aint after = (MPI_Aint)layout->base.extent * test_below(rng, 3);

    make_vector(rng, layout);
    inner = layout->type;
    MPI_Type_get_extent(inner, &lb, &extent);
    MPI_Type_create_resized(inner, lb - before, extent + before + after, &layout->type);
    MPI_Type_free(&inner);
}

static void make_subarray(struct test_rng *rng, struct layout *layout)
{
    int rows = divisor(rng, layout->unit);
    int sub[2] = {rows, layout->unit / rows};
    int start[2] = {test_below(rng, 2), test_below(rng, 3)};
    int whole[2] = {rows + start[0] + test_below(rng, 2), sub[1] + start[1] + test_below(rng, 2)};
    int starts[MAX_UNIT];

    for (int i = 0; i < rows; i++)
        starts[i] = (start[0] + i) * whole[1] + start[1];
    place_blocks(layout, sub[1], starts);
    MPI_Type_create_subarray(2, whole, sub, start, MPI_ORDER_C, layout->base.type, &layout->type);
}

struct layout layout_make(struct test_rng *rng, struct base base, int unit, bool derived)
{
    static void (*const makers[])(struct test_rng *, struct layout *) = {
        make_contiguous, make_vector, make_indexed, make_struct, make_resized, make_subarray,
    };
    struct layout layout = {.type = base.type, .derived = derived, .base = base, .unit = unit};

    memset(layout.offset, 0, sizeof layout.offset);
    if (derived) {
        makers[test_below(rng, (int)(sizeof makers / sizeof makers[0]))](rng, &layout);
        MPI_Type_commit(&layout.type);
    }
    MPI_Type_get_extent(layout.type, &layout.lb, &layout.extent);
    return layout;
}

void layout_free(struct layout *layout)
{
    if (layout->derived)
        MPI_Type_free(&layout->type);
}

void layout_put(const struct layout *layout, unsigned char *origin, int count, uint64_t key)
{
    size_t size = (size_t)layout->base.size;
    size_t at = 0;

    for (int i = 0; i < count; i++) {
        for (int j = 0; j < layout->unit; j++, at += size)
            test_stream(key, at, size, origin + i * layout->extent + layout->offset[j]);
    }
}

uint64_t layout_hash(const struct layout *layout, const unsigned char *origin, int count,
                     uint64_t h)
{
    size_t size = (size_t)layout->base.size;

    for (int i = 0; i < count; i++) {
        for (int j = 0; j < layout->unit; j++)
            h = test_hash(h, origin + i * layout->extent + layout->offset[j], size);
    }
    return h;
}
