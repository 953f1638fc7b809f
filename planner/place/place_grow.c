/* Placements to start from (place_grow.h, place.h). */
#include "planner/place/place_grow.h"

#include "planner/place.h"

#include <stdbool.h>
#include <stdlib.h>

struct grower {
    const struct cpl_pattern *weights;
    const struct cpl_map_points *points;
    int64_t *first;   /* per rank: n_ranks + 1 entries, into sender */
    int64_t *message; /* per received message, by receiver: its number */
    int32_t *sender;
    int64_t *bond[2]; /* per rank: weight to those at the present coordinate of each dimension */
    int64_t *total;   /* per rank: weight to all that are placed */
    int64_t *since;   /* per rank: the number of the rank placed when it first had any; n: never */
    bool *placed;
};

static enum cpl_status list_senders(struct grower *g, struct cpl_arena *arena)
{
    const struct cpl_pattern *weights = g->weights;
    g->first = CPL_ARENA_ARRAY(arena, int64_t, (int64_t)weights->n_ranks + 2);
    g->sender = CPL_ARENA_ARRAY(arena, int32_t, weights->n_messages);
    g->message = CPL_ARENA_ARRAY(arena, int64_t, weights->n_messages);
    if (!g->first || !g->sender || !g->message)
        return CPL_ERR_NOMEM;
    for (int64_t m = 0; m < weights->n_messages; m++)
        g->first[weights->dst[m] + 2]++;
    for (int32_t i = 2; i <= weights->n_ranks; i++)
        g->first[i] += g->first[i - 1];
    for (int32_t i = 0; i < weights->n_ranks; i++)
        for (int64_t m = weights->first[i]; m < weights->first[i + 1]; m++) {
            int64_t k = g->first[weights->dst[m] + 1]++;
            g->sender[k] = i;
            g->message[k] = m;
        }
    return CPL_OK;
}

static void bind(struct grower *g, int32_t rank, int64_t weight, int64_t n_placed)
{
    for (int32_t d = 0; d < g->points->n_dims; d++)
        g->bond[d][rank] += weight;
    g->total[rank] += weight;
    if (g->since[rank] > n_placed)
        g->since[rank] = n_placed;
}

static void put(struct grower *g, int32_t rank, int64_t n_placed)
{
    const struct cpl_pattern *weights = g->weights;
    g->placed[rank] = true;
    for (int64_t m = weights->first[rank]; m < weights->first[rank + 1]; m++)
        bind(g, weights->dst[m], weights->volume[m], n_placed);
    for (int64_t k = g->first[rank]; k < g->first[rank + 1]; k++)
        bind(g, g->sender[k], weights->volume[g->message[k]], n_placed);
}

static int64_t score(const struct grower *g, int32_t rank)
{
    int64_t sum = 0;
    for (int32_t d = 0; d < g->points->n_dims; d++)
        sum += g->points->scale[d] * g->bond[d][rank];
    return sum;
}

/* Whether a should be placed before b. */
static bool is_better(const struct grower *g, int32_t a, int32_t b)
{
    int64_t score_a = score(g, a), score_b = score(g, b);
    if (score_a != score_b)
        return score_a > score_b;
    if (score_a == 0 && g->total[a] != g->total[b])
        return g->total[a] > g->total[b]; /* the first of a unit: near what is placed */
    return g->since[a] < g->since[b];
}

static int32_t choose(const struct grower *g)
{
    int32_t best = -1;
    for (int32_t i = 0; i < g->weights->n_ranks; i++)
        if (!g->placed[i] && (best < 0 || is_better(g, i, best)))
            best = i;
    return best;
}

struct keyed {
    int64_t key;
    int32_t point;
};

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->point > y->point) - (x->point < y->point);
}

/* The points in the order of their coordinates. */
static void sort_points(const struct cpl_map_points *points, int32_t n, struct keyed *order)
{
    for (int32_t i = 0; i < n; i++) {
        order[i] = (struct keyed){0, i};
        for (int32_t d = 0; d < points->n_dims; d++)
            order[i].key =
                order[i].key * points->size[d] + points->coordinate[i * points->n_dims + d];
    }
    qsort(order, (size_t)n, sizeof *order, compare_keyed);
}

