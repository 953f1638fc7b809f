/* Random numbers of calls_fuzz.c, and the layouts of its buffers: contiguous, vector, hindexed,
 * struct, resized with a negative bound, and absolute addresses with MPI_BOTTOM. The test knows
 * each layout as a list of blocks, independent of MPI. So it detects wrong bytes, and bytes beside
 * the message that were written. */
#include "calls_fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool layout_has_bottom = true;

uint64_t mix(uint64_t value)
{
    value += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

uint64_t mix3(uint64_t a, uint64_t b, uint64_t c)
{
    return mix(mix(mix(a) ^ b) ^ c);
}

uint64_t hash_bytes(const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    uint64_t hash = mix(n);
    for (size_t k = 0; k < n; k++)
        hash = (hash ^ at[k]) * UINT64_C(0x100000001b3);
    return mix(hash);
}

int below(struct draw *draw, int n)
{
    draw->state += UINT64_C(0x9e3779b97f4a7c15);
    return n > 0 ? (int)(mix(draw->state) % (uint64_t)n) : 0;
}

bool chance(struct draw *draw, int percent)
{
    return below(draw, 100) < percent;
}

void fill_bytes(uint64_t key, uint8_t *bytes, size_t n)
{
    for (size_t k = 0; k < n; k += 8) {
        uint64_t word = mix(key + k);
        memcpy(bytes + k, &word, n - k < 8 ? n - k : 8);
    }
}

int base_size(enum base base)
{
    static const int size[N_BASES] = {1, sizeof(int), sizeof(double)};
    return size[base];
}

static MPI_Datatype base_type(enum base base)
{
    return base == BASE_BYTE ? MPI_BYTE : base == BASE_INT ? MPI_INT : MPI_DOUBLE;
}

#define GUARD 64

static void allocate(struct layout *layout, size_t n)
{
    layout->n_memory = n + 2 * GUARD;
    layout->memory = malloc(layout->n_memory);
    if (!layout->memory)
        abort();
    memset(layout->memory, LAYOUT_FILL, layout->n_memory);
}

/* Divides n units of the base in blocks and places them in random order with gaps. Returns the end
 * of the last one. */
static size_t place_blocks(int n_blocks, int n_units, int unit, struct draw *draw, size_t *offset,
                           size_t *length)
{
    int order[MAX_BLOCKS];
    size_t at = 0;
    for (int k = 0; k < n_blocks; k++) {
        int other = below(draw, k + 1);
        order[k] = order[other];
        order[other] = k;
        length[k] = (size_t)(n_units / n_blocks + (k < n_units % n_blocks)) * (size_t)unit;
    }
    for (int k = 0; k < n_blocks; k++) {
        at += (size_t)below(draw, 4) * 8;
        offset[order[k]] = at;
        at = (at + length[order[k]] + 7) / 8 * 8;
    }
    return at;
}

static void make_contiguous(struct layout *layout, int size, int unit)
{
    allocate(layout, (size_t)size);
    layout->n_blocks = 1;
    layout->offset[0] = GUARD;
    layout->length[0] = (size_t)size;
    layout->buffer = layout->memory + GUARD;
    layout->type = layout->base;
    layout->count = size / unit;
}

static void make_vector(struct layout *layout, int size, int unit, struct draw *draw)
{
    int n_units = size / unit, n_blocks = 1;
    for (int k = 2; k <= 12; k++)
        if (n_units % k == 0)
            n_blocks = k;
    int length = n_units / n_blocks, stride = length + 1 + below(draw, 5);
    allocate(layout, (size_t)stride * (size_t)n_blocks * (size_t)unit);
    layout->n_blocks = n_blocks;
    for (int k = 0; k < n_blocks; k++) {
        layout->offset[k] = GUARD + (size_t)k * (size_t)stride * (size_t)unit;
        layout->length[k] = (size_t)length * (size_t)unit;
    }
    layout->buffer = layout->memory + GUARD;
    layout->count = 1;
    MPI_Type_vector(n_blocks, length, stride, layout->base, &layout->type);
}

/* hindexed, struct, resized, bottom */
static void make_blocks(struct layout *layout, int shape, int size, int unit, struct draw *draw)
{
    int n_units = size / unit, n_elements = shape == 4 && n_units % 2 == 0 ? 2 : 1;
    int most = n_units / n_elements < 6 ? n_units / n_elements : 6;
    int n_blocks = 1 + below(draw, most), lengths[MAX_BLOCKS];
    size_t offset[MAX_BLOCKS], length[MAX_BLOCKS];
    size_t end = place_blocks(n_blocks, n_units / n_elements, unit, draw, offset, length);
    MPI_Aint at[MAX_BLOCKS], extent = (MPI_Aint)end + 24;
    MPI_Datatype types[MAX_BLOCKS], inner;
    allocate(layout, (size_t)extent * (size_t)n_elements);
    layout->n_blocks = n_elements * n_blocks;
    for (int k = 0; k < layout->n_blocks; k++) {
        layout->offset[k] = GUARD + (size_t)extent * (size_t)(k / n_blocks) + offset[k % n_blocks];
        layout->length[k] = length[k % n_blocks];
    }
    for (int k = 0; k < n_blocks; k++) {
        lengths[k] = (int)length[k] / unit;
        types[k] = layout->base;
        at[k] = (MPI_Aint)offset[k];
        if (shape == 5)
            MPI_Get_address(layout->memory + layout->offset[k], &at[k]);
    }
    layout->count = n_elements;
    layout->buffer = shape == 5 ? MPI_BOTTOM : layout->memory + GUARD;
    if (shape == 3)
        MPI_Type_create_struct(n_blocks, lengths, at, types, &layout->type);
    else
        MPI_Type_create_hindexed(n_blocks, lengths, at, layout->base, &layout->type);
    if (shape != 4)
        return;
    inner = layout->type;
    MPI_Type_create_resized(inner, -24, extent, &layout->type);
    MPI_Type_free(&inner);
}

void layout_make(struct layout *layout, int size, enum base base, struct draw *draw)
{
    int unit = base_size(base), shape = draw ? below(draw, 12) : 0;
    memset(layout, 0, sizeof *layout);
    layout->base = base_type(base);
    if (shape == 5 && !layout_has_bottom)
        shape = 2;
    if (shape > 5 || shape == 0 || size < unit) {
        make_contiguous(layout, size, unit);
        return;
    }
    if (shape == 1)
        make_vector(layout, size, unit, draw);
    else
        make_blocks(layout, shape, size, unit, draw);
    MPI_Type_commit(&layout->type);
    layout->owns_type = true;
}

void layout_put(struct layout *layout, const uint8_t *bytes, size_t n)
{
    for (int k = 0; k < layout->n_blocks && n > 0; k++) {
        size_t length = layout->length[k] < n ? layout->length[k] : n;
        memcpy(layout->memory + layout->offset[k], bytes, length);
        bytes += length;
        n -= length;
    }
}

void layout_get(const struct layout *layout, uint8_t *bytes, size_t n)
{
    for (int k = 0; k < layout->n_blocks && n > 0; k++) {
        size_t length = layout->length[k] < n ? layout->length[k] : n;
        memcpy(bytes, layout->memory + layout->offset[k], length);
        bytes += length;
        n -= length;
    }
}

bool layout_is_intact(const struct layout *layout, size_t n)
{
    uint8_t *copy = malloc(layout->n_memory);
    bool is_intact = true;
    if (!copy)
        abort();
    memcpy(copy, layout->memory, layout->n_memory);
    for (int k = 0; k < layout->n_blocks && n > 0; k++) {
        size_t length = layout->length[k] < n ? layout->length[k] : n;
        memset(copy + layout->offset[k], LAYOUT_FILL, length);
        n -= length;
    }
    for (size_t k = 0; k < layout->n_memory; k++)
        is_intact = is_intact && copy[k] == LAYOUT_FILL;
    free(copy);
    return is_intact;
}

void layout_free_type(struct layout *layout)
{
    if (layout->owns_type)
        MPI_Type_free(&layout->type);
    layout->owns_type = false;
}

void layout_free(struct layout *layout)
{
    layout_free_type(layout);
    free(layout->memory);
    layout->memory = NULL;
}