static void grow(struct grower *g, const struct keyed *order, int32_t *position)
{
    const struct cpl_map_points *points = g->points;
    int32_t n = g->weights->n_ranks;
    for (int32_t k = 0; k < n; k++) {
        const int32_t *at = points->coordinate + (int64_t)order[k].point * points->n_dims;
        const int32_t *before =
            k > 0 ? points->coordinate + (int64_t)order[k - 1].point * points->n_dims : at;
        for (int32_t d = 0; d < points->n_dims; d++)
            for (int32_t i = 0; i < n && at[d] != before[d]; i++)
                g->bond[d][i] = 0;
        int32_t rank = choose(g);
        position[rank] = order[k].point;
        put(g, rank, k);
    }
}

enum cpl_status cpl_place_grow(const struct cpl_pattern *weights,
                               const struct cpl_map_points *points, int32_t *position)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    struct grower g = {.weights = weights, .points = points};
    int32_t n = weights->n_ranks;
    struct keyed *order = CPL_ARENA_ARRAY(&scratch, struct keyed, n);
    g.bond[0] = CPL_ARENA_ARRAY(&scratch, int64_t, n);
    g.bond[1] = CPL_ARENA_ARRAY(&scratch, int64_t, n);
    g.total = CPL_ARENA_ARRAY(&scratch, int64_t, n);
    g.since = CPL_ARENA_ARRAY(&scratch, int64_t, n);
    g.placed = CPL_ARENA_ARRAY(&scratch, bool, n);
    enum cpl_status status = CPL_ERR_NOMEM;
    if (order && g.bond[0] && g.bond[1] && g.total && g.since && g.placed)
        status = list_senders(&g, &scratch);
    if (!status) {
        for (int32_t i = 0; i < n; i++)
            g.since[i] = n;
        sort_points(points, n, order);
        grow(&g, order, position);
    }
    cpl_arena_free(&scratch);
    return status;
}

enum cpl_status cpl_place_fill(const struct cpl_map_points *points, int32_t n_ranks,
                               const int32_t *order, int32_t *position)
{
    struct keyed *sorted = calloc((size_t)n_ranks, sizeof *sorted);
    if (!sorted)
        return CPL_ERR_NOMEM;
    sort_points(points, n_ranks, sorted);
    for (int32_t k = 0; k < n_ranks; k++)
        position[order[k]] = sorted[k].point;
    free(sorted);
    return CPL_OK;
}

/* A part of a grid; stride[d] is what a step in dimension d adds to a rank. */
struct box {
    int32_t n_dims;
    int32_t first; /* rank of its first point */
    const int32_t *stride;
    int32_t size[CPL_MAX_DIMENSIONS];
};

/* Writes the ranks of a box and returns where the next one's go. As deep as log2 of the ranks. */
static int32_t *order_box(const struct box *box, int32_t *order)
{
    int32_t longest = 0;
    for (int32_t d = 1; d < box->n_dims; d++)
        if (box->size[d] > box->size[longest])
            longest = d;
    if (box->size[longest] == 1) {
        *order = box->first;
        return order + 1;
    }
    struct box half = *box;
    half.size[longest] = box->size[longest] / 2;
    order = order_box(&half, order);
    half.first += half.size[longest] * box->stride[longest];
    half.size[longest] = box->size[longest] - half.size[longest];
    return order_box(&half, order);
}

void cpl_place_order_grid(int32_t n_dims, const int32_t *size, int32_t *order)
{
    int32_t stride[CPL_MAX_DIMENSIONS], step = 1;
    struct box box = {.n_dims = 0, .stride = stride};
    for (int32_t d = n_dims - 1; d >= 0; d--) {
        if (size[d] > 1) {
            stride[box.n_dims] = step;
            box.size[box.n_dims++] = size[d];
        }
        step *= size[d];
    }
    if (box.n_dims == 0)
        order[0] = 0;
    else
        order_box(&box, order);
}
